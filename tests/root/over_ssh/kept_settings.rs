//! Trials in a row that want the same of a host keep its settings. If any part of the run dies between two of them, they are
//! undone.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::left_settings::SOMAXCONN;
use super::site::{Running, Site};
use super::steady::events;
use super::{SOON, site, until};

/// Trials that all want one setting.
fn scenario(blocks: u32, measure: &str) -> String {
    format!(
        "question = \"?\"\ntune.receiver.\"net.core.somaxconn\" = 4321\n[load]\nrate = \"2k\"\n[trials]\n\
         blocks = {blocks}\nmax_blocks = {blocks}\naa = false\nramp = \"100ms\"\nsettle = \"100ms\"\n\
         measure = \"{measure}\"\n"
    )
}

/// Starts a run of them; disturbed trials count, so that none is undone for that.
fn start(site: &Site, scenario: &str, out: &str) -> Running {
    let file = site.write("s.toml", scenario);
    let words = ["run", &file, "--hosts", &site.inventory, "--out", out, "--keep-noisy"];
    site.start(&[&words[..], &["--change-hosts"]].concat())
}

/// The lines of a journal on `sut`, of these steps; nothing if there is no journal of this number.
fn steps(site: &Site, journal: u32, step: &str) -> Option<Vec<Value>> {
    let path = format!("/var/lib/rxpath/tune/{journal}.journal");
    let text = site.try_inside("sut", &["cat", &path]).ok()?;
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    Some(lines.filter(|line| line["step"] == step).collect())
}

/// Whether each trial is void, in order, and for each record of the setting the trial that made it.
fn trials(events: &str, before: &str) -> (Vec<bool>, Vec<usize>) {
    let (mut void, mut makers) = (Vec::new(), Vec::new());
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        match event["type"].as_str().unwrap() {
            "trial-started" => void.push(false),
            "trial-ended" => *void.last_mut().unwrap() = !event["void"].is_null(),
            "setting-changed" => {
                assert_eq!(event["setting"], "net.core.somaxconn", "{event}");
                assert!(event["old"] == before && event["new"] == "4321", "{event}");
                let since = event["since_trial"].as_u64();
                makers.push(since.map_or(void.len() - 1, |since| since as usize));
            }
            _ => {}
        }
    }
    (void, makers)
}

/// For each trial the one that must have made its setting: itself after a void trial, and after one in which another program
/// changed the setting.
fn expected_makers(void: &[bool], changed_in: Option<usize>) -> Vec<usize> {
    let mut maker = 0;
    let of = |trial: usize| {
        if trial > 0 && (void[trial - 1] || changed_in == Some(trial - 1)) {
            maker = trial;
        }
        maker
    };
    (0..void.len()).map(of).collect()
}

/// Each trial must have the setting on record, with the trial that made it. Each trial that made it has a journal, which is undone
/// once. A busy machine makes trials void and repeats them, so all numbers are those of the events. Returns how many trials each
/// journal is for.
fn journals(site: &Site, out: &str, before: &str, changed_in: Option<usize>) -> Vec<usize> {
    let events = events(out);
    let (void, makers) = trials(&events, before);
    assert_eq!(makers, expected_makers(&void, changed_in), "{events}");
    let lengths: Vec<usize> = makers.chunk_by(|a, b| a == b).map(<[usize]>::len).collect();
    for (journal, trials) in (1..).zip(&lengths) {
        let count = |step: &str| steps(site, journal, step).unwrap().len();
        assert_eq!((count("begin"), count("undone")), (1, 1), "journal {journal}");
        // By the trial that made it, and once more by each of the others.
        let mut orders = steps(site, journal, "watch").unwrap();
        orders.retain(|order| order["while_alive"] == true);
        let deadlines: Vec<u64> =
            orders.iter().map(|order| order["deadline_ns"].as_u64().unwrap()).collect();
        assert!(deadlines.len() == *trials && deadlines.is_sorted(), "{deadlines:?}");
    }
    let next = lengths.len() as u32 + 1;
    assert!(steps(site, next, "head").is_none(), "there is a journal {next}");
    lengths
}

