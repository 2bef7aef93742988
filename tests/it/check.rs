//! `rxpath check` and `rxpath explain` as a user calls them.

use std::path::{Path, PathBuf};

use crate::program::rxpath;

fn host(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hosts").join(name)
}

#[test]
fn alone_it_checks_this_host() {
    let text = rxpath(&[]).ok();
    assert!(text.contains(" rules: "), "{text}");
    assert!(text.matches("  observed: ").count() <= 5, "{text}");
}

#[test]
fn a_captured_tree_is_checked_and_the_answers_are_all_there() {
    let tree = host("vm-6.18");
    let args = ["check", "--sysroot", tree.to_str().unwrap(), "--goal", "throughput", "--json"];
    let value = rxpath(&args).ends(0).json();
    assert_eq!(value["schema"], "rxpath/check/1.0");
    assert_eq!(value["settings"]["goal"], "throughput");
    assert_eq!(value["settings"]["kernel"], "6.18.44-fc-v595");
    let result = &value["result"];
    let answers: usize =
        ["findings", "cautions", "records", "fine", "unseen", "silent", "unjudged"]
            .iter()
            .map(|kind| result[*kind].as_array().unwrap().len())
            .sum();
    assert!(answers as u64 >= result["rules_count"].as_u64().unwrap(), "{result}");
}

#[test]
fn bad_questions_are_refused_in_one_line() {
    for (args, wanted) in [
        (&["check", "--sysroot", "/no/such/tree"][..], "/no/such/tree"),
        (&["check", "--dev", "nosuch0"], "--dev nosuch0: no such network device here"),
        (&["check", "--goal", "speed"], "invalid value 'speed'"),
        (&["explain", "rfs-flov"], "explain rfs-flov: no topic has this name"),
    ] {
        rxpath(args).ends(2).refuses("", wanted).warns("hint: ");
    }
}

#[test]
fn every_listed_rule_has_a_page() {
    let value = rxpath(&["explain", "--json"]).ends(0).json();
    let rules = value["result"].as_array().unwrap();
    let first = rules[0]["id"].as_str().unwrap();
    let page = rxpath(&["explain", first]).ok();
    for part in ["Why", "Mechanism", "Expected effect", "When not to change it", "Undo", "Sources"]
    {
        assert!(page.contains(part), "{page}");
    }
}

/// Of a captured tree, which has its readings, and of the other forms of the command, there is no time to watch.
#[test]
fn only_a_running_host_is_watched() {
    let tree = host("vm-6.18");
    let tree = tree.to_str().unwrap();
    for words in [&["--sysroot", tree][..], &["--queues"]] {
        rxpath(&[&["check", "--window", "1s"], words].concat()).ends(2).warns("--window");
    }
    for window in ["0s", "1ms"] {
        rxpath(&["check", "--window", window]).ends(0);
    }
}

#[test]
fn explain_finds_settings_counters_reasons_and_terms() {
    let page = |words: &[&str]| rxpath(&[&["explain"], words].concat()).ok();
    for (words, wanted) in [
        (&["net.core.rmem_max"][..], "rmem-max: May a program"),
        (&["TCPBacklogDrop"], "tcp_add_backlog (net/ipv4/tcp_ipv4.c)"),
        (&["socket_rcvbuff"], "SOCKET_RCVBUFF: drop reason"),
        (&["irq", "affinity"], "IRQ affinity: term"),
        (&["rings", "rx"], "ethtool -G DEV rx MAX"),
        (&["exit", "4"], "inconclusive"),
        (&["socket-queue"], "stage of diagnose"),
        (&["udp-livelock"], "rxpath run udp-livelock"),
    ] {
        assert!(page(words).contains(wanted), "{words:?}: {}", page(words));
    }
    let several = page(&["accept"]);
    assert!(several.contains("somaxconn  ") && several.contains("accept queue"), "{several}");
    assert!(several.contains("One of them: rxpath explain NAME"), "{several}");
}
