//! The commands that `explain` prints to be copied: each is one that its program understands.
//!
//! They run in a network namespace of their own, on a veth; a sysctl is read and not written, because some are the whole
//! machine's. A command whose program is not installed is listed with that reason; what the program would say of its
//! words is then held by [`ETHTOOL`] alone.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use rxpath_tune::rules;

/// Programs whose commands run in the namespace.
const RUN: [&str; 6] = ["ip", "tc", "nft", "iptables", "taskset", "ethtool"];

/// What stands for a value in a command, and a value for it.
const VALUES: [(&str, &str); 13] = [
    ("DEV", "rxv0"),
    ("PORT", "5000"),
    ("CPUS", "0"),
    ("CPU", "0"),
    ("PID", "$$"),
    ("MASK", "1"),
    ("MAX", "512"),
    ("N", "1"),
    ("NAME", "x"),
    ("FILE", "/dev/null"),
    ("COMMAND", "true"),
    ("on|off", "on"),
    ("6d:5a:6d:5a:...", "6d:5a:6d:5a"),
];

/// ethtool(8): options and the words that may follow the device.
const ETHTOOL: [(&str, &[&str]); 13] = [
    ("-A", &["autoneg", "rx", "tx"]),
    ("-C", &["adaptive-rx", "rx-usecs", "rx-frames", "tx-usecs", "cqe-mode-rx"]),
    ("-G", &["rx", "tx", "rx-buf-len", "tcp-data-split"]),
    (
        "-K",
        &[
            "gro",
            "lro",
            "rx",
            "tso",
            "gso",
            "rxhash",
            "rxvlan",
            "ntuple",
            "rx-gro-hw",
            "rx-gro-list",
            "rx-udp-gro-forwarding",
            "rx-all",
            "rx-fcs",
        ],
    ),
    ("-L", &["combined", "rx", "tx"]),
    ("-N", &["delete", "rx-flow-hash"]),
    ("-Q", &["queue_mask"]),
    ("-X", &["equal", "hkey", "hfunc", "xfrm", "context"]),
    ("-n", &[]),
    ("-s", &["autoneg"]),
    ("--set-eee", &["eee"]),
    ("--set-fec", &["encoding"]),
    ("--set-priv-flags", &["x"]),
];

/// What programs say of words that they do not understand.
const NOT_UNDERSTOOD: [&str; 14] = [
    "bad usage",
    "bad command line",
    "syntax error",
    "Error: argument",
    "is unknown",
    "garbage instead",
    "not complete",
    "no command specified",
    "nknown option",
    "unrecognized option",
    "invalid option",
    "Bad argument",
    "Invalid argument to",
    "What is",
];

/// The pieces of a text that are commands: what follows a comma, or stands in brackets at the end, is prose.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut text = text.to_owned();
    while let (Some(begin), Some(end)) = (text.find("for pid in"), text.find("; done")) {
        found.push(text[begin..end + 6].to_owned());
        text.replace_range(begin..end + 6, "");
    }
    // The braces of nft hold semicolons.
    let text = text.replace("raw; }", "raw\u{1} }");
    let pieces = text.split([';', ',']).flat_map(|piece| piece.split(". With iptables:"));
    for piece in pieces.flat_map(|piece| piece.split(": ")) {
        let piece = piece.trim().trim_start_matches("or ").trim_start_matches("and ");
        let piece = piece.split(" (").next().unwrap().trim().replace('\u{1}', ";");
        let first = piece.split(' ').next().unwrap();
        if RUN.contains(&first) || first == "sysctl" {
            found.push(piece);
        }
    }
    // A name in a sentence: "taskset or numactl for the application".
    found.retain(|command| !command.contains(" or numactl"));
    found
}

fn filled(command: &str) -> String {
    VALUES.iter().fold(command.to_owned(), |text, (name, value)| fill(&text, name, value))
}

/// Puts a value in the place of a name that stands alone: the `N` of `-N` and of `NAME` is none.
fn fill(text: &str, name: &str, value: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, behind) = (&rest[..at], &rest[at + name.len()..]);
        out += before;
        let joins = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let alone = !out.ends_with(|c: char| joins(c) || c == '-') && !behind.starts_with(joins);
        out += if alone { value } else { name };
        rest = behind;
    }
    out + rest
}

fn inside(script: &str) -> Output {
    let made =
        "ip link add rxv0 type veth peer name rxv1 && ip link set rxv0 up && ip link set rxv1 up";
    Command::new("unshare")
        .args(["-rn", "bash", "-c", &format!("{made} >&2 && {{ {script}\n}}")])
        .env("LC_ALL", "C")
        .output()
        .unwrap()
}

