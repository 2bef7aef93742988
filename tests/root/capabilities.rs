//! What `check` says it was not shown is shown to who is given the named capability, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::program::said;
use crate::skip::skip;

/// What each rule lacks, by rule: the capabilities that its words name.
type Lacking = BTreeMap<String, BTreeSet<String>>;

/// Words like `CAP_NET_ADMIN` in a text.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
    words.filter(|word| word.starts_with("CAP_")).map(str::to_owned).collect()
}

/// `rxpath check` of a user without any privilege but `capabilities`.
fn lacking(program: &Path, capabilities: &BTreeSet<String>) -> Lacking {
    let sets = capabilities.iter().fold("-all".to_owned(), |list, capability| {
        list + ",+" + &capability.trim_start_matches("CAP_").to_lowercase()
    });
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    for option in ["inh-caps", "ambient-caps", "bounding-set"] {
        command.arg(format!("--{option}={sets}"));
    }
    command.arg(program).args(["check", "--goal", "latency", "--json"]);
    let output = said(&mut command);
    let value = output.ends(0).json();
    let mut lacking = Lacking::new();
    for list in ["cautions", "records", "unseen"] {
        for note in value["result"][list].as_array().unwrap() {
            let text = note["text"].as_str().unwrap();
            let needs =
                text.split_once("needs ").map_or_else(BTreeSet::new, |(_, rest)| named(rest));
            if !needs.is_empty() {
                lacking.entry(note["id"].as_str().unwrap().into()).or_default().extend(needs);
            }
        }
    }
    lacking
}

/// Every right that is named is enough for what it is named for, by itself; and none is asked for twice.
#[test]
fn what_is_said_to_be_needed_is_enough() {
    if !nix::unistd::geteuid().is_root() {
        return skip("check", "not root");
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("rxpath");
    crate::executable::copy(env!("CARGO_BIN_EXE_rxpath"), &program);
    for path in [dir.path(), &program] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    // A socket of another user, whose program is not shown without further rights.
    let _socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let plain = lacking(&program, &BTreeSet::new());
    assert!(!plain.is_empty(), "a plain user is shown everything");
    for (rule, needs) in &plain {
        // What was hidden behind the first gap may need more, and is then named: within a few looks all is seen.
        let mut given = needs.clone();
        let mut rounds = 0;
        while let Some(more) = lacking(&program, &given).remove(rule) {
            let again: Vec<_> = more.intersection(&given).collect();
            assert!(again.is_empty(), "{rule} has {given:?} and still asks for {again:?}");
            given.extend(more);
            rounds += 1;
            assert!(rounds < 5, "{rule}: {given:?}");
        }
    }
}
