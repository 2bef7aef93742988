//! Trials in a row that want the same of a host keep its settings. If any part of the run dies between two of them, they are
//! undone.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::left_settings::SOMAXCONN;
use super::site::{Running, Site};
use super::steady::events;
use super::{site, until};

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

#[test]
fn trials_in_a_row_that_want_the_same_are_one_change_and_one_undo() {
    let Some(site) = site() else { return };
    let (out, before) = (site.path("runs"), site.sysctl("sut", SOMAXCONN));
    let run = start(&site, &scenario(3, "200ms"), &out).wait();
    // 4: the machine was busy, which is no matter here.
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    let events = events(&out);
    // Each trial has it on record, the later ones with the trial that made it.
    let read_back = format!(r#""setting":"net.core.somaxconn","old":"{before}","new":"4321""#);
    assert_eq!(events.matches(&read_back).count(), 3, "{events}");
    assert_eq!(events.matches(&format!(r#"{read_back},"since_trial":0"#)).count(), 2, "{events}");
    let count = |step: &str| steps(&site, 1, step).unwrap().len();
    assert_eq!((count("begin"), count("undone")), (1, 1));
    assert!(steps(&site, 2, "head").is_none(), "there is one journal");
    // By the first trial, and once more by each of the others.
    let mut orders = steps(&site, 1, "watch").unwrap();
    orders.retain(|order| order["while_alive"] == true);
    let deadlines: Vec<u64> =
        orders.iter().map(|order| order["deadline_ns"].as_u64().unwrap()).collect();
    assert!(deadlines.len() == 3 && deadlines.is_sorted(), "{deadlines:?}");
    site.holds_nothing(Duration::from_secs(10));
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
    let events = events(&out);
    let read_back = format!(r#""setting":"net.core.somaxconn","old":"{before}","new":"4321""#);
    assert_eq!(events.matches(&read_back).count(), 2, "{events}");
    assert!(!events.contains("since_trial"), "{events}");
    for journal in [1, 2] {
        let count = |step: &str| steps(&site, journal, step).unwrap().len();
        assert_eq!((count("begin"), count("undone")), (1, 1), "journal {journal}");
    }
    site.holds_nothing(Duration::from_secs(10));
}

/// A run whose first trial is over, and whose next one is set up or about to be.
fn between_trials(site: &Site, out: &str) -> Running {
    let run = start(site, &scenario(300, "200ms"), out);
    until(Duration::from_secs(60), "a trial", || events(out).contains("\"trial-ended\""));
    run
}

#[test]
fn if_anything_dies_between_two_trials_the_kept_setting_is_undone() {
    let Some(site) = site() else { return };
    let before = site.sysctl("sut", SOMAXCONN);
    let is = |value: &str| site.sysctl("sut", SOMAXCONN) == value;
    let is_as_before = || until(Duration::from_secs(5), "as before", || is(&before));
    let limit = Duration::from_secs(10);
    // The endpoint, and nobody connects again: its watchdog undoes it.
    let run = between_trials(&site, &site.path("endpoint"));
    run.hold();
    assert!(is("4321"), "it is kept");
    site.kill_endpoint("sut");
    is_as_before();
    run.kill();
    site.holds_nothing(limit);
    // The endpoint, and the run says what became of the setting.
    let run = between_trials(&site, &site.path("lost"));
    site.kill_endpoint("sut");
    let ended = run.wait();
    is_as_before();
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let what = " is void, everything is undone on sut\n";
    assert!(ended.errors.contains("sut was lost in the "), "{ended:?}");
    assert!(ended.errors.contains(what), "{ended:?}");
    site.holds_nothing(limit);
    // ssh.
    let run = between_trials(&site, &site.path("ssh"));
    run.hold();
    run.signal_ssh("sut.lab", Signal::SIGKILL);
    is_as_before();
    run.kill();
    site.holds_nothing(limit);
    // The coordinator.
    let run = between_trials(&site, &site.path("coordinator"));
    run.kill();
    is_as_before();
    site.holds_nothing(limit);
}

#[test]
fn an_interrupt_after_a_trial_undoes_the_kept_setting() {
    let Some(site) = site() else { return };
    let before = site.sysctl("sut", SOMAXCONN);
    let run = between_trials(&site, &site.path("runs"));
    run.interrupt();
    let ended = run.wait();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    let undone = steps(&site, 1, "undone").unwrap();
    assert_eq!(undone.len(), 1, "{undone:?}");
    site.holds_nothing(Duration::from_secs(10));
}
