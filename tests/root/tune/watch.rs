//! Undone by itself unless confirmed, whatever becomes of the program that made the changes.

use std::process::Command;
use std::time::Duration;

use rxpath_host::write::fault::VARIABLE;
use rxpath_host::write::journal::Contents;

use super::place::{Place, WISHES};
use crate::bed::{until, until_within};
use crate::program::Said;

fn watchdog_is_gone(place: &Place) -> bool {
    let contents = Contents::read(&place.store().path(1)).unwrap().unwrap();
    !contents.watch.unwrap().process.is_alive()
}

/// It waits for its time to end, undoes, and ends.
fn await_watchdog(place: &Place) {
    until_within(Duration::from_secs(60), "the watchdog has ended", || watchdog_is_gone(place));
}

fn log(place: &Place) -> String {
    std::fs::read_to_string(place.store().log(1)).unwrap()
}

#[test]
fn without_a_confirmation_it_is_undone() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&WISHES);
    let applied = place.rxpath(&["tune", "apply", &plan, "--confirm-within", "10s"]).ok();
    assert!(
        applied.contains("undone in 10 s unless confirmed: rxpath tune confirm 1"),
        "{applied}"
    );
    assert_ne!(place.snapshot(), place.before);
    let status = place.rxpath(&["tune", "status"]).ok();
    assert!(status.contains("unless confirmed"), "{status}");
    await_watchdog(&place);
    assert_eq!(place.snapshot(), place.before, "{}", log(&place));
    assert!(log(&place).contains("not confirmed in time: undone"), "{}", log(&place));
    place.rxpath(&["tune", "confirm", "1"]).ends(1).warns("too late");
}

#[test]
fn what_is_confirmed_stays() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&WISHES);
    place.rxpath(&["tune", "apply", &plan, "--confirm-within", "1000s"]).ok();
    let changed = place.snapshot();
    place.rxpath(&["tune", "confirm"]).ok();
    await_watchdog(&place);
    assert!(log(&place).contains("confirmed"), "{}", log(&place));
    assert_eq!(place.snapshot(), changed);
    place.undo();
}

#[test]
fn what_is_undone_by_hand_needs_no_watchdog() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&WISHES);
    place.rxpath(&["tune", "apply", &plan, "--confirm-within", "1000s"]).ok();
    place.rxpath(&["tune", "undo"]).ok();
    await_watchdog(&place);
    assert_eq!(place.snapshot(), place.before);
}

/// As an endpoint does that keeps settings from one trial to the next.
#[test]
fn verify_moves_the_time_on_if_all_changes_hold_and_not_otherwise() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["net.ipv4.udp_rmem_min=8192"]);
    place.rxpath(&["tune", "apply", &plan, "--confirm-within", "1000s"]).ok();
    let deadline_ns = || {
        let contents = Contents::read(&place.store().path(1)).unwrap().unwrap();
        contents.watch.unwrap().deadline_ns
    };
    let verify = |within: &str| place.rxpath(&["tune", "verify", "1", "--confirm-within", within]);
    let first_ns = deadline_ns();
    assert!(verify("3000s").ok().contains(": holds"));
    let moved_ns = deadline_ns();
    assert!(moved_ns - first_ns >= 2_000_000_000_000, "{first_ns} {moved_ns}");
    place.sysctl("net.ipv4.udp_rmem_min", "16384");
    verify("9000s").ends(1).prints("drifted");
    assert_eq!(deadline_ns(), moved_ns);
    place.rxpath(&["tune", "undo"]).ok();
    // Nothing is in force that could hold.
    assert_eq!(verify("9000s").code, Some(1));
    await_watchdog(&place);
}

#[test]
fn the_death_of_the_program_leaves_the_watchdog_at_work() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&WISHES);
    let words = ["tune", "apply", &plan, "--confirm-within", "10s"];
    let killed = place.with((VARIABLE, "after-write:4"), &words);
    assert_eq!(killed.code, None, "{killed:?}");
    assert_ne!(place.snapshot(), place.before);
    await_watchdog(&place);
    assert_eq!(place.snapshot(), place.before, "{}", log(&place));
}

/// Killed at each order that it gives, and before the first one: no change stays, and nobody waits for ever.
#[test]
fn killed_at_any_order_to_the_watchdog_it_is_undone() {
    // One order at the start, one before each step, one at the end; each waits for its time to end.
    std::thread::scope(|scope| {
        for order in 1..=WISHES[5..].len() + 2 {
            scope.spawn(move || killed_at(&format!("torn-watch:{order}")));
        }
    });
}

fn killed_at(fault: &str) {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&WISHES[5..]);
    let killed =
        place.with((VARIABLE, fault), &["tune", "apply", &plan, "--confirm-within", "10s"]);
    assert_eq!(killed.code, None, "{fault}: {killed:?}");
    let log = || std::fs::read_to_string(place.store().log(1)).unwrap();
    until_within(Duration::from_secs(60), "the watchdog has ended", || {
        log().contains("undone") || log().contains("no changes are in force")
    });
    assert_eq!(place.snapshot(), place.before, "{fault}: {}", log());
}

