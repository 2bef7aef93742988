//! `tools/bench-rows.sh`: the exit status of several benchmarks.

use std::path::Path;
use std::process::Command;

/// The exit status of the whole after benchmarks with these ones.
fn whole(statuses: &[u8]) -> String {
    let mut words = String::from("set -eu; . tools/bench-rows.sh; ");
    for status in statuses {
        words += &format!("worst {status}; ");
    }
    let output = Command::new("sh")
        .args(["-c", &(words + "printf %s \"$status\"")])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_missed_goal_is_not_hidden_by_a_benchmark_that_decided_nothing() {
    assert_eq!(whole(&[0, 0]), "0");
    assert_eq!(whole(&[0, 4, 0]), "4");
    assert_eq!((whole(&[1, 4]), whole(&[4, 1, 4])), ("1".into(), "1".into()));
    assert_eq!((whole(&[4, 3]), whole(&[3, 4])), ("3".into(), "3".into()));
    assert_eq!((whole(&[3, 1]), whole(&[1, 3])), ("1".into(), "1".into()));
}
