//! Senders and receivers that bypass the stack: every datagram arrives or is counted, and nothing stays on the device.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::bed::{may_run, until};
use crate::skip::skip;

/// Two namespaces of this test's own `/run`, with two queues between them.
const PAIR: &str = r"
set -e
tx=tx$1 rx=rx$1
mkdir -p /run/netns
ip netns add $tx
ip netns add $rx
ip -n $tx link add veth numtxqueues 2 numrxqueues 2 type veth peer name veth netns $rx numtxqueues 2 numrxqueues 2
for name in $tx $rx; do
    ip netns exec $name sysctl -qw net.ipv6.conf.veth.accept_dad=0
    ip -n $name link set veth up
done
ip -n $tx addr add 198.18.0.1/16 dev veth
ip -n $rx addr add 198.18.1.1/16 dev veth
ip -n $tx addr add 2001:2::1/64 dev veth nodad
ip -n $rx addr add 2001:2::1:1/64 dev veth nodad
";

const V4: &str = "198.18.1.1:4321";
const V6: &str = "[2001:2::1:1]:4321";

/// The namespaces, whose names end with this number; they go with their names.
struct Wire(usize);

impl Wire {
    fn new() -> Option<Self> {
        Self::numbered(0)
    }

    /// One of several: receivers on wires of their own wait for their end at the same time.
    fn numbered(number: usize) -> Option<Self> {
        if !may_run() {
            return None;
        }
        let mut command = Command::new("sh");
        let made = command.args(["-c", PAIR, "sh", &number.to_string()]).output().unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        Some(Self(number))
    }

    /// The name of a namespace, `tx` or `rx`.
    fn name(&self, side: &str) -> String {
        format!("{side}{}", self.0)
    }

