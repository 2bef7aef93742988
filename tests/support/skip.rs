//! Tests that cannot run on this machine: named, with a reason, or a failure.

use std::fs::OpenOptions;
use std::io::Write;

/// The tests that may skip themselves, with the reason.
const LIST: &str = include_str!("../skips.toml");

/// Says that the test `name` does not run here because of `reason`. The caller returns.
///
/// # Panics
/// When `name` is not in `tests/skips.toml`: a skip that nobody agreed to is a failure. When `RXPATH_REQUIRE` names it
/// (names with blanks between them): on such a machine the test must run.
pub fn skip(name: &str, reason: &str) {
    let required = std::env::var("RXPATH_REQUIRE").unwrap_or_default();
    refuse_required(&required, name, reason);
    let listed = [format!("[skip.{name}]"), format!("[skip.\"{name}\"]")];
    assert!(
        LIST.lines().any(|line| listed.iter().any(|head| line.trim() == head)),
        "{name} cannot run here ({reason}) and is not listed in tests/skips.toml"
    );
    // The log has a line for each: what a tool said may have several.
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!("skipped: {name}: {reason}");
    if let Some(path) = std::env::var_os("RXPATH_SKIP_LOG") {
        let mut log = OpenOptions::new().append(true).create(true).open(path).unwrap();
        writeln!(log, "{name}\t{reason}").unwrap();
    }
}

fn refuse_required(required: &str, name: &str, reason: &str) {
    let is_required = required.split_whitespace().any(|one| one == name);
    assert!(!is_required, "{name} is required here (RXPATH_REQUIRE) and cannot run: {reason}");
}

#[test]
fn a_required_test_may_not_skip_itself() {
    let refused = |required: &'static str| {
        std::panic::catch_unwind(|| refuse_required(required, "root_lab", "no root")).is_err()
    };
    assert!(refused("root_lab") && refused("second_cpu root_lab"));
    assert!(!refused("") && !refused("root_labs second_cpu"));
}
