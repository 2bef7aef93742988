//! What a rule reads is in a capture: a captured host is judged as the host itself is.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use rxpath_host::Root;
use rxpath_host::lab::capture::sources;
use rxpath_host::read::root::Asked;
use rxpath_tune::{Ask, Goal, HostFacts, Scope, check};

use crate::cases::cases;
use crate::fixture::{Bench, dir};

/// What is read where it is and never captured, and why.
const LEFT_OUT: [(&str, &str); 14] = [
    ("/proc/net/udp", "socket tables name the peers"),
    ("/proc/net/tcp", "socket tables name the peers"),
    ("/proc/self/fd", "descriptors of this process"),
    ("/proc/thread-self/ns", "the namespaces of this thread"),
    ("/sys/kernel/security/lsm", "of the running host alone"),
    ("/sys/class/net/*/address", "an address"),
    ("/sys/class/net/*/addr_assign_type", "says nothing without the address"),
    ("/sys/class/net/*/device/features", "the same file as below /sys/bus/virtio"),
    ("/netlink", "answers, which the capture writes itself"),
    ("/sys/fs/cgroup", "groups of the capturing process, which are named when it runs"),
    ("/.dockerenv", "signs of a container: who captures it knows"),
    ("/run/.containerenv", "names the container and its image"),
    ("/run/systemd/container", "signs of a container: who captures it knows"),
    ("/var/run/secrets", "secrets"),
];

fn is_left_out(path: &str) -> bool {
    let fits = |pattern: &str| match pattern.split_once('*') {
        None => path.starts_with(pattern),
        Some((before, behind)) => path.starts_with(before) && path.ends_with(behind),
    };
    // Of processes only those that matter here are captured, by their names.
    let is_process = path
        .strip_prefix("/proc/")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    is_process || LEFT_OUT.iter().any(|(pattern, _)| fits(pattern))
}

/// Asks everything of a host, noting what is read.
fn ask_all(root: &Root, asked: &Asked) {
    let facts = HostFacts::collect(&root.clone().noting(asked), &Scope::default());
    for goal in [None].into_iter().chain(Goal::ALL.map(Some)) {
        check(&Ask { facts: &facts, goal });
    }
    facts.fingerprint();
}

#[test]
fn a_capture_takes_every_path_that_is_read() {
    let asked = Asked::new(Mutex::default());
    for entry in fs::read_dir(dir().join("../hosts")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            ask_all(&Root::tree(&path).unwrap(), &asked);
        }
    }
    let bench = Bench::new();
    for (_, case) in cases() {
        bench.at(&case.host, |root| ask_all(root, &asked));
    }
    let asked =
        Arc::into_inner(asked).unwrap().into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(asked.len() > 500, "{} paths were read", asked.len());
    let is_missing = |path: &str| !sources::takes(path) && !is_left_out(path);
    // A listing may end with a slash.
    let missing: Vec<String> =
        asked.into_iter().filter(|path| is_missing(path.trim_end_matches('/'))).collect();
    assert!(missing.is_empty(), "{} paths are read and not captured: {missing:#?}", missing.len());
}
