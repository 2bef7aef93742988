//! Settings of a host that are in force when an experiment begins: a killed endpoint's are undone, others are a reason not to
//! begin.

use std::time::Duration;

use super::site::{Running, Site};
use super::{SOON, site, until};

pub(super) const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";

/// Changes the receiver's host for a trial that is longer than anybody waits for a setting.
pub(super) const CHANGING: &str = r#"
    question = "?"
    [load]
    rate = "2k"
    [tune.receiver]
    "net.core.somaxconn" = 4321
    [trials]
    blocks = 1
    max_blocks = 1
    aa = false
    ramp = "100ms"
    settle = "100ms"
    measure = "60s"
"#;

/// A run whose setting is in force on `sut`.
fn run_with_setting(site: &Site) -> Running {
    let file = site.write("s.toml", CHANGING);
    let out = site.path("runs");
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--change-hosts"];
    let run = site.start(&words);
    site.wait_for("sut", " tune watchdog ");
    until(Duration::from_secs(60), "the setting", || site.sysctl("sut", SOMAXCONN) == "4321");
    site.wait_for("gen1", " load udp ");
    run
}

#[test]
fn settings_of_a_killed_endpoint_are_undone_at_once() {
    let Some(site) = site() else { return };
    let before = site.sysctl("sut", SOMAXCONN);
    let run = run_with_setting(&site);
    // By their watchdog: the run would connect again and undo them, too.
    run.hold();
    site.kill_in("sut", "/rxpath endpoint");
    // Long before the end of the trial.
    until(SOON, "as before", || site.sysctl("sut", SOMAXCONN) == before);
    run.kill();
    site.holds_nothing(SOON);
}

/// A run is killed, and all of rxpath on `sut`: nobody is left to undo its setting.
fn leave_setting(site: &Site) {
    let run = run_with_setting(site);
    site.kill_with(run, "sut");
    assert_eq!(site.sysctl("sut", SOMAXCONN), "4321");
}

#[test]
fn settings_that_a_killed_run_left_are_undone_by_the_next_endpoint_and_by_cleanup() {
    let Some(site) = site() else { return };
    let before = site.sysctl("sut", SOMAXCONN);
    leave_setting(&site);
    site.rxpath(&["hosts", "check", &site.inventory])
        .ends(0)
        .warns("sut: undid journal 1 of a killed run");
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    // Once more, for `hosts cleanup`.
    leave_setting(&site);
    site.rxpath(&["hosts", "cleanup", &site.inventory, "--dry-run"])
        .prints("sut: would undo journal 2 of a killed run");
    assert_eq!(site.sysctl("sut", SOMAXCONN), "4321");
    site.rxpath(&["hosts", "cleanup", &site.inventory])
        .ends(0)
        .prints("sut: undid journal 2 of a killed run");
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    site.holds_nothing(SOON);
}

#[test]
fn settings_of_a_killed_run_that_cannot_be_undone_are_a_reason_not_to_begin() {
    let Some(site) = site() else { return };
    let before = site.sysctl("sut", SOMAXCONN);
    leave_setting(&site);
    let proc_sys = "/proc/sys";
    site.inside("sut", &["mount", "-o", "bind,ro", proc_sys, proc_sys]);
    site.rxpath(&["hosts", "check", &site.inventory])
        .ends(3)
        .warns("sut: open journal 1 of a killed run; rxpath hosts cleanup FILE, or there: ")
        .warns("/rxpath tune undo 1\n");
    site.rxpath(&["hosts", "cleanup", &site.inventory]).ends(5).prints(
        "sut: changes of `rxpath tune` are in force; to undo them there: rxpath tune undo 1",
    );
    assert_eq!(site.sysctl("sut", SOMAXCONN), "4321");
    site.inside("sut", &["umount", proc_sys]);
    site.rxpath(&["hosts", "check", &site.inventory])
        .ends(0)
        .warns("sut: undid journal 1 of a killed run");
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    site.holds_nothing(SOON);
}

#[test]
fn changes_that_nobody_confirmed_yet_are_a_reason_not_to_begin() {
    let Some(site) = site() else { return };
    let before = site.sysctl("sut", SOMAXCONN);
    let (program, plan) = (site.path("rxpath"), site.path("plan.toml"));
    let tune = |words: &[&str]| {
        site.inside("sut", &[&[program.as_str(), "tune"][..], words].concat());
    };
    tune(&["plan", "--set", "net.core.somaxconn=4321", "-o", &plan]);
    tune(&["apply", &plan, "--confirm-within", "600s"]);
    site.rxpath(&["hosts", "check", &site.inventory])
        .ends(3)
        .warns("sut: journal 1 is not confirmed")
        .warns("rxpath tune confirm 1");
    assert_eq!(site.sysctl("sut", SOMAXCONN), "4321");
    // Confirmed, they are the user's own.
    tune(&["confirm", "1"]);
    site.rxpath(&["hosts", "check", &site.inventory]).ends(0);
    tune(&["undo", "1"]);
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
    site.holds_nothing(SOON);
}

#[test]
fn without_root_journals_that_cannot_be_read_are_said_and_are_no_changes() {
    let Some(site) = site() else { return };
    let (program, plan) = (site.path("rxpath"), site.path("plan.toml"));
    let tune = |words: &[&str]| {
        site.inside("sut", &[&[program.as_str(), "tune"][..], words].concat());
    };
    tune(&["plan", "--set", "net.core.somaxconn=4321", "-o", &plan]);
    tune(&["apply", &plan]);
    tune(&["undo", "1"]);
    let inventory = site.of_user(["sudo = \"never\"", "sudo = \"never\""]);
    let unread = "sut: 1 journal of `rxpath tune` cannot be read";
    site.rxpath(&["hosts", "check", &inventory]).ends(0).warns(unread);
    let cleaned = site.rxpath(&["hosts", "cleanup", &inventory]).ends(5).prints(unread);
    assert!(!cleaned.out.contains("tune undo 1"), "{cleaned:?}");
    site.holds_nothing(SOON);
}
