//! Settings of a host hold as long as the endpoint that made them, and that lives on while a load starves its connection.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::left_settings::{CHANGING, SOMAXCONN};
use super::site::Running;
use super::steady::events;
use super::{SOON, site, until};

#[test]
fn settings_of_an_endpoint_that_is_killed_while_it_makes_them_are_undone_at_once() {
    let Some(site) = site() else { return };
    let (file, out) = (site.write("s.toml", CHANGING), site.path("runs"));
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--change-hosts"];
    let before = site.sysctl("sut", SOMAXCONN);
    let is = |value: &str| site.sysctl("sut", SOMAXCONN) == value;
    let run = site.start(&words);
    // The program that makes the change may be at work still: it ends by itself.
    until(Duration::from_secs(60), "the setting", || is("4321"));
    site.kill_endpoint("sut");
    until(SOON, "the setting of before", || is(&before));
    assert_eq!(run.wait().code, Some(5));
    site.holds_nothing(SOON);
    assert!(is(&before), "it is undone for good");
}

#[test]
fn when_a_host_is_lost_the_others_are_undone_and_named() {
    let Some(site) = site() else { return };
    let (file, out) = (site.write("s.toml", CHANGING), site.path("runs"));
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--change-hosts"];
    let before = site.sysctl("sut", SOMAXCONN);
    let lost = |alias: &str| {
        let run = site.start(&words);
        site.wait_for("gen1", " load udp ");
        site.kill_endpoint(alias);
        let ended = run.wait().ends(5).warns(&format!("{alias} was lost in the "));
        ended.err
    };
    let errors = lost("gen1");
    assert!(errors.contains("trial 1 is void, everything is undone on sut\n"), "{errors}");
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    let errors = lost("sut");
    // The run connects to it again, and sees that its watchdog has undone them.
    let what = "trial 1 is void, everything is undone on sut\n";
    assert!(errors.contains(what), "{errors}");
    site.holds_nothing(SOON);
}

/// One trial of these lengths.
fn trial(ramp: &str, settle: &str, measure: &str) -> String {
    format!(
        "question = \"?\"\n[load]\nrate = \"2k\"\n[trials]\nblocks = 1\nmax_blocks = 1\naa = false\n\
         ramp = \"{ramp}\"\nsettle = \"{settle}\"\nmeasure = \"{measure}\"\n"
    )
}

#[test]
fn connections_that_are_silent_for_longer_than_the_lease_while_load_runs_are_no_loss() {
    let Some(site) = site() else { return };
    let file = site.write("s.toml", &trial("100ms", "100ms", "25s"));
    let (out, mgmt) = (site.path("runs"), |state| ["ip", "link", "set", "mgmt", state]);
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--keep-noisy"];
    let run = site.start(&words);
    until(Duration::from_secs(60), "the window", || events(&out).contains("\"measure\""));
    // why: the window begins a moment after its instants were sent.
    std::thread::sleep(Duration::from_secs(1));
    // One host's client does nothing, the other one's packets are lost.
    run.signal_ssh("sut.lab", Signal::SIGSTOP);
    site.inside("gen1", &mgmt("down"));
    // why: the silence is what is tested: longer than the lease of 20 s, shorter than the load.
    std::thread::sleep(Duration::from_secs(23));
    site.inside("gen1", &mgmt("up"));
    run.signal_ssh("sut.lab", Signal::SIGCONT);
    let ended = run.wait();
    // 4: the machine was busy, which is no matter here.
    assert!(matches!(ended.code, Some(0 | 4)), "{ended:?}");
    site.holds_nothing(SOON);
}

/// The manifest of the one run in a directory.
fn manifest(out: &str) -> String {
    let run = std::fs::read_dir(out).unwrap().next().unwrap().unwrap();
    std::fs::read_to_string(run.path().join("manifest.json")).unwrap()
}

/// The trial was measured as a whole, in one window on all hosts.
fn counts(run: Running, out: &str) {
    let ended = run.wait();
    // 4: the machine was busy, which is no matter here.
    assert!(matches!(ended.code, Some(0 | 4)), "{ended:?}");
    // What would make it void is a warning here.
    let manifest = manifest(out);
    for fault in ["begin of its window", "another window than"] {
        assert!(!manifest.contains(fault), "{fault}: {manifest}");
    }
}

#[test]
fn a_trial_counts_whose_receiver_is_silent_from_ramp_into_the_window() {
    let Some(site) = site() else { return };
    // What runs alongside is known before the load.
    let background = "[background]\nhogs = 1\ncommand = [\"sleep\", \"3333\"]\n";
    let file = site.write("s.toml", &(trial("15s", "100ms", "20s") + background));
    let out = site.path("runs");
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--keep-noisy"];
    let run = site.start(&words);
    until(Duration::from_secs(60), "the ramp", || events(&out).contains("\"ramp\""));
    // why: the orders to start are answered within a moment.
    std::thread::sleep(Duration::from_secs(4));
    run.signal_ssh("sut.lab", Signal::SIGSTOP);
    // why: the silence is what is tested: from the ramp on, until a request would have waited for more than 10 s.
    std::thread::sleep(Duration::from_secs(25));
    run.signal_ssh("sut.lab", Signal::SIGCONT);
    counts(run, &out);
    site.holds_nothing(SOON);
}

/// By the receiver's lines the rate settles while the sender is silent, unless the machine is busy. Hosts get an earlier window only
/// when all of them answer.
#[test]
fn a_silent_sender_delays_the_window_of_all_hosts_until_it_answers() {
    let Some(site) = site() else { return };
    let file = site.write("s.toml", &trial("3s", "120s", "5s"));
    let out = site.path("runs");
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--keep-noisy"];
    let run = site.start(&words);
    until(Duration::from_secs(60), "the ramp", || events(&out).contains("\"ramp\""));
    let began = Instant::now();
    // why: the orders to start are answered within a moment.
    std::thread::sleep(Duration::from_secs(1));
    run.signal_ssh("gen1.lab", Signal::SIGSTOP);
    // why: the silence is what is tested: so long that the rate settles in it.
    std::thread::sleep(Duration::from_secs(12));
    assert!(!events(&out).contains("\"measure\""), "gen1 does not answer: {}", events(&out));
    run.signal_ssh("gen1.lab", Signal::SIGCONT);
    counts(run, &out);
    assert!(began.elapsed() < Duration::from_secs(100), "not the latest: {:?}", began.elapsed());
    site.holds_nothing(SOON);
}

#[test]
fn a_load_that_settles_early_is_measured_early() {
    let Some(site) = site() else { return };
    // A window of which a tenth, which an endpoint may miss, is half a second.
    let file = site.write("s.toml", &trial("100ms", "120s", "5s"));
    let out = site.path("runs");
    let run =
        site.start(&["run", &file, "--hosts", &site.inventory, "--out", &out, "--keep-noisy"]);
    until(Duration::from_secs(60), "the ramp", || events(&out).contains("\"ramp\""));
    let began = Instant::now();
    counts(run, &out);
    assert!(began.elapsed() < Duration::from_secs(100), "{:?}", began.elapsed());
}