    fn program(&self, side: &str, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(side), env!("CARGO_BIN_EXE_rxpath")]).args(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A receiver that listens, and ends some seconds after the last datagram: a busy machine needs them to start the next sender.
    fn serve(&self, to: &str, words: &[&str]) -> Child {
        let own = ["serve", "udp", to, "--idle-exit", "6s", "--json"];
        let child = self.program("rx", &[&own, words].concat()).spawn().unwrap();
        if words.contains(&"--engine") {
            // The last that it does before it reads.
            until("the program is on the device", || self.xdp().is_some());
            return child;
        }
        let port = if to.starts_with('[') { "/proc/net/udp6" } else { "/proc/net/udp" };
        until("the receiver listens", || {
            let words = ["netns", "exec", &self.name("rx"), "cat", port];
            let cat = Command::new("ip").args(words).output();
            text(&cat.unwrap().stdout).contains(":10E1 ")
        });
        child
    }

    fn load(&self, to: &str, words: &[&str]) -> Value {
        let own = ["load", "udp", to, "--json", "--rate", "20k", "--count", "10000"];
        answer(&self.program("tx", &[&own, words].concat()).output().unwrap())
    }

    /// The number of the XDP program on the receiver's device.
    fn xdp(&self) -> Option<String> {
        let words = ["-n", &self.name("rx"), "link", "show", "veth"];
        let link = Command::new("ip").args(words).output().unwrap();
        let link = text(&link.stdout);
        Some(link.split("prog/xdp id ").nth(1)?.split_whitespace().next()?.to_owned())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for side in ["tx", "rx"] {
            let _ = Command::new("ip").args(["netns", "del", &self.name(side)]).status();
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn answer(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn end(child: Child) -> Value {
    answer(&child.wait_with_output().unwrap())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Whether BPF programs can be loaded here.
pub fn has_bpf() -> bool {
    let can = rxpath_bpf::can_run(&rxpath_host::Root::host()).require("load BPF programs");
    can.map_err(|reason| skip("bpf_programs", &reason.to_string())).is_ok()
}

/// Frames of every size and flow, to a receiver with plain sockets.
#[test]
fn what_af_xdp_hands_over_arrives_with_right_checksums_or_is_counted() {
    let rounds = [
        (V4, &["--size", "0"][..]),
        (V4, &["--size", "18", "--flows", "8"]),
        (V4, &["--size", "1472", "--threads", "2"]),
        (V6, &["--size", "32"]),
        (V6, &["--size", "1452", "--umem-frames", "128", "--xdp-ring", "16"]),
    ];
    let mut sent_to = Vec::new();
    for (number, (to, words)) in rounds.into_iter().enumerate() {
        let Some(wire) = Wire::numbered(number) else { return };
        let receiver = wire.serve(to, &[]);
        let sent = wire.load(to, &[&["--engine", "xdp"], words].concat());
        sent_to.push((wire, receiver, sent));
    }
    for ((to, words), (_wire, receiver, sent)) in rounds.into_iter().zip(sent_to) {
        let (sent, settings) = (&sent["result"], &sent["settings"]);
        let got = end(receiver);
        let got = &got["result"];
        eprintln!("{to} {words:?}: {sent} {got}");
        assert_eq!(settings["xdp"]["mode"], "copy");
        assert_eq!(number(&sent["sent_packets"]), 10_000);
        for counter in ["handed_over_packets", "completed_packets"] {
            assert_eq!(number(&sent["xdp"][counter]), 10_000, "{counter}");
        }
        // A wrong checksum would be counted by neither.
        let found = number(&got["delivered_packets"]) + number(&got["socket_drops_packets"]);
        assert_eq!(found, 10_000, "{to} {words:?}");
    }
}

#[test]
fn what_the_program_takes_is_delivered_or_in_its_ledger() {
    if !may_run() || !has_bpf() {
        return;
    }
    let rounds = [
        (V4, "socket", &[][..]),
        (V6, "socket", &[]),
        (V4, "xdp", &["--threads", "2"]),
        (V6, "xdp", &["--flows", "8"]),
    ];
    let mut sent_to = Vec::new();
    for (number, (to, engine, words)) in rounds.into_iter().enumerate() {
        let Some(wire) = Wire::numbered(number) else { return };
        let receiver = wire.serve(to, &["--engine", "xdp"]);
        let sent = wire.load(to, &[&["--engine", engine], words].concat());
        sent_to.push((wire, receiver, sent));
    }
    for ((to, engine, words), (wire, receiver, sent)) in rounds.into_iter().zip(sent_to) {
        let got = end(receiver);
        let (got, ledger) = (&got["result"], &got["result"]["xdp"]);
        eprintln!("{to} {engine} {words:?}: {got}");
        assert_eq!(number(&sent["result"]["sent_packets"]), 10_000);
        assert_eq!(number(&ledger["redirected_packets"]), 10_000);
        assert_eq!(number(&ledger["passed_packets"]), 0);
        let dropped =
            number(&ledger["socket_dropped_packets"]) + number(&ledger["ring_full_packets"]);
        assert_eq!(number(&got["delivered_packets"]) + dropped, 10_000);
        assert_eq!(number(&got["sequence"]["lost_packets"]), dropped);
        assert!(got["one_way_delay_us"]["p50"].as_f64().unwrap() > 0.0);
        assert_eq!(wire.xdp(), None, "the program is off the device");
    }
}

#[test]
fn what_the_program_drops_is_delivered_to_nobody_and_counted() {
    if !may_run() || !has_bpf() {
        return;
    }
    let mut sent_to = Vec::new();
    for (number, to) in [V4, V6].into_iter().enumerate() {
        let Some(wire) = Wire::numbered(number) else { return };
        let receiver = wire.serve(to, &["--engine", "xdp-drop"]);
        wire.load(to, &[]);
        sent_to.push((wire, receiver));
    }
    for (_wire, receiver) in sent_to {
        let got = end(receiver);
        let got = &got["result"];
        assert_eq!(number(&got["dropped_in_xdp_packets"]), 10_000, "{got}");
        assert_eq!(number(&got["delivered_packets"]), 0);
        assert_eq!(number(&got["xdp"]["matched_packets"]), 10_000);
    }
}

#[test]
fn a_second_program_is_refused_by_number_and_a_killed_receiver_leaves_none() {
    let Some(wire) = Wire::new() else { return };
    if !has_bpf() {
        return;
    }
    let mut first = wire.serve(V4, &["--engine", "xdp-drop"]);
    let id = wire.xdp().expect("a program");
    let second = ["serve", "udp", "198.18.1.1:4322", "--engine", "xdp", "-d", "1s"];
    let second = wire.program("rx", &second).output().unwrap();
    let said = text(&second.stderr);
    assert!(!second.status.success());
    assert!(said.contains(&format!("program {id} is on it, native")), "{said}");
    assert_eq!(wire.xdp(), Some(id), "the first one stays");
    kill(receiver_of(&first), Signal::SIGKILL).unwrap();
    first.wait().unwrap();
    until("the program is gone", || wire.xdp().is_none());
}

#[test]
fn a_device_that_takes_no_frames_of_xdp_programs_is_named() {
    let Some(wire) = Wire::new() else { return };
    if !has_bpf() {
        return;
    }
    // The other end has neither GRO nor an XDP program.
    let words = ["load", "udp", V4, "--engine", "xdp-frames", "--count", "10"];
    let refused = wire.program("tx", &words).output().unwrap();
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("veth does not take frames of XDP programs now"), "{said}");
    assert!(said.contains("gro on"), "{said}");
    // An address that nobody has.
    let words = ["load", "udp", "198.18.7.7:9", "--engine", "xdp-frames", "--count", "10"];
    let refused = wire.program("tx", &words).output().unwrap();
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains("an answer of 198.18.7.7 on veth"), "{said}");
}

#[test]
fn a_sender_that_the_kernel_runs_ends_at_its_count_and_leaves_nothing_when_it_is_killed() {
    let (Some(wire), Some(second)) = (Wire::new(), Wire::numbered(1)) else { return };
    if !has_bpf() {
        return;
    }
    // Its NAPI runs with the receiver's program.
    let receiver = wire.serve(V6, &["--engine", "xdp-drop"]);
    for words in [&["--flows", "3"][..], &["--threads", "2", "--size", "1452"], &["--size", "0"]] {
        let sent = wire.load(V6, &[&["--engine", "xdp-frames"], words].concat());
        let frames = &sent["result"]["frames"];
        assert_eq!(number(&sent["result"]["sent_packets"]), 10_000, "{sent}");
        assert_eq!(number(&frames["taken_packets"]), 10_000, "{sent}");
        assert_eq!(number(&frames["refused_packets"]), 0, "{sent}");
    }
    let words = ["load", "udp", V6, V4, "--engine", "xdp-frames", "--count", "10"];
    let refused = wire.program("tx", &words).output().unwrap();
    assert!(text(&refused.stderr).contains("all headers of a thread have one length"));
    let receiver_of_the_killed = second.serve(V4, &["--engine", "xdp-drop"]);
    let words = ["load", "udp", V4, "--engine", "xdp-frames", "--rate", "1k", "-d", "60s"];
    let mut sender = second.program("tx", &words).spawn().unwrap();
    let has_loaded = || {
        let folder = PathBuf::from(format!("/proc/{}", sender.id()));
        let is_sender = std::fs::read_link(folder.join("exe")).unwrap().ends_with("rxpath");
        // Files of the tests next to this one may be open in it, too.
        let mut files = std::fs::read_dir(folder.join("fd")).unwrap().flatten();
        let is_program = |path: PathBuf| path.ends_with("anon_inode:bpf-prog");
        is_sender && files.any(|file| std::fs::read_link(file.path()).is_ok_and(is_program))
    };
    until("the sender has loaded its program", has_loaded);
    kill(receiver_of(&sender), Signal::SIGKILL).unwrap();
    assert_eq!(sender.wait().unwrap().code(), None);
    let other = second.load(V4, &["--engine", "xdp-frames"]);
    assert_eq!(number(&other["result"]["sent_packets"]), 10_000);
    let got = end(receiver);
    assert_eq!(number(&got["result"]["dropped_in_xdp_packets"]), 30_000, "{got}");
    end(receiver_of_the_killed);
}

/// `ip netns exec` becomes the program that it runs.
fn receiver_of(child: &Child) -> Pid {
    let exe: PathBuf = std::fs::read_link(format!("/proc/{}/exe", child.id())).unwrap();
    assert!(exe.ends_with("rxpath"), "{}", exe.display());
    Pid::from_raw(child.id() as i32)
}