#[test]
fn trials_in_a_row_that_want_the_same_are_one_change_and_one_undo() {
    let Some(site) = site() else { return };
    let (out, before) = (site.path("runs"), site.sysctl("sut", SOMAXCONN));
    let run = start(&site, &scenario(3, "200ms"), &out).wait();
    // 4: the machine was busy, which is no matter here.
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    let lengths = journals(&site, &out, &before, None);
    assert!(lengths.iter().any(|trials| *trials > 1), "no trial kept it: {lengths:?}");
    site.holds_nothing(SOON);
}

#[test]
fn a_setting_that_another_program_changes_is_made_again_for_the_next_trial() {
    let Some(site) = site() else { return };
    let (out, before) = (site.path("runs"), site.sysctl("sut", SOMAXCONN));
    let run = start(&site, &scenario(2, "5s"), &out);
    until(Duration::from_secs(60), "a window", || events(&out).contains("\"measure\""));
    site.inside("sut", &["sh", "-c", &format!("echo 99 >{SOMAXCONN}")]);
    let ended = run.wait();
    assert!(matches!(ended.code, Some(0 | 4)), "{ended:?}");
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    let lengths = journals(&site, &out, &before, Some(0));
    assert!(lengths.len() > 1 && lengths[0] == 1, "{lengths:?}");
    site.holds_nothing(SOON);
}

/// Whether a trial has ended and counts: a void one keeps nothing.
fn has_counted(events: &str) -> bool {
    // The last line may not be whole.
    let mut all = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    all.any(|event| event["type"] == "trial-ended" && event["void"].is_null())
}

/// A run of which a trial is over and counts, and whose next one is set up or about to be.
fn between_trials(site: &Site, out: &str) -> Running {
    let run = start(site, &scenario(300, "200ms"), out);
    until(Duration::from_secs(60), "a trial that counts", || has_counted(&events(out)));
    run
}

#[test]
fn if_anything_dies_between_two_trials_the_kept_setting_is_undone() {
    let Some(site) = site() else { return };
    let before = site.sysctl("sut", SOMAXCONN);
    let is = |value: &str| site.sysctl("sut", SOMAXCONN) == value;
    let is_as_before = || until(SOON, "as before", || is(&before));
    // The endpoint, and nobody connects again: its watchdog undoes it.
    let run = between_trials(&site, &site.path("endpoint"));
    // A trial that missed its start is void, and its setting is made again.
    until(SOON, "it is kept", || is("4321"));
    run.hold();
    assert!(is("4321"), "it is kept");
    site.kill_endpoint("sut");
    is_as_before();
    run.kill();
    site.holds_nothing(SOON);
    // The endpoint, and the run says what became of the setting.
    let run = between_trials(&site, &site.path("lost"));
    site.kill_endpoint("sut");
    let ended = run.wait();
    is_as_before();
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let what = " is void, everything is undone on sut\n";
    assert!(ended.err.contains("sut was lost in the "), "{ended:?}");
    assert!(ended.err.contains(what), "{ended:?}");
    site.holds_nothing(SOON);
    // ssh.
    let run = between_trials(&site, &site.path("ssh"));
    run.hold();
    run.signal_ssh("sut.lab", Signal::SIGKILL);
    is_as_before();
    run.kill();
    site.holds_nothing(SOON);
    // The coordinator.
    let run = between_trials(&site, &site.path("coordinator"));
    run.kill();
    is_as_before();
    site.holds_nothing(SOON);
}

#[test]
fn an_interrupt_after_a_trial_undoes_the_kept_setting() {
    let Some(site) = site() else { return };
    let before = site.sysctl("sut", SOMAXCONN);
    let run = between_trials(&site, &site.path("runs"));
    run.interrupt();
    run.wait().ends(130);
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    // Of each journal: a void trial has one of its own.
    let undone: Vec<usize> =
        (1..).map_while(|journal| Some(steps(&site, journal, "undone")?.len())).collect();
    assert!(!undone.is_empty() && undone.iter().all(|count| *count == 1), "{undone:?}");
    site.holds_nothing(SOON);
}
