//! What a scenario has for single hosts: settings, and background load.

use std::fs;
use std::path::Path;

use super::{INVENTORY, TRIALS, inventory, run_between, rxpath};

/// Two senders and a receiver.
fn hosts() -> String {
    format!("{INVENTORY}[hosts.gen2]\nssh = \"local\"\nrole = \"sender\"\n")
}

#[test]
fn settings_of_one_host_are_listed_with_those_of_its_side_and_win_over_them() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = inventory(dir.path(), &hosts());
    let run = |name: &str, words: &[&str]| {
        let file = dir.path().join("s.toml");
        let text = "question = \"?\"\n[tune.sender]\n\"net.core.somaxconn\" = \"77\"\n\"net.ipv4.tcp_fin_timeout\" = \"66\"\n";
        let own = format!("[tune.{name}]\n\"net.core.somaxconn\" = \"88\"\n");
        fs::write(&file, text.to_owned() + &own).unwrap();
        let words = [&["run", file.to_str().unwrap(), "--hosts", &hosts][..], words].concat();
        let output = rxpath(&words);
        (output.code, output.out + &output.err)
    };
    let wanted = [
        "gen1: net.core.somaxconn = 77 (for base)",
        "gen1: net.ipv4.tcp_fin_timeout = 66 (for base)",
        "gen2: net.core.somaxconn = 88 (for base)",
        "gen2: net.ipv4.tcp_fin_timeout = 66 (for base)",
    ];
    // With the plan, and instead of a run that may not change them.
    for (code, words) in [(0, &["--dry-run"][..]), (2, &[][..])] {
        let (got, text) = run("gen2", words);
        assert_eq!(got, Some(code), "{text}");
        for line in wanted {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("gen2: net.core.somaxconn = 77"), "{text}");
        assert!(!text.contains("sut: net"), "{text}");
    }
    let (code, text) = run("gen3", &["--dry-run"]);
    let wrong = "s.toml:5: `tune.gen3`: this run has no host `gen3`; did you mean `gen1`?";
    assert!(code == Some(2) && text.contains(wrong), "{text}");
}

#[test]
fn background_load_runs_on_the_hosts_that_are_chosen() {
    let dir = tempfile::tempdir().unwrap();
    for (on, count) in
        [("\"receivers\"", 1), ("\"senders\"", 2), ("\"all\"", 3), ("[\"gen2\", \"sut\"]", 2)]
    {
        let pids = dir.path().join(format!("pids{}", on.len()));
        let script = format!("echo $$ >> {}; sleep 1000", pids.display());
        let scenario = format!(
            "question = \"?\"\n[load]\nrate = \"2k\"\n[background]\non = {on}\n\
             command = [\"sh\", \"-c\", \"{script}\"]\n{TRIALS}"
        );
        let (manifest, _) = run_between(&hosts(), &scenario);
        let started = fs::read_to_string(pids).unwrap();
        assert_eq!(started.lines().count(), count * manifest.trials.len(), "{on}: {started}");
        for pid in started.lines() {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{on}: {pid} is left");
        }
    }
    // It is looked for where it is to run.
    let file = dir.path().join("s.toml");
    let text = "question = \"?\"\n[background]\non = [\"gen2\"]\ncommand = \"no-such-program\"\n";
    fs::write(&file, text).unwrap();
    let (out, lab) = (dir.path().join("runs"), inventory(dir.path(), &hosts()));
    let words = ["run", file.to_str().unwrap(), "--hosts", &lab, "--out", out.to_str().unwrap()];
    let output = rxpath(&words);
    let wrong = "runs `no-such-program`, which is not installed on gen2";
    assert!(output.err.contains(wrong), "{output:?}");
    assert_eq!(output.code, Some(3));
    // One that has ended is told, on a host without a reader too.
    let scenario = format!(
        "question = \"?\"\n[load]\nrate = \"2k\"\n[background]\non = [\"gen2\"]\ncommand = [\"true\"]\n{TRIALS}"
    );
    let (manifest, _) = run_between(&hosts(), &scenario);
    let said = &manifest.trials[0].warnings;
    assert!(said.iter().any(|warning| warning.code == "background-ended"), "{said:?}");
}

#[test]
fn a_scenario_runs_between_its_own_hosts_unless_the_command_names_others() {
    let dir = tempfile::tempdir().unwrap();
    let plan = |hosts: &str, words: &[&str]| {
        let file = dir.path().join("s.toml");
        fs::write(&file, format!("question = \"?\"\n{hosts}")).unwrap();
        let words = [&["run", file.to_str().unwrap(), "--dry-run"][..], words].concat();
        rxpath(&words)
    };
    plan(INVENTORY, &[]).ends(0).prints("sut receives by lo");
    plan(INVENTORY, &["--set", "network.hops=0"]).ends(2).warns("--set network.hops: 0");
    let other = inventory(dir.path(), &INVENTORY.replace("hosts.sut", "hosts.other"));
    let done = plan(INVENTORY, &["--hosts", &other]).ends(0).prints("other receives by lo");
    assert!(!done.out.contains("sut receives"), "{done:?}");
    plan(&INVENTORY.replace("role = \"sender\"", "role = \"sendr\""), &[])
        .ends(2)
        .warns("s.toml: line ")
        .warns("did you mean `sender`?");
    // Those of another scenario.
    let scenario = inventory(dir.path(), &format!("question = \"another one\"\n{INVENTORY}"));
    plan("", &["--hosts", &scenario]).ends(0).prints("sut receives by lo");
    // A scenario without hosts has a lab.
    plan("", &["--set", "network.hops=2"]).ends(2).warns("is for --hosts");
}