/// A confirmation of which half is on disk is none; the next one is whole.
#[test]
fn killed_while_confirming_it_can_be_confirmed_again() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["net.ipv4.udp_rmem_min=8192"]);
    place.rxpath(&["tune", "apply", &plan, "--confirm-within", "1000s"]).ok();
    let changed = place.snapshot();
    let killed = place.with((VARIABLE, "torn-confirmed"), &["tune", "confirm"]);
    assert_eq!(killed.code, None, "{killed:?}");
    let status = place.rxpath(&["tune", "status"]).ok();
    assert!(status.contains("unless confirmed"), "{status}");
    place.rxpath(&["tune", "confirm"]).ok();
    await_watchdog(&place);
    assert_eq!(place.snapshot(), changed);
    place.undo();
}

/// The terminal in which it was applied goes away, and all that ran in it: what was not confirmed is undone.
#[test]
fn the_end_of_the_terminal_leaves_the_watchdog_at_work() {
    let Some(place) = Place::new() else { return };
    let before = place.snapshot();
    let plan = place.plan(&["net.ipv4.udp_rmem_min=8192"]);
    let state = place.dir.path().join("state").display().to_string();
    // script(1) is the terminal: when it dies the kernel hangs up on the session that it leads.
    let session = format!(
        "{} tune apply {plan} --confirm-within 10s --state-dir {state}; exec sleep 600",
        env!("CARGO_BIN_EXE_rxpath")
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &session, "/dev/null"]).env_remove("SSH_CONNECTION");
    terminal.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    let mut terminal = place.ns.run(move |_| terminal.spawn().unwrap()).unwrap();
    until("it is applied", || {
        let listed = place.store().list().unwrap();
        listed.first().is_some_and(|one| {
            one.contents.as_ref().is_ok_and(|contents| contents.reached == Some(1))
        })
    });
    assert_ne!(place.snapshot(), before);
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    await_watchdog(&place);
    assert_eq!(place.snapshot(), before, "{}", log(&place));
}

/// Applies in what looks like a login, with this script as `systemd-run`; what the program said.
fn applied_in_a_login(place: &Place, systemd_run: &str) -> Said {
    let bin = place.dir.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    // Of this test: its `/run` is its own.
    std::fs::create_dir_all("/run/systemd/system").unwrap();
    let fake = bin.join("systemd-run");
    crate::executable::write(&fake, format!("#!/bin/sh\n{systemd_run}\n"));
    let group = place.dir.path().join("cgroup");
    std::fs::write(&group, "0::/user.slice/user-1000.slice/session-3.scope\n").unwrap();
    let plan = place.plan(&["net.ipv4.udp_rmem_min=8192"]);
    let mut login = Command::new("unshare");
    login.args(["--mount", "sh", "-c", "mount --bind \"$0\" /proc/$$/cgroup && exec \"$@\""]);
    login.arg(&group).args([env!("CARGO_BIN_EXE_rxpath"), "tune", "apply", &plan]);
    login.args(["--confirm-within", "5s", "--state-dir"]).arg(place.dir.path().join("state"));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    login.env("PATH", path).env_remove("SSH_CONNECTION");
    place.ns.run(move |_| login.output().unwrap()).unwrap().into()
}

#[test]
fn the_watchdog_is_no_process_of_the_login() {
    let Some(place) = Place::new() else { return };
    let words = place.dir.path().join("words");
    // As the real one it makes the unit, then becomes the program.
    let script = format!(
        "echo \"$*\" >{}\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"",
        words.display()
    );
    let said = applied_in_a_login(&place, &script);
    assert_eq!((said.code, said.err.contains("systemd-run")), (Some(0), false), "{said:?}");
    let words = std::fs::read_to_string(words).unwrap();
    assert!(words.starts_with("--scope --collect --quiet --unit=rxpath-watchdog-1-"), "{words}");
    assert!(words.contains(" tune watchdog --state-dir "), "{words}");
    await_watchdog(&place);
    assert_eq!(place.snapshot(), place.before, "{}", log(&place));
}

#[test]
fn without_a_unit_the_watchdog_works_and_the_login_s_end_is_told() {
    let Some(place) = Place::new() else { return };
    applied_in_a_login(&place, "echo no bus >&2; exit 1")
        .ends(0)
        .warns("systemd-run did not start the watchdog");
    await_watchdog(&place);
    assert_eq!(place.snapshot(), place.before, "{}", log(&place));
    assert!(log(&place).starts_with("no bus\n"), "{}", log(&place));
}

#[test]
fn a_watchdog_that_was_killed_is_told() {
    let Some(place) = Place::new() else { return };
    let plan = place.plan(&["net.ipv4.udp_rmem_min=8192"]);
    place.rxpath(&["tune", "apply", &plan, "--confirm-within", "1000s"]).ok();
    let contents = Contents::read(&place.store().path(1)).unwrap().unwrap();
    assert!(contents.watch.unwrap().process.kill().unwrap());
    await_watchdog(&place);
    let status = place.rxpath(&["tune", "status"]).ok();
    assert!(status.contains("the process that would undo it is dead"), "{status}");
    place.undo();
}
