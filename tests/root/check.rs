//! `rxpath check` where devices come and go, and where `/sys` is another namespace's.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rxpath_host::netlink::{Netlink, VethSpec};
use serde_json::Value;

use crate::readers;
use crate::skip::skip;

fn check(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rxpath")).arg("check").args(args).output().unwrap()
}

/// Runs `job` on a thread in a new network namespace, which ends with it; programs and threads that it starts are in it
/// too. With a `/sys` of its own, or with that of the host.
fn inside<T: Send>(own_sysfs: bool, job: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let run = || {
            unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
            let none: Option<&str> = None;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
            if own_sysfs {
                mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::MS_RDONLY, none).unwrap();
            }
            job()
        };
        scope.spawn(run).join().unwrap()
    })
}

fn answer(output: &Output) -> Value {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {told}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {told}"))
}

#[test]
fn the_files_of_another_namespace_are_said_to_be_that() {
    if !nix::unistd::geteuid().is_root() {
        return skip("check", "not root");
    }
    // Of this process's own /sys: a namespace without it has its loopback alone.
    let devices = std::fs::read_dir("/sys/class/net").unwrap().count();
    let value = inside(false, || answer(&check(&["--json"])));
    let cautions = value["result"]["cautions"].as_array().unwrap();
    let scope = cautions.iter().find(|note| note["id"] == "netns-scope").expect("a caution");
    let text = scope["text"].as_str().unwrap();
    if devices > 1 {
        assert!(text.contains("/sys was mounted in another network namespace"), "{text}");
    } else {
        assert!(text.contains("not init's network namespace"), "{text}");
    }
}

#[test]
fn devices_that_come_and_go_are_no_error() {
    if !nix::unistd::geteuid().is_root() {
        return skip("check", "not root");
    }
    let done = AtomicBool::new(false);
    inside(true, || {
        std::thread::scope(|scope| {
            // A new thread inherits the namespace of the one that starts it.
            scope.spawn(|| {
                let mut route = Netlink::route().unwrap();
                let own = File::open("/proc/thread-self/ns/net").unwrap();
                while !done.load(Ordering::Relaxed) {
                    let spec = VethSpec {
                        name: "come0",
                        peer: "go0",
                        peer_ns: own.as_raw_fd(),
                        queues: 2,
                        mtu: None,
                    };
                    route.create_veth(&spec).unwrap();
                    route.delete_link("come0").unwrap();
                }
            });
            for _ in 0..6 {
                answer(&check(&["--json", "--goal", "latency"]));
                let output = check(&["--queues", "--json"]);
                assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
                assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
            }
            done.store(true, Ordering::Relaxed);
        });
    });
}

#[test]
fn both_ways_to_ask_agree_on_veth() {
    if !nix::unistd::geteuid().is_root() {
        return skip("check", "not root");
    }
    inside(true, || {
        let own = File::open("/proc/thread-self/ns/net").unwrap();
        let spec =
            VethSpec { name: "ask0", peer: "ask1", peer_ns: own.as_raw_fd(), queues: 3, mtu: None };
        Netlink::route().unwrap().create_veth(&spec).unwrap();
        let topics = readers::agree("ask0");
        for topic in ["channels", "features", "link-modes", "port", "link-state"] {
            assert!(topics.contains(&topic), "{topic}: {topics:?}");
        }
        assert!(readers::lasting().contains(&"lo".to_owned()));
    });
}
