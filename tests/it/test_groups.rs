//! `tools/test-groups.sh`: which groups of tests have a second run, and what it forgives.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::executable;
use crate::program::said;

/// A `cargo` whose runs say and end as these scripts.
const CARGO: &str = "#!/bin/sh\ndir=$(dirname \"$0\")\necho \"$*\" >>\"$dir/calls\"\n\
                     . \"$dir/$(grep -c '' \"$dir/calls\")\"\n";

/// Two programs of tests of which the second ends so.
fn run_of(rest: &str) -> String {
    format!(
        "cat <<END\n     Running unittests src/lib.rs (target/a)\ntest result: ok. 7 passed; 0 failed; 0 ignored\n\
         \x20    Running tests/it/main.rs (target/b)\n{rest}\nEND\n"
    )
}

/// The headers of these failed tests, and the last line of their program.
fn failed(names: &[&str]) -> String {
    let headers: Vec<String> =
        names.iter().map(|name| format!("---- {name} stdout ----\npanicked")).collect();
    let last = format!("test result: FAILED. 9 passed; {} failed; 0 ignored", names.len());
    run_of(&format!("{}\n{last}", headers.join("\n"))) + "exit 101\n"
}

fn passed(count: u32) -> String {
    run_of(&format!("test result: ok. {count} passed; 0 failed; 0 ignored")).replace("7 p", "0 p")
}

/// What a group with these runs of cargo comes to, and the second call of cargo, if there was one.
fn grouped(runs: &[String]) -> (String, Option<String>) {
    let dir = tempfile::tempdir().unwrap();
    executable::write(&dir.path().join("cargo"), CARGO);
    for (at, run) in (1..).zip(runs) {
        fs::write(dir.path().join(at.to_string()), run).unwrap();
    }
    let script = "set -eu; PATH=$0:$PATH log=$0/log; . tools/test-groups.sh\n\
                  group g '--skip a:: --test-threads=5' --lib --test it >/dev/null 2>&1\n\
                  printf '%s' \"$status $seconds\"";
    let mut sh = Command::new("sh");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let whole = said(sh.args(["-c", script]).arg(dir.path()).current_dir(root)).ok();
    let calls = fs::read_to_string(dir.path().join("calls")).unwrap();
    let calls: Vec<&str> = calls.lines().collect();
    assert!(calls[0].ends_with("--lib --test it -- --skip a:: --test-threads=5"), "{calls:?}");
    (whole, calls.get(1).map(|call| (*call).to_owned()))
}

#[test]
fn tests_that_pass_in_a_second_run_are_named() {
    assert_eq!(grouped(&[passed(3)]), ("0 ".into(), None));
    let (whole, second) = grouped(&[failed(&["x::one", "two"]), passed(2)]);
    let named = "0 passed only in a second run: x::one\npassed only in a second run: two\n";
    assert_eq!(whole, named);
    let second = second.unwrap();
    let words = "--lib --test it -- --test-threads=1 --exact x::one two";
    assert!(second.ends_with(words), "{second}");
}

#[test]
fn a_second_run_forgives_no_test_that_fails_again_or_does_not_run() {
    for second in [failed(&["one"]), passed(0), "exit 101\n".to_owned()] {
        let (whole, call) = grouped(&[failed(&["one"]), second]);
        assert_eq!(whole, "1 ");
        assert!(call.is_some());
    }
}

#[test]
fn a_group_has_no_second_run_if_not_all_that_failed_in_it_is_named() {
    let only_one_of_two = failed(&["one"]).replace("1 failed", "2 failed");
    let crashed = failed(&["one"]).replace("test result: ok. 7", "signal: 11\n#");
    let not_built = "echo 'error: could not compile `x`'\nexit 101\n".to_owned();
    // In the middle of a line.
    let killed = "printf 'test one ... '\nkill -9 $$\n".to_owned();
    let four = failed(&["a", "b", "c", "d"]);
    for first in [only_one_of_two, crashed, not_built, killed, four] {
        assert_eq!(grouped(&[first.clone(), passed(4)]), ("1 ".into(), None), "{first}");
    }
}
