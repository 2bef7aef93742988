//! Inventories and hosts that cannot be used: each fault is named with its place, and hosts without one are ready.

use super::{INVENTORY, inventory, rxpath};

#[test]
fn an_inventory_that_cannot_be_used_is_answered_with_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let check = |from: &str, to: &str| {
        let file = inventory(dir.path(), &INVENTORY.replace(from, to));
        rxpath(&["hosts", "check", &file])
    };
    check("gen1", "Gen1").ends(2).warns("hosts.Gen1: not an alias");
    check("127.0.0.1", "192.0.2.77").ends(3).warns("sut does not have the address 192.0.2.77");
    check("role = \"sender\"", "role = \"sender\"\ndev = \"nosuch0\"")
        .ends(3)
        .warns("gen1 has no device nosuch0; change")
        .warns("hosts.gen1.dev; it has lo");
    let what = "gen1: its network namespace cannot be used (rxpath: --netns nosuch: ";
    check("role = \"sender\"", "role = \"sender\"\nnetns = \"nosuch\"").ends(3).warns(what);
    let file = inventory(
        dir.path(),
        &INVENTORY.replace("127.0.0.1\"]", "127.0.0.1\"]\nnetns = \"nosuch\""),
    );
    let what = "sut: its network namespace cannot be used (rxpath: --netns nosuch: ";
    let cleaned = rxpath(&["hosts", "cleanup", &file, "--dry-run"]).ends(5);
    cleaned.prints(what).prints("change hosts.sut.netns");
    let other = "[hosts.other]\nssh = \"local\"\nrole = \"receiver\"\naddr = [\"127.0.0.1\"]\n";
    check("[hosts.sut]", &format!("{other}[hosts.sut]"))
        .ends(3)
        .warns("other and sut have one address: 127.0.0.1");
    let more = |count: usize, role: &str| -> String {
        let one = |at| format!("[hosts.{role}{at}]\nssh = \"local\"\nrole = \"{role}\"\n");
        (0..count).map(one).collect()
    };
    let with = |hosts: &str| check("[hosts.sut]", &format!("{hosts}[hosts.sut]"));
    with(&more(32, "sender")).ends(3).warns("the inventory has 33 senders");
    with(&more(32, "receiver")).ends(3).warns("the inventory has 33 receivers");
    let many = "20 senders and 20 receivers are 400 pairs";
    with(&(more(19, "sender") + &more(19, "receiver"))).ends(3).warns(many);
    rxpath(&["hosts", "check", "/nonexistent/lab.toml"]).ends(2);
    rxpath(&["run", "udp-batching", "--sender", "a;b", "--receiver", "sut"])
        .warns("is no ssh destination")
        .ends(2);
}

#[test]
fn a_sender_is_ready_only_with_a_receiver_that_it_is_paired_with() {
    let dir = tempfile::tempdir().unwrap();
    let more = "[hosts.gen2]\nssh = \"local\"\nrole = \"sender\"\n\
                [hosts.sut2]\nssh = \"local\"\nrole = \"receiver\"\naddr = [\"192.0.2.77\"]\n";
    let check = |pairs: &str| {
        let text = format!("{INVENTORY}{more}[network]\npairs = {pairs}\n");
        let output = rxpath(&["hosts", "check", &inventory(dir.path(), &text)]);
        (output.code, output.err, output.out)
    };
    let (code, text, printed) = check(r#"[["gen1", "sut"], ["gen2", "sut2"]]"#);
    assert_eq!(code, Some(5), "{text}");
    for fault in
        ["sut2 does not have the address 192.0.2.77", "gen2 sends to no receiver that is ready"]
    {
        assert!(text.contains(&format!("rxpath: {fault}")), "{text}");
    }
    let state = "ready: gen1 -> sut (127.0.0.1)\nnot ready: gen2, sut2\n";
    assert!(printed.contains(state), "{printed}");
    let (code, text, _) = check(r#"[["gen1", "sut"], ["gen1", "sut2"]]"#);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("network.pairs: the sender gen2 is in no pair"), "{text}");
    assert!(text.contains("add [\"gen2\", \"RECEIVER\"], or take gen2 out of"), "{text}");
}

#[test]
fn every_host_that_is_not_ready_is_named_at_once_and_the_others_are_ready() {
    let dir = tempfile::tempdir().unwrap();
    let more = "[hosts.gen2]\nssh = \"local\"\nrole = \"sender\"\ndev = \"nosuch0\"\n\
                [hosts.sut2]\nssh = \"local\"\nrole = \"receiver\"\naddr = [\"192.0.2.77\"]\n";
    let hosts = inventory(dir.path(), &format!("{INVENTORY}{more}"));
    let faults = ["gen2 has no device nosuch0", "sut2 does not have the address 192.0.2.77"];
    let check = rxpath(&["hosts", "check", &hosts]).ends(5);
    for fault in faults {
        assert!(check.err.contains(&format!("rxpath: {fault}")), "{check:?}");
    }
    let state = "ready: gen1 -> sut (127.0.0.1)\nnot ready: gen2, sut2\n";
    assert!(check.out.contains(state), "{check:?}");
    let answer = rxpath(&["hosts", "check", &hosts, "--json"]).json();
    let warnings = answer["warnings"].as_array().unwrap();
    let codes: Vec<&str> = warnings.iter().filter_map(|it| it["code"].as_str()).collect();
    assert_eq!(codes, ["host-not-ready"; 2], "{answer}");
    assert!(answer["result"]["gen1"].is_object() && answer["result"]["gen2"].is_null(), "{answer}");
    let out = dir.path().join("runs");
    let words = ["run", "udp-batching", "--hosts", &hosts, "--out", out.to_str().unwrap()];
    let run = rxpath(&words).ends(3).warns("2 faults of hosts, and nothing was started");
    assert!(faults.iter().all(|fault| run.err.contains(fault)), "{run:?}");
    assert!(!out.exists());
}
