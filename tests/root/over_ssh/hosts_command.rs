//! `rxpath hosts check` and `rxpath hosts cleanup`: which hosts can be used, what is wrong with the others, which copies go.

use std::path::Path;

use super::site::Site;
use super::{SOON, site};

#[test]
fn copies_of_other_builds_are_removed_and_the_one_in_use_is_not() {
    let Some(site) = site() else { return };
    site.rxpath(&["hosts", "check", &site.inventory]).ends(0);
    // Another build that runs, and one that does not.
    let cache = format!("{}-sut", site.path("cache"));
    let [idle, running] = ["a", "b"].map(|digit| format!("{cache}/{}", digit.repeat(64)));
    for dir in [&idle, &running] {
        std::fs::create_dir(dir).unwrap();
    }
    std::fs::write(format!("{idle}/rxpath"), "an old build").unwrap();
    let program = format!("{running}/rxpath");
    crate::executable::copy("/usr/bin/sleep", Path::new(&program));
    let mut user = std::process::Command::new(&program).arg("1000").spawn().unwrap();
    site.rxpath(&["hosts", "cleanup", &site.inventory, "--dry-run"])
        .prints("sut: would remove 1 copy of other builds")
        .prints(&format!(": {idle}/rxpath\n"));
    assert!(Path::new(&idle).exists());
    let cleaned = site
        .rxpath(&["hosts", "cleanup", &site.inventory])
        .ends(0)
        .prints("gen1: nothing was left");
    let kept = format!("sut: kept {program}: a copy of another build, which is in use\n");
    assert!(cleaned.out.contains(&kept), "{cleaned:?}");
    assert!(cleaned.out.contains("/rxpath: the copy of this build\n"), "{cleaned:?}");
    assert!(!Path::new(&idle).exists() && Path::new(&running).exists());
    user.kill().unwrap();
    user.wait().unwrap();
    let cleaned = site.rxpath(&["hosts", "cleanup", &site.inventory, "--json"]);
    let result = crate::schema::result("hosts-cleanup", &cleaned.out);
    assert_eq!(result[1]["copies"][0], "b".repeat(64), "{result}");
    site.holds_nothing(SOON);
}

#[test]
fn hosts_that_cannot_be_used_are_named_with_what_to_do() {
    let Some(site) = site() else { return };
    let refused = |inventory: &str, what: &str, hint: &str| {
        let file = site.write("bad.toml", inventory);
        site.rxpath(&["hosts", "check", &file]).ends(3).warns(what).warns(hint);
    };
    let good = site.read_inventory();
    refused(
        &good.replace("ssh = \"gen1.lab\"", "ssh = \"unknown.lab\""),
        "gen1: ssh does not know this host's key",
        "connect once by hand: ssh unknown.lab",
    );
    refused(
        &good.replace("ssh = \"gen1.lab\"", "ssh = \"changed.lab\""),
        "gen1: the host key is not the one that ssh knows; nothing was sent",
        "find out why before you trust it: ssh changed.lab",
    );
    refused(
        &good.replace("ssh = \"gen1.lab\"", "ssh = \"nokey.lab\""),
        "gen1: ssh wants a password",
        "ControlMaster",
    );
    refused(
        &good.replace("ssh = \"gen1.lab\"", "ssh = \"silent.lab\""),
        "gen1: no answer to ssh (",
        "try: ssh silent.lab true",
    );
    refused(
        &good.replace("role = \"sender\"", "role = \"sender\"\nnetns = \"nosuch\""),
        "gen1: its network namespace cannot be used (rxpath: --netns nosuch: ",
        "hosts.gen1.netns",
    );
    refused(
        &good.replace("ssh = \"gen1.lab\"", "ssh = \"behind.lab\""),
        "gen1: the jump host does not reach it (channel 0: open failed: ",
        "try: ssh behind.lab true",
    );
    refused(
        &good.replace("ssh = \"gen1.lab\"", "ssh = \"cut.lab\""),
        "gen1: no answer to ssh (ssh: connect to host 10.78.1.2 port 2222: Connection refused)",
        "try: ssh cut.lab true",
    );
    refused(
        &good.replace("10.78.3.2", "10.78.2.2"),
        "gen1 has no route to 10.78.2.2",
        "give both hosts addresses of one network",
    );
    refused(
        &good.replace("role = \"sender\"", "role = \"sender\"\ndev = \"mgmt\""),
        "gen1 would send to 10.78.3.2 by data (route), not by mgmt",
        "hosts.gen1.dev",
    );
}

#[test]
fn a_command_that_is_killed_on_its_host_or_whose_host_is_lost_says_so() {
    let Some(site) = site() else { return };
    let there = " watch --json --no-bpf";
    let start = || {
        let run = site.start(&["watch", "--host", "sut.lab", "--json", "--no-bpf"]);
        site.wait_for("sut", there);
        run
    };
    let run = start();
    site.kill_in("sut", there);
    let killed = run.wait();
    let what = "rxpath: sut.lab: the command there was ended by signal 9\n";
    assert!(killed.code == Some(5) && killed.err.contains(what), "{killed:?}");
    let run = start();
    site.kill_endpoint("sut");
    let lost = run.wait();
    let what = "rxpath: sut.lab was lost: its connection ended\n";
    assert!(lost.code == Some(5) && lost.err.contains(what), "{lost:?}");
    site.wait_for_none("sut", "/rxpath ");
}

#[test]
fn the_clock_of_a_host_a_day_ahead_is_known_to_less_than_its_round_trip() {
    let Some(site) = site() else { return };
    let answer = site.rxpath(&["hosts", "check", &site.inventory, "--json"]).json();
    let gen1 = &answer["result"]["gen1"];
    let ahead = gen1["clock_ahead_ns"].as_i64().unwrap();
    let error = gen1["clock_error_ns"].as_i64().unwrap();
    let truth = i64::from(site::AHEAD_S) * 1_000_000_000;
    assert!((ahead - truth).abs() <= error, "{ahead} +-{error}, not {truth}");
    let sut = answer["result"]["sut"]["clock_ahead_ns"].as_i64().unwrap();
    assert!(sut.abs() <= answer["result"]["sut"]["clock_error_ns"].as_i64().unwrap(), "{answer}");
}

#[test]
fn hosts_of_one_boot_id_that_do_not_see_each_other_are_taken_for_two_clocks_with_a_warning() {
    let Some(mut site) = site() else { return };
    let check = |site: &Site| site.rxpath(&["hosts", "check", &site.inventory]);
    let one_machine = check(&site).ends(0);
    assert!(!one_machine.err.contains("boot id"), "{one_machine:?}");
    let shared = "gen1 and sut are one machine: they take CPU time from each other";
    assert!(one_machine.err.contains(shared), "{one_machine:?}");
    site.make_sut_a_clone();
    let clones = check(&site).ends(0);
    let what = "gen1 and sut have one boot id: taken for two clocks";
    assert!(clones.err.contains(what) && !clones.err.contains(shared), "{clones:?}");
}
