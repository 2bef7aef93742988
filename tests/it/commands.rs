//! The commands that rules and remedies print to be copied: each is one that its program understands.
//!
//! They run in a network namespace of their own, on a veth. What would act on the whole machine is not done: of a sysctl and
//! of a file its place is looked for, of a verb the program's own list. A program that is not installed is a named skip.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rxpath_tune::rules;

use crate::skip::skip;
use words::{commands, filled};

/// What programs say of words that they do not understand.
const NOT_UNDERSTOOD: &[&str] = &[
    "bad usage",
    "bad command line",
    "syntax error",
    "Error: argument",
    "is unknown",
    "nknown parameter",
    "nknown qdisc",
    "nknown option",
    "no value for parameter",
    "parameters missing",
    "garbage instead",
    "not complete",
    "not enough arguments",
    "no command specified",
    "must have PROG",
    "unrecognized option",
    "unrecognized subcommand",
    "unexpected argument",
    "required arguments",
    "invalid option",
    "invalid PID",
    "Bad argument",
    "Invalid argument to",
    "What is",
    "command not found",
    "Usage:",
    "usage:",
];

/// Words of ethtool that some versions in use do not know; where its help has them they are tried.
const NEW_WORDS: &[&str] = &["tcp-data-split", "xfrm"];

/// Programs that the test's own packages have.
const OURS: &[&str] =
    &["ethtool", "ip", "iptables", "nft", "nstat", "ss", "sysctl", "taskset", "tc"];

/// What one text says, by who says it.
type Said = (String, String);

/// The four texts of each rule that hold commands, and the advice of its findings.
fn of_rules() -> Vec<Said> {
    let texts = rules::all().flat_map(|rule| {
        [rule.set_now, rule.persist, rule.undo, rule.verify].map(|it| (rule.id.into(), it.into()))
    });
    let advice = sources("crates/rxpath-tune/src/rules").into_iter().flat_map(|(name, text)| {
        let calls = text.split(".advice(").skip(1).map(|call| {
            let all: Vec<String> = literals(&call[..call.len().min(600)]);
            all.into_iter().next().unwrap_or_default()
        });
        calls.map(|text| (name.clone(), text)).collect::<Vec<_>>()
    });
    texts.chain(advice).collect()
}

/// Everything in backticks that the diagnosis says.
fn of_remedies() -> Vec<Said> {
    let all = sources("crates/rxpath-diagnose/src").into_iter();
    all.flat_map(|(name, text)| {
        let of_literal = |literal: String| {
            let quoted: Vec<String> =
                literal.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            quoted
        };
        let quoted = literals(&text).into_iter().flat_map(of_literal);
        quoted.map(|command| (name.clone(), format!("`{command}`"))).collect::<Vec<_>>()
    })
    .collect()
}

/// The program's own Rust below a directory, without tests: path from the project's root, and text.
pub fn sources(dir: &str) -> Vec<(String, String)> {
    files(dir, &["rs"])
}

/// The same of all files with one of these endings.
pub fn files(dir: &str, endings: &[&str]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut dirs = vec![root().join(dir)];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.extend((!path.ends_with("tests")).then_some(path));
                continue;
            }
            let ending = path.extension().and_then(|ending| ending.to_str());
            if ending.is_some_and(|it| endings.contains(&it)) && !path.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
                let place = path.strip_prefix(root()).unwrap().display().to_string();
                all.push((place, own));
            }
        }
    }
    all
}

/// What a source's literals fill in, and a value for it.
const HOLES: &[(&str, &str)] = &[
    ("{option}", ""),
    ("{threads}", "2"),
    ("--threads {}", "--threads 2"),
    ("{MAX}={}", "net.netfilter.nf_conntrack_max=1"),
    ("{}", "DEV"),
];

