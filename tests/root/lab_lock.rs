//! The machine's lab lock for ordinary users, on a host that was just booted: `/run` is root's and has no lock file.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::bed::{Bed, may_run};
use crate::skip::skip;

/// An endpoint that was asked for the lock.
struct Locker {
    child: Child,
    input: Option<ChildStdin>,
    _output: BufReader<ChildStdout>,
    /// Who else has the lock.
    not_locked: Option<String>,
}

impl Locker {
    fn of(mut child: Child, secret: &str) -> Self {
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        writeln!(input, r#"{{"id":1,"do":"hello","lock":true,"secret":"{secret}"}}"#).unwrap();
        let mut lines = output.by_ref().lines().map(Result::unwrap);
        let answer = lines.find(|line| line.contains(r#""id":1"#)).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let hello = &answer["answer"]["ok"];
        assert!(hello["pid"].is_number(), "{answer}");
        let not_locked = hello["not_locked"].as_str().map(str::to_owned);
        Self { child, input: Some(input), _output: output, not_locked }
    }

    fn has_lock(&self) -> bool {
        self.not_locked.is_none()
    }

    /// Whether it was told that this one has the lock.
    fn names(&self, other: &Self) -> bool {
        let process = format!("another experiment runs there (pid {}, ", other.child.id());
        self.not_locked.as_ref().is_some_and(|why| why.contains(&process))
    }

    fn end(mut self) {
        self.input = None;
        self.child.wait().unwrap();
    }
}

/// An endpoint of this user; 0 is root.
fn endpoint(program: &Path, user: u32) -> Command {
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={user}")]).arg("--clear-groups");
    command.arg(program).arg("endpoint");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A copy of the program that every user may run.
fn program(dir: &Path) -> PathBuf {
    let program = dir.join("rxpath");
    crate::executable::copy(env!("CARGO_BIN_EXE_rxpath"), &program);
    for path in [dir, program.as_path()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    program
}

#[test]
fn users_and_root_exclude_each_other_though_users_may_create_no_lock_file() {
    if !may_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path());
    let ask = |user, secret| Locker::of(endpoint(&program, user).spawn().unwrap(), secret);
    let first = ask(65_533, "a");
    assert!(first.has_lock(), "{:?}", first.not_locked);
    assert!(!Path::new("/run/rxpath.lock").exists(), "a user can't create it");
    for user in [65_534, 0] {
        let other = ask(user, "b");
        assert!(other.names(&first), "{:?}", other.not_locked);
        other.end();
    }
    first.end();
    let root = ask(0, "c");
    assert!(root.has_lock(), "{:?}", root.not_locked);
    let user = ask(65_534, "d");
    assert!(user.names(&root), "{:?}", user.not_locked);
    user.end();
    // Now there is a file, which a user can lock and not sign.
    root.end();
    let user = ask(65_534, "e");
    let root = ask(0, "f");
    assert!(user.has_lock() && root.names(&user), "{:?}", root.not_locked);
    root.end();
    user.end();
}

#[test]
fn two_hosts_of_one_run_may_be_one_machine() {
    if !may_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path());
    let ask = |secret| Locker::of(endpoint(&program, 65_534).spawn().unwrap(), secret);
    let first = ask("one-run");
    let (same, other) = (ask("one-run"), ask("another"));
    assert!(first.has_lock() && same.has_lock(), "{:?}", same.not_locked);
    assert!(other.names(&first), "{:?}", other.not_locked);
    for locker in [same, other, first] {
        locker.end();
    }
}

/// Abstract addresses are those of a network namespace: the lock is the machine's all the same.
#[test]
fn who_works_in_another_network_namespace_is_seen() {
    let Some(bed) = Bed::new() else { return };
    if let Err(error) = fs::File::open("/proc/1/ns/net") {
        return skip("first_netns", &error.to_string());
    }
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path());
    let user = Locker::of(endpoint(&program, 65_534).spawn().unwrap(), "a");
    assert!(user.has_lock(), "{:?}", user.not_locked);
    let (tx, _rx) = bed.pair(1);
    let mut inside = endpoint(&program, 0);
    let root = Locker::of(tx.run(move |_| inside.spawn()).unwrap().unwrap(), "b");
    assert!(root.names(&user), "{:?}", root.not_locked);
    root.end();
    user.end();
}
