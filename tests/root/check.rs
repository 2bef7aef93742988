//! `rxpath check` where devices come and go, and where `/sys` is another namespace's.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rxpath_host::lab::veth::VethSpec;
use rxpath_host::netlink::Netlink;
use serde_json::Value;

use crate::bed::Bed;
use crate::program::{self, Said};
use crate::raw_bpf;
use crate::readers;
use crate::skip::skip;

fn check(args: &[&str]) -> Said {
    program::said(Command::new(env!("CARGO_BIN_EXE_rxpath")).arg("check").args(args))
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

/// Makes a veth pair, of which both ends are in the namespace of this thread.
fn make_veth(route: &mut Netlink, name: &str, queues: u32) {
    let own = File::open("/proc/thread-self/ns/net").unwrap();
    let peer = format!("{name}-peer");
    let spec = VethSpec { name, peer: &peer, peer_ns: own.as_raw_fd(), queues };
    route.create_veth(&spec).unwrap();
}

fn answer(output: &Said) -> Value {
    output.clone().ends(0).json()
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
                while !done.load(Ordering::Relaxed) {
                    make_veth(&mut route, "come0", 2);
                    route.delete_link("come0").unwrap();
                }
            });
            for _ in 0..6 {
                answer(&check(&["--json", "--goal", "latency"]));
                let output = check(&["--queues", "--json"]);
                assert!(matches!(output.code, Some(0 | 3)), "{output:?}");
                assert!(!output.err.contains("panicked"));
            }
            done.store(true, Ordering::Relaxed);
        });
    });
}

