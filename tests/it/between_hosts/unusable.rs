//! Inventories and hosts that cannot be used: each fault is named with its place, and hosts without one are ready.

use super::{INVENTORY, inventory, rxpath};

#[test]
fn an_inventory_that_cannot_be_used_is_answered_with_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let check = |from: &str, to: &str| {
        let file = inventory(dir.path(), &INVENTORY.replace(from, to));
        let output = rxpath(&["hosts", "check", &file]);
        (output.code, output.err)
    };
    let (code, text) = check("gen1", "Gen1");
    assert!(code == Some(2) && text.contains("hosts.Gen1: not an alias"), "{text}");
    let (code, text) = check("127.0.0.1", "192.0.2.77");
    assert!(code == Some(3) && text.contains("sut does not have the address 192.0.2.77"), "{text}");
    let (code, text) = check("role = \"sender\"", "role = \"sender\"\ndev = \"nosuch0\"");
    assert!(code == Some(3) && text.contains("gen1 has no device nosuch0; change"), "{text}");
    assert!(text.contains("hosts.gen1.dev; it has lo"), "{text}");
    let (code, text) = check("role = \"sender\"", "role = \"sender\"\nnetns = \"nosuch\"");
    let what = "gen1: its network namespace cannot be used (rxpath: --netns nosuch: ";
    assert!(code == Some(3) && text.contains(what), "{text}");
    let file = inventory(
        dir.path(),
        &INVENTORY.replace("127.0.0.1\"]", "127.0.0.1\"]\nnetns = \"nosuch\""),
    );
    let cleaned = rxpath(&["hosts", "cleanup", &file, "--dry-run"]).ends(5);
    let what = "sut: its network namespace cannot be used (rxpath: --netns nosuch: ";
    assert!(
        cleaned.out.contains(what) && cleaned.out.contains("change hosts.sut.netns"),
        "{cleaned:?}"
    );
    let other = "[hosts.other]\nssh = \"local\"\nrole = \"receiver\"\naddr = [\"127.0.0.1\"]\n";
    let (code, text) = check("[hosts.sut]", &format!("{other}[hosts.sut]"));
    assert!(
        code == Some(3) && text.contains("other and sut have one address: 127.0.0.1"),
        "{text}"
    );
    let more = |count: usize, role: &str| -> String {
        let one = |at| format!("[hosts.{role}{at}]\nssh = \"local\"\nrole = \"{role}\"\n");
        (0..count).map(one).collect()
    };
    let with = |hosts: &str| check("[hosts.sut]", &format!("{hosts}[hosts.sut]"));
    let (code, text) = with(&more(32, "sender"));
    assert!(code == Some(3) && text.contains("the inventory has 33 senders"), "{text}");
    let (code, text) = with(&more(32, "receiver"));
    assert!(code == Some(3) && text.contains("the inventory has 33 receivers"), "{text}");
    let (code, text) = with(&(more(19, "sender") + &more(19, "receiver")));
    let many = "20 senders and 20 receivers are 400 pairs";
    assert!(code == Some(3) && text.contains(many), "{text}");
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