fn is_installed(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .unwrap()
        .status
        .success()
}

/// Why a sysctl's command is wrong.
fn bad_sysctl(command: &str) -> Option<String> {
    let keys =
        command.strip_prefix("sysctl -w ")?.split(' ').filter_map(|word| word.split_once('='));
    let wrong = |key: &str| {
        let known = ["net.", "kernel.", "vm."].iter().any(|start| key.starts_with(start));
        !known
            || key.replace("DEV", "").contains(|c: char| {
                !(c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c))
            })
    };
    keys.map(|(key, _)| key).find(|key| wrong(key)).map(|key| format!("{key} is no sysctl"))
}

fn bad_ethtool(command: &str) -> Option<String> {
    let words: Vec<&str> = command.split(' ').collect();
    let known = ETHTOOL.iter().find(|(option, _)| words.get(1) == Some(option));
    let Some((_, names)) = known else { return Some("no such option".into()) };
    match words.get(3) {
        None => None,
        Some(name) if names.contains(name) => None,
        Some(name) => Some(format!("{name} is not among its words")),
    }
}

#[test]
fn every_command_is_one_that_its_program_understands() {
    let can_run =
        Command::new("unshare").args(["-rn", "true"]).status().is_ok_and(|it| it.success());
    let (mut wrong, mut not_run, mut seen) = (Vec::new(), BTreeSet::new(), 0);
    for rule in rules::all() {
        for command in commands(rule.text.set_now) {
            seen += 1;
            let program = command.split(' ').next().unwrap().to_owned();
            let filled = filled(&command);
            let bad = match program.as_str() {
                "sysctl" => bad_sysctl(&command),
                "ethtool" => bad_ethtool(&filled),
                _ => None,
            };
            wrong.extend(bad.map(|why| format!("{}: `{command}`: {why}", rule.id)));
            if program == "sysctl"
                || command.starts_with("nft add chain")
                || command.starts_with("nft add rule")
            {
                continue;
            }
            if program != "for" && !is_installed(&program) {
                not_run.insert(format!("{command}: {program} is not installed"));
            } else if !can_run {
                not_run.insert(format!("{command}: no namespace may be made here"));
            } else {
                let done = inside(&filled);
                let said = String::from_utf8_lossy(&done.stderr).into_owned();
                if said.contains("qdisc kind is unknown") {
                    not_run.insert(format!("{command}: this kernel lacks the qdisc"));
                } else if NOT_UNDERSTOOD.iter().any(|words| said.contains(words)) {
                    wrong.push(format!("{}: `{filled}`: {said}", rule.id));
                }
            }
        }
    }
    println!("not run: {not_run:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen > 60, "{seen} commands");
}

/// The rules of a firewall are one script: each needs the one before it.
#[test]
fn the_exemption_from_tracking_is_a_script_that_nft_takes() {
    let rule = rules::find("conntrack-active").unwrap();
    let all = commands(rule.text.set_now);
    let lines: Vec<String> = all
        .iter()
        .filter_map(|command| command.strip_prefix("nft "))
        .map(|line| filled(line).replace('\'', ""))
        .collect();
    assert_eq!(lines.len(), 5, "{all:?}");
    assert!(lines.iter().any(|line| line.contains("output")), "replies too");
    if !is_installed("nft") {
        println!("not run: nft is not installed");
        return;
    }
    let done = inside(&format!("printf '{}' | nft -c -f -", lines.join("\\n") + "\\n"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!said.contains("syntax error"), "{said}");
}

/// Names that stand for something a reader knows; no other word in capitals is left in a command.
#[test]
fn no_command_has_a_name_that_nobody_filled_in() {
    for rule in rules::all() {
        for text in [rule.text.set_now, rule.text.verify, rule.text.undo, rule.text.persist] {
            assert!(!text.contains("KEY"), "{}: {text}", rule.id);
        }
    }
}

/// Two rules of one file had one text: what one says of side effects must be its own.
#[test]
fn rules_of_different_settings_do_not_share_their_words() {
    for id in ["numa-balancing", "watchdogs", "timer-migration", "vm-stat-interval"] {
        let text = rules::find(id).unwrap().text;
        for other in rules::all().filter(|rule| rule.id != id) {
            assert_ne!(text.not_when, other.text.not_when, "{id} and {}", other.id);
            assert_ne!(text.verify, other.text.verify, "{id} and {}", other.id);
        }
    }
}
