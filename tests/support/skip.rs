//! Tests that cannot run on this machine: named, with a reason, or a failure.

use std::fs::OpenOptions;
use std::io::Write;

/// The tests that may skip themselves, with the reason.
const LIST: &str = include_str!("../skips.toml");

/// Says that the test `name` does not run here because of `reason`. The caller returns.
///
/// # Panics
/// When `name` is not in `tests/skips.toml`: a skip that nobody agreed to is a failure.
pub fn skip(name: &str, reason: &str) {
    let listed = [format!("[skip.{name}]"), format!("[skip.\"{name}\"]")];
    assert!(
        LIST.lines().any(|line| listed.iter().any(|head| line.trim() == head)),
        "{name} cannot run here ({reason}) and is not listed in tests/skips.toml"
    );
    eprintln!("skipped: {name}: {reason}");
    if let Some(path) = std::env::var_os("RXPATH_SKIP_LOG") {
        let mut log = OpenOptions::new().append(true).create(true).open(path).unwrap();
        writeln!(log, "{name}\t{reason}").unwrap();
    }
}
