//! Programs that left the process group of their endpoint, which is killed. Any endpoint of this machine ends them.

use std::time::Duration;

use crate::over_ssh::site;

/// The command starts a session of its own: no signal to its group and no death of its parent reaches it.
const LEAVING: &str = r#"
    question = "?"
    [load]
    rate = "2k"
    [background]
    hogs = 1
    command = ["sh", "-c", "setsid sleep 5555 & wait"]
    [trials]
    blocks = 1
    max_blocks = 1
    aa = false
    ramp = "100ms"
    settle = "100ms"
    measure = "60s"
"#;

#[test]
fn a_program_that_left_its_group_ends_with_its_endpoint_or_with_the_next_one() {
    let Some(site) = site() else { return };
    let file = site.write("s.toml", LEAVING);
    let out = site.path("runs");
    let words = ["run", &file, "--hosts", &site.inventory, "--out", &out];
    // The endpoint alone: its guard ends the program.
    let run = site.start(&words);
    site.wait_for("sut", "sleep 5555");
    site.kill_endpoint("sut");
    assert_eq!(run.wait().code, Some(5));
    site.wait_for_none("sut", "sleep 5555");
    site.holds_nothing(Duration::from_secs(20));
    // Both: the next endpoint ends it.
    let run = site.start(&words);
    site.wait_for("sut", "sleep 5555");
    site.kill_in("sut", " endpoint");
    assert_eq!(run.wait().code, Some(5));
    site.rxpath(&["hosts", "check", &site.inventory]).ends(0);
    site.wait_for_none("sut", "sleep 5555");
}

#[test]
fn cleanup_names_a_program_that_a_killed_run_left_and_ends_it() {
    let Some(site) = site() else { return };
    let file = site.write("s.toml", LEAVING);
    let out = site.path("runs");
    let run = site.start(&["run", &file, "--hosts", &site.inventory, "--out", &out]);
    site.wait_for("sut", "sleep 5555");
    site.kill_with(run, "sut");
    let dry = site.rxpath(&["hosts", "cleanup", &site.inventory, "--dry-run"]);
    assert_eq!(dry.code, Some(5), "{dry:?}");
    assert!(dry.out.contains(": would end process "), "{dry:?}");
    // The hosts are one machine: both find it, and one names it.
    let named = dry.out.matches(" of a killed run: sleep 5555\n").count();
    assert_eq!(named, 1, "{dry:?}");
    site.wait_for("sut", "sleep 5555");
    let cleaned = site.rxpath(&["hosts", "cleanup", &site.inventory, "--json"]);
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
    let result = crate::schema::result("hosts-cleanup", &cleaned.out);
    let mut hosts = result.as_array().unwrap().iter();
    let program = hosts.find_map(|host| host["programs"].get(0)).unwrap();
    assert_eq!(program["command"], "sleep 5555", "{result}");
    assert!(program["pid"].as_i64().is_some_and(|pid| pid > 1), "{result}");
    site.wait_for_none("sut", "sleep 5555");
}