/// Each refresh is a line of its own with every queue, over the span since the one before, until it is interrupted.
#[test]
fn the_table_of_queues_is_refreshed_until_it_is_interrupted() {
    if !nix::unistd::geteuid().is_root() {
        return skip("check", "not root");
    }
    inside(true, || {
        make_veth(&mut Netlink::route().unwrap(), "live0", 2);
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
        command.args(["check", "--queues", "--dev", "live0", "--interval", "100ms", "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(next()["schema"], "rxpath/check-queues/1.0");
        // A reading that is late makes the next span shorter, not both.
        let mut since_s = 0.0;
        for number in 1..=2_u32 {
            let line = next();
            since_s += line["span_s"].as_f64().unwrap();
            assert!(since_s >= 0.1 * f64::from(number) - 1e-6, "{since_s}: {line}");
            let queues = line["queues"].as_array().unwrap();
            let numbers: Vec<u64> =
                queues.iter().map(|row| row["queue"].as_u64().unwrap()).collect();
            assert_eq!(numbers, [0, 1], "{line}");
            assert_eq!(queues[1]["packets_pps"]["value"], 0.0, "nothing was sent: {line}");
        }
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(rest.iter().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{rest:?}");
        assert_eq!(child.wait().unwrap().code(), Some(130));
    });
}

#[test]
fn both_ways_to_ask_agree_on_veth() {
    if !nix::unistd::geteuid().is_root() {
        return skip("check", "not root");
    }
    inside(true, || {
        make_veth(&mut Netlink::route().unwrap(), "ask0", 3);
        let topics = readers::agree("ask0");
        for topic in ["channels", "features", "link-modes", "port", "link-state"] {
            assert!(topics.contains(&topic), "{topic}: {topics:?}");
        }
        assert!(readers::lasting().contains(&"lo".to_owned()));
    });
}

/// What a rule says, and in which list of the answer; findings by what they observed.
fn said(output: &Said, id: &str) -> String {
    let value = answer(output);
    let result = &value["result"];
    for list in ["findings", "fine", "records", "unseen", "unjudged", "silent"] {
        let own = result[list].as_array().unwrap().iter().find(|note| note["id"] == id);
        if let Some(note) = own {
            let text = note["text"].as_str().or(note["observed"].as_str()).unwrap();
            return format!("{list}: {text}");
        }
    }
    panic!("no answer of {id}");
}

/// `rxpath check` by root without its rights.
fn check_plainly(args: &[&str]) -> Said {
    let mut plain = Command::new("setpriv");
    plain.args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_rxpath"), "check"]);
    program::said(plain.args(args))
}

/// A program for tcx that passes each packet on: TCX_NEXT (-1).
fn passing(name: &str) -> std::io::Result<OwnedFd> {
    raw_bpf::answering(raw_bpf::SCHED_CLS, u32::MAX, name)
}

/// What the rule of tc says of a device.
fn tc_of(output: &Said, dev: &str) -> String {
    let value = answer(output);
    let result = &value["result"];
    for list in ["records", "unseen", "unjudged", "silent"] {
        let notes = result[list].as_array().unwrap();
        let own = notes.iter().find(|note| note["id"] == "tc-ingress" && note["device"] == dev);
        if let Some(note) = own {
            return format!("{list}: {}", note["text"].as_str().unwrap());
        }
    }
    panic!("no answer of tc-ingress for {dev}");
}

#[test]
fn tcx_programs_are_found_as_long_as_they_are_attached() {
    const INGRESS: u32 = 46;
    const EGRESS: u32 = 47;
    let Some(_bed) = Bed::with_bpf() else { return };
    inside(true, || {
        let mut route = Netlink::route().unwrap();
        make_veth(&mut route, "tap0", 1);
        let ifindex = route.link("tap0").unwrap().index;
        let program = passing("rxp_first").unwrap();
        let first = match raw_bpf::attach(&program, ifindex, [INGRESS, 0]) {
            Ok(link) => link,
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{error}");
                let told = tc_of(&check(&["--json"]), "tap0");
                assert!(told.contains("this kernel has no tcx"), "{told}");
                return skip("bpf_programs", "this kernel has no tcx");
            }
        };
        let second =
            raw_bpf::attach(&passing("rxp_second").unwrap(), ifindex, [INGRESS, 0]).unwrap();
        let out = raw_bpf::attach(&program, ifindex, [EGRESS, 0]).unwrap();
        let told = tc_of(&check(&["--json"]), "tap0");
        let ingress = told.split_once("tcx ingress: rxp_first (program ").expect(&told).1;
        let (_, egress) = ingress.split_once("), rxp_second (program ").expect(&told);
        assert!(egress.contains("; tcx egress: rxp_first (program "), "{told}");
        let other = tc_of(&check(&["--json"]), "tap0-peer");
        assert_eq!(other, "records: no ingress or clsact qdisc; no tcx program");

        // Without the right it is not told as none.
        let told = tc_of(&check_plainly(&["--json"]), "tap0");
        let wanted = "records: no ingress or clsact qdisc; tcx: not shown, needs CAP_NET_ADMIN";
        assert!(told.starts_with(wanted), "{told}");

        drop((first, second, out));
        let told = tc_of(&check(&["--json"]), "tap0");
        assert_eq!(told, "records: no ingress or clsact qdisc; no tcx program");
    });
}

/// A rule that no system call matches, as long as it lives: no process has that number.
struct Unmatched(Netlink);

impl Unmatched {
    const ADD: u16 = 1011;
    const REMOVE: u16 = 1012;

    /// `struct audit_rule_data`: list exit, action never, one field (AUDIT_PID == 2147483647), no system call.
    fn body() -> Vec<u8> {
        let mut words = [0_u32; 3 + 4 * 64 + 1];
        (words[0], words[2]) = (4, 1);
        let (values, operators) = (3 + 2 * 64, 3 + 3 * 64);
        (words[values], words[operators]) = (0x7fff_ffff, 0x4000_0000);
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn load() -> Self {
        let mut audit = Netlink::audit().unwrap();
        audit.change("load an audit rule", Self::ADD, 0, &Self::body()).unwrap();
        Self(audit)
    }
}

impl Drop for Unmatched {
    fn drop(&mut self) {
        let removed = self.0.change("remove an audit rule", Self::REMOVE, 0, &Self::body());
        assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
    }
}

#[test]
fn rules_of_audit_are_counted_as_long_as_they_are_loaded() {
    let Some(_bed) = Bed::new() else { return };
    let state = || Netlink::audit().and_then(|mut audit| audit.audit_state());
    let before = match state() {
        Ok(state) if state.enabled < 2 => state,
        Ok(_) => return skip("audit", "its rules are locked until the next boot"),
        Err(error) => return skip("audit", &error.to_string()),
    };
    let told = |count: u32| match count {
        0 => "no rule loaded".to_owned(),
        1 => "1 rule loaded".to_owned(),
        count => format!("{count} rules loaded"),
    };
    let ask = ["--json", "--goal", "benchmark"];
    let rule = Unmatched::load();
    let with = state().unwrap();
    assert_eq!(with.rules_count, before.rules_count + 1);
    assert_eq!(with.syscall_rules_count, before.syscall_rules_count + 1);
    let words = said(&check(&ask), "audit-rules");
    assert!(words.contains(&told(with.rules_count)), "{words}");
    assert_eq!(words.starts_with("fine: audit is off"), with.enabled == 0, "{words}");
    let words = said(&check_plainly(&ask), "audit-rules");
    assert!(words.contains("CAP_AUDIT_CONTROL"), "{words}");
    drop(rule);
    assert_eq!(state().unwrap(), before);
    let words = said(&check(&ask), "audit-rules");
    assert!(words.contains(&told(before.rules_count)), "{words}");
}

#[test]
fn tables_of_both_firewalls_are_found() {
    let Some(_bed) = Bed::new() else { return };
    let run = |program: &str, words: &str| {
        let done = Command::new(program).args(words.split(' ')).output();
        done.is_ok_and(|output| output.status.success())
    };
    inside(true, || {
        // Listing a table of the old iptables makes it.
        if !run("iptables-legacy", "-t filter -nL") || !run("nft", "list tables") {
            return skip("old_iptables", "no iptables-legacy or nft, or a kernel without them");
        }
        let ask = || said(&check(&["--json"]), "iptables-legacy-chains");
        assert_eq!(ask(), "fine: legacy iptables only: filter");
        assert!(run("nft", "add table inet rxp"));
        assert_eq!(ask(), "fine: legacy iptables only: filter", "an empty table does nothing");
        assert!(run("nft", "add chain inet rxp in"));
        let wanted = "legacy iptables tables (filter) in addition to nftables tables (inet rxp)";
        assert_eq!(ask(), format!("findings: {wanted}"));
        let words = said(&check_plainly(&["--json"]), "iptables-legacy-chains");
        assert_eq!(words, "unseen: needs CAP_NET_ADMIN");
        assert!(run("nft", "delete table inet rxp"));
        assert_eq!(ask(), "fine: legacy iptables only: filter");
    });
}
