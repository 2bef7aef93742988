//! Scripts that clean up at their end do so after a signal too.

use std::fs;
use std::path::{Path, PathBuf};

use crate::processes::scripts;

/// Signals that end a script. After one of them dash does not run the trap of EXIT, unless another trap calls `exit`. Bash does, but
/// `sh` is dash on Debian and Ubuntu.
const SIGNALS: [&str; 3] = ["HUP", "INT", "TERM"];

/// The signals that end a script without its trap of EXIT; none if it has no such trap.
fn fatal(script: &str) -> Vec<&'static str> {
    let traps = script.lines().filter(|line| line.trim_start().starts_with("trap "));
    let conditions = traps.flat_map(|line| {
        let line = line.split(" #").next().unwrap_or(line);
        line.rsplit(['\'', '"']).next().unwrap_or(line).split_whitespace()
    });
    let trapped: Vec<&str> = conditions.collect();
    let cleans_up = trapped.contains(&"EXIT");
    SIGNALS.into_iter().filter(|signal| cleans_up && !trapped.contains(signal)).collect()
}

/// A script, and those that it reads.
fn with_sources(script: &Path, all: &[PathBuf]) -> String {
    let own = fs::read_to_string(script).unwrap();
    let sources = own.lines().filter(|line| line.trim_start().starts_with(". "));
    let names = sources.filter_map(|line| line.trim_end_matches('"').rsplit('/').next());
    let names: Vec<&str> = names.collect();
    let is_read = |path: &&PathBuf| names.iter().any(|name| path.ends_with(name));
    let texts = all.iter().filter(is_read).map(|path| fs::read_to_string(path).unwrap());
    texts.fold(own.clone(), |text, read| text + "\n" + &read)
}

#[test]
fn every_script_that_cleans_up_does_so_after_a_signal() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for dir in ["bench", "deploy", "packaging", "tests", "tools"] {
        scripts(&root.join(dir), &mut all);
    }
    assert!(all.iter().any(|path| path.ends_with("tools/test.sh")), "{all:?}");
    let faults = all.iter().map(|path| (path, fatal(&with_sources(path, &all))));
    let faults = faults.filter(|(_, signals)| !signals.is_empty());
    let faults: Vec<String> = faults
        .map(|(path, signals)| format!("{}: no trap of {}", path.display(), signals.join(" ")))
        .collect();
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn a_trap_of_the_end_alone_is_none_of_a_signal() {
    assert_eq!(fatal("trap 'kill -s TERM $pid' EXIT # not HUP\n"), SIGNALS);
    assert_eq!(fatal("f() {\n\ttrap end EXIT\n\ttrap 'exit 130' INT\n}\n"), ["HUP", "TERM"]);
    assert!(fatal("trap end EXIT\ntrap 'exit 130' HUP INT TERM # why\n").is_empty());
    assert!(fatal("exit 1\n").is_empty());
}
