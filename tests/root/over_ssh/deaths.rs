//! If any part of a connection dies, the run ends, the hosts are as before, and nothing of the run is left on them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::left_settings::{CHANGING, SOMAXCONN};
use super::site::{Running, Site};
use super::{SOON, site, until};

/// Starts a run that changes a setting of `sut`, lets something happen to it while the load runs, and waits until nothing is
/// left on the hosts: its exit status and its errors.
fn after(site: &Site, happen: impl FnOnce(&Running), limit: Duration) -> (Option<i32>, String) {
    after_in(site, CHANGING, happen, limit)
}

/// The same in a run of this scenario.
fn after_in(
    site: &Site,
    scenario: &str,
    happen: impl FnOnce(&Running),
    limit: Duration,
) -> (Option<i32>, String) {
    let (file, out) = (site.write("s.toml", scenario), site.path("runs"));
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out, "--change-hosts"];
    let before = site.sysctl("sut", SOMAXCONN);
    let run = site.start(&words);
    site.wait_for("gen1", " load udp ");
    assert_eq!(site.sysctl("sut", SOMAXCONN), "4321");
    happen(&run);
    let ended = run.wait();
    until(limit, "the setting of before", || site.sysctl("sut", SOMAXCONN) == before);
    site.holds_nothing(limit);
    (ended.code, ended.err)
}

#[test]
fn an_ssh_client_or_a_session_of_sshd_that_is_killed_ends_the_run() {
    let Some(site) = site() else { return };
    let (code, errors) = after(&site, |run| run.signal_ssh("sut.lab", Signal::SIGKILL), SOON);
    assert!(code == Some(5) && errors.contains("sut was lost in the "), "{errors}");
    // sshd calls a session without a terminal so.
    let (code, errors) = after(&site, |_| site.kill_in("gen1", "root@notty"), SOON);
    assert!(code == Some(5) && errors.contains("gen1 was lost in the "), "{errors}");
}

#[test]
fn the_command_for_counters_of_the_network_dies_with_the_run() {
    let Some(site) = site() else { return };
    let file = site.write("s.toml", CHANGING);
    let pid = site.path("pid");
    let counters =
        format!("[network]\ncounters = [\"sh\", \"-c\", \"echo $$ >{pid}; exec sleep 60\"]\n");
    let inventory = site.write("counted.toml", &(site.read_inventory() + &counters));
    let (out, is_there) = (site.path("runs"), |pid: &str| Path::new("/proc").join(pid).exists());
    let run = site.start(&["run", &file, "--hosts", &inventory, "--out", &out, "--change-hosts"]);
    let written = || fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'));
    until(Duration::from_secs(60), "the command runs", written);
    let command = fs::read_to_string(&pid).unwrap();
    assert!(is_there(command.trim()));
    run.kill();
    until(SOON, "the end of the command", || !is_there(command.trim()));
    site.holds_nothing(SOON);
}

#[test]
fn an_interrupted_run_undoes_the_settings_of_its_hosts() {
    let Some(site) = site() else { return };
    let (code, errors) = after(&site, Running::interrupt, SOON);
    assert_eq!(code, Some(130), "{errors}");
}

#[test]
fn a_host_that_restarts_ends_the_run_by_name_and_its_settings_are_no_changes_any_more() {
    let Some(site) = site() else { return };
    let before = site.sysctl("sut", SOMAXCONN);
    let restart = |_: &Running| {
        site.restart("sut");
        site.inside("sut", &["sh", "-c", &format!("echo {before} >{SOMAXCONN}")]);
    };
    let (code, errors) = after(&site, restart, SOON);
    assert_eq!(code, Some(5), "{errors}");
    let what = "trial 1 is void, settings of sut ended with its restart\n";
    assert!(errors.contains("sut restarted in the ") && errors.contains(what), "{errors}");
    // The journal is of the boot before.
    let check = site.rxpath(&["hosts", "check", &site.inventory]).ends(0);
    assert!(!check.err.contains("journal"), "{check:?}");
}

#[test]
fn a_run_whose_endpoint_and_watchdog_are_killed_connects_again_and_undoes_the_settings() {
    let Some(site) = site() else { return };
    let before = site.sysctl("sut", SOMAXCONN);
    let (code, errors) = after(&site, |_| site.kill_all("sut"), SOON);
    assert_eq!(code, Some(5), "{errors}");
    let what = "trial 1 is void, everything is undone on sut\n";
    assert!(errors.contains("sut was lost in the ") && errors.contains(what), "{errors}");
    assert_eq!(site.sysctl("sut", SOMAXCONN), before);
}

/// No end of a connection is seen at either side.
#[test]
fn a_host_whose_control_link_falls_silent_ends_by_itself_and_so_does_the_run() {
    let Some(site) = site() else { return };
    let cut = |_: &Running| drop(site.inside("sut", &["ip", "link", "set", "mgmt", "down"]));
    // The lease is 20 s, which begin with the latest end of the load.
    let short = CHANGING.replace("60s", "5s");
    let (code, errors) = after_in(&site, &short, cut, Duration::from_secs(40));
    assert!(code == Some(5) && errors.contains("sut was lost in the "), "{errors}");
    // The run could not see it.
    assert!(errors.contains(", settings of sut are undone there within "), "{errors}");
}

/// A server that never listens: its file is there meanwhile.
const FILED: &str = r#"
    question = "?"
    [serve]
    protocol = "udp"
    command = ["sh", "{dir}/serve.sh"]
    files = { "serve.sh" = "exec sleep 7777" }
    [load]
    rate = "2k"
"#;

#[test]
fn an_endpoint_that_is_killed_leaves_no_files_of_its_programs_although_none_follows() {
    let Some(site) = site() else { return };
    let (file, out) = (site.write("s.toml", FILED), site.path("runs"));
    let run = site.start(&["run", &file, "--hosts", &site.inventory, "--out", &out]);
    site.wait_for("sut", "sleep 7777");
    assert!(site.has_files());
    // The run must not connect again: the next endpoint would remove them. The end of a lease is such a death.
    run.hold();
    site.kill_endpoint("sut");
    until(SOON, "no directory of a program", || !site.has_files());
    site.wait_for_none("sut", "sleep 7777");
    run.kill();
    site.holds_nothing(SOON);
}