/// The string literals of a source, comments left out and holes filled.
pub fn literals(source: &str) -> Vec<String> {
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let text = lines.collect::<Vec<_>>().join("\n").replace("\\\"", "\u{2}");
    let one = |literal: &str| {
        let joined: Vec<&str> = literal.split("\\\n").map(str::trim_start).collect();
        let literal = joined.concat().replace('\u{2}', "\"");
        HOLES.iter().fold(literal, |text, (hole, value)| text.replace(hole, value))
    };
    text.split('"').skip(1).step_by(2).map(one).collect()
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn inside(script: &str) -> Output {
    // A command that watches until it is interrupted has understood its words by then.
    inside_for("3", script)
}

/// The same for at most so many seconds.
fn inside_for(longest_s: &str, script: &str) -> Output {
    let made =
        "ip link add rxv0 type veth peer name rxv1 && ip link set rxv0 up && ip link set rxv1 up";
    // Some write into the directory that they name before.
    let here = tempfile::tempdir().unwrap();
    Command::new("timeout")
        .args(["-k", "1", longest_s, "unshare", "-rn", "bash", "-c"])
        .arg(format!("{made} >&2 && {{ {script}\n}}"))
        .current_dir(here.path())
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

fn help(program: &str) -> String {
    Command::new(program).arg("--help").output().map(|output| told(&output)).unwrap_or_default()
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.unwrap().status.success()
}

/// What came of a command.
enum Came {
    Fine,
    Wrong(String),
    /// Name of a skip, and what is missing.
    NotRun(&'static str, String),
}

/// The word for a command's way of being tried, and what came of it.
fn tried(command: &str) -> Came {
    let filled = filled(command);
    let mut words = filled.split(' ');
    let (program, second) = (words.next().unwrap(), words.next().unwrap_or_default());
    let (option, third) = (second, words.next().unwrap_or_default());
    match program {
        "echo" | "cat" | "cd" | "ls" | "grep" | "zgrep" if command.contains('/') => places(command),
        "sysctl" if option == "--system" => Came::Fine,
        "sysctl" => settings(command),
        "serve" | "load" => own_options(&filled),
        "rxpath" => own(&filled),
        "for" => of_output(&inside(&filled)),
        _ if !is_installed(program) => {
            let name = if OURS.contains(&program) { "programs" } else { "rare_programs" };
            Came::NotRun(name, program.to_owned())
        }
        // Verbs that would act on the machine's services.
        "systemctl" | "tuned-adm" | "udevadm" => {
            if help(program).contains(second) {
                Came::Fine
            } else {
                Came::Wrong(format!("{program} has no `{second}`"))
            }
        }
        "augenrules" => Came::Fine,
        "ethtool" => {
            let known = help("ethtool");
            match NEW_WORDS.iter().find(|word| filled.contains(**word) && !known.contains(**word)) {
                Some(word) => Came::NotRun("ethtool_words", (*word).to_owned()),
                None => of_output(&inside(&filled)),
            }
        }
        // The priority of a command that the text leaves out.
        "nice" | "chrt" if !third.is_empty() && !filled.contains("$$") => {
            of_output(&inside(&format!("{filled} true")))
        }
        _ => of_output(&inside(&filled)),
    }
}

fn of_output(done: &Output) -> Came {
    let said = told(done);
    if said.contains("qdisc kind is unknown") {
        return Came::NotRun("qdisc_fq", "the qdisc".into());
    }
    if NOT_UNDERSTOOD.iter().any(|words| said.contains(words)) {
        Came::Wrong(said)
    } else {
        Came::Fine
    }
}

/// A command of rxpath's: what changes nothing is done, of the others the words are read.
fn own(command: &str) -> Came {
    let mut words: Vec<&str> = command.split(' ').skip(1).collect();
    if !matches!(words[..], ["explain", ..] | ["tune", "plan", ..]) {
        words.push("--help");
    }
    refused(&Command::new(env!("CARGO_BIN_EXE_rxpath")).args(words).output().unwrap())
}

/// Options of a workload as a remedy names them; a value may be left to the reader.
fn own_options(command: &str) -> Came {
    let words: Vec<&str> = command.split(' ').collect();
    let (workload, options) = words.split_at(2.min(words.len()));
    let mut run = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    let done = run.args(workload).arg("127.0.0.1:0").args(options).arg("--help").output().unwrap();
    refused(&done)
}

/// What rxpath says of its own words: a usage error names them.
fn refused(done: &Output) -> Came {
    let said = told(done);
    let wrong = ["unexpected argument", "unrecognized", "invalid value", "no such rule"];
    let is_wrong = done.status.code() == Some(2) && wrong.iter().any(|it| said.contains(it));
    if is_wrong { Came::Wrong(said) } else { Came::Fine }
}

/// Sysctls of a command: they are there, here or on a captured host.
fn settings(command: &str) -> Came {
    let words = command.split(' ').skip(1).filter(|word| *word != "-w" && *word != "-a");
    let keys = words.map(|word| word.split('=').next().unwrap());
    // A value of several numbers has blanks.
    let keys =
        keys.filter(|key| key.contains('.') && !key.starts_with(|c: char| !c.is_ascii_lowercase()));
    let path = |key: &str| format!("/proc/sys/{}", key.replace('.', "/"));
    all_there(keys.map(path))
}

/// Files of a command: they are there, here or on a captured host.
fn places(command: &str) -> Came {
    let words = command.split([' ', '\'', '"']).filter(|word| word.starts_with('/'));
    all_there(words.filter(|word| !word.starts_with("/dev/")).flat_map(braces))
}

/// What the shell makes of one pair of braces.
fn braces(word: &str) -> Vec<String> {
    let Some((before, rest)) = word.split_once('{') else { return vec![word.to_owned()] };
    let (inner, after) = rest.split_once('}').unwrap();
    inner.split(',').map(|part| format!("{before}{part}{after}")).collect()
}

/// Files that only some kernels or machines have, and no captured host here.
const ELSEWHERE: &[&str] = &[
    // CONFIG_IKCONFIG_PROC.
    "/proc/config.gz",
    // A mounted tracefs, securityfs or debugfs.
    "/sys/kernel/tracing/",
    "/sys/kernel/security/",
    "/sys/kernel/debug/",
    // An IOMMU, an ASPM link, a control group of the reader's.
    "/sys/kernel/iommu_groups/",
    "/sys/class/net/DEV/device/link/",
    "/sys/fs/cgroup/GROUP/",
    // A CPU whose clock the kernel sets.
    "/sys/devices/system/cpu/intel_pstate/",
    "/sys/devices/system/cpu/cpufreq/boost",
];

fn all_there(paths: impl Iterator<Item = String>) -> Came {
    let mut some = false;
    for path in paths {
        some = true;
        if ELSEWHERE.iter().any(|start| path.starts_with(start)) {
            continue;
        }
        let pattern = ["DEV", "IF", "policyN", "stateM", "cpuN", "rx-N", "tx-N", "N", "PID", "TID"]
            .iter()
            .fold(path.clone(), |text, name| {
                let any = name.trim_end_matches(|c: char| c.is_ascii_uppercase());
                words::fill(&text, name, &format!("{any}*"))
            });
        let trees = [
            String::new(),
            "testdata/rules/base".into(),
            "testdata/hosts/*".into(),
            "testdata/hosts/*/*".into(),
        ];
        let found = trees.iter().any(|tree| {
            let place = if tree.is_empty() {
                pattern.clone()
            } else {
                format!("{}/{tree}{pattern}", root().display())
            };
            let sh = Command::new("bash")
                .args(["-c", &format!("compgen -G '{place}' > /dev/null")])
                .status();
            sh.unwrap().success()
        });
        if !found {
            return Came::Wrong(format!("no {path} here or on a captured host"));
        }
    }
    if some { Came::Fine } else { Came::Wrong("it names no file".into()) }
}

#[test]
fn every_command_is_one_that_its_program_understands() {
    let can_run =
        Command::new("unshare").args(["-rn", "true"]).status().is_ok_and(|it| it.success());
    if !can_run {
        return skip("commands", "no network namespace may be made");
    }
    let mut by: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (id, text) in of_rules().into_iter().chain(of_remedies()) {
        for command in commands(&text) {
            by.entry(command).or_default().insert(id.clone());
        }
    }
    let (mut wrong, mut skips) = (Vec::new(), BTreeMap::<_, BTreeSet<String>>::new());
    for (command, ids) in &by {
        match tried(command) {
            Came::Fine => {}
            Came::Wrong(why) => wrong.push(format!("{ids:?}: `{command}`: {why}")),
            Came::NotRun(name, what) => drop(skips.entry(name).or_default().insert(what)),
        }
    }
    for (name, what) in skips {
        let what: Vec<String> = what.into_iter().collect();
        skip(name, &format!("not here: {}", what.join(", ")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(by.len() > 180, "{} commands", by.len());
}

/// The rules of a firewall are one script: each needs the one before it.
#[test]
fn the_exemption_from_tracking_is_a_script_that_nft_takes() {
    let rule = rules::find("conntrack-active").unwrap();
    let all = commands(rule.set_now);
    let nft = all.iter().filter_map(|command| command.strip_prefix("nft "));
    let lines: Vec<String> = nft.map(|line| filled(line).replace('\'', "")).collect();
    assert_eq!(lines.len(), 5, "{all:?}");
    assert!(lines.iter().any(|line| line.contains("output")), "replies too");
    if !is_installed("nft") {
        return skip("programs", "not here: nft");
    }
    let script = format!("printf '{}' | nft -c -f -", lines.join("\\n") + "\\n");
    let done = inside_for("60", &script);
    assert!(done.status.success() || told(&done).contains("not supported"), "{}", told(&done));
}

/// Keys of units that a text names are keys that systemd knows.
#[test]
fn keys_of_units_are_known_to_systemd() {
    let keys: BTreeSet<String> = rules::all()
        .filter(|rule| rule.persist.contains("unit"))
        .flat_map(|rule| rule.persist.split([' ', ',', ';']))
        .filter_map(|word| word.strip_suffix('=').filter(|key| key.starts_with(char::is_uppercase)))
        .map(str::to_owned)
        .collect();
    assert!(keys.len() >= 3, "{keys:?}");
    if !is_installed("systemd-analyze") {
        return skip("rare_programs", "not here: systemd-analyze");
    }
    let dir = tempfile::tempdir().unwrap();
    let unit = dir.path().join("rxpath-keys.service");
    let all: Vec<&str> = keys.iter().map(String::as_str).collect();
    let lines = format!("{}=1\n", all.join("=1\n"));
    std::fs::write(&unit, format!("[Service]\nExecStart=/bin/true\n{lines}")).unwrap();
    let done = Command::new("systemd-analyze").arg("verify").arg(&unit).output().unwrap();
    assert!(!told(&done).contains("Unknown key"), "{}", told(&done));
}

/// Names that stand for something a reader knows; no other word in capitals is left in a command.
#[test]
fn no_command_has_a_name_that_nobody_filled_in() {
    for rule in rules::all() {
        for text in [rule.set_now, rule.verify, rule.undo, rule.persist] {
            assert!(!text.contains("KEY"), "{}: {text}", rule.id);
        }
    }
}

/// Two rules of one file had one text: what one says of side effects must be its own.
#[test]
fn rules_of_different_settings_do_not_share_their_words() {
    for id in ["numa-balancing", "watchdogs", "timer-migration", "vm-stat-interval"] {
        let rule = rules::find(id).unwrap();
        for other in rules::all().filter(|rule| rule.id != id) {
            assert_ne!(rule.not_when, other.not_when, "{id} and {}", other.id);
            assert_ne!(rule.verify, other.verify, "{id} and {}", other.id);
        }
    }
}
