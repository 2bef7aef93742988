//! `rxpath diagnose` on losses that no counter of UDP's names: never "nothing limits", and what can be told of them.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::Pid;
use rxpath_host::lab::netns::Namespace;
use serde_json::Value;

use crate::alone::diagnose::{in_window, watching};
use crate::alone::live_limits::{seen, stop};
use crate::bed::{Bed, RX_IP, TX_IP, random_id, send, until};
use crate::raw_bpf;
use crate::skip::skip;

/// Datagrams of a cause that are lost, or as good as all of them.
const LOST: u32 = 20_000;

/// Somebody reads this port all the while.
const WELL: u16 = 4820;

/// What is said of the same traffic: with BPF and by counters alone. Beside it a service goes on without a loss.
fn told(tx: &Namespace, rx: &Namespace, traffic: impl FnOnce()) -> [Value; 2] {
    let well = rx.run(|_| UdpSocket::bind((RX_IP, WELL)).unwrap()).unwrap();
    let children = [&["-d", "600s"][..], &["-d", "600s", "--no-bpf"]].map(|words| {
        let mut child = watching(rx, words);
        in_window(&mut child);
        child
    });
    for _ in 0..20 {
        send(tx, WELL, 100);
        for _ in 0..100 {
            well.recv(&mut [0; 64]).unwrap();
        }
    }
    traffic();
    // A window of a moment decides nothing.
    for child in &children {
        seen(child, 30);
    }
    children.map(stop)
}

/// The stage, and that the sentence or its evidence says this of it.
fn says(result: &Value, stage: &str, words: &str) {
    assert_eq!(result["stage"], stage, "{result}");
    let said = format!("{} {}", result["sentence"], result["evidence"]);
    assert!(said.contains(words), "{words}: {said}");
}

/// It does not say that nothing limits, or not without a doubt and the place that it could not read.
fn doubts(result: &Value, words: &str) {
    assert_eq!(
        (&result["stage"], &result["confidence"]),
        (&"nothing".into(), &"fair".into()),
        "{result}"
    );
    assert!(result["evidence"].to_string().contains(words), "{words}: {result}");
}

/// Attaches a program that drops each packet; the test is skipped by name where the kernel can't.
fn dropping(rx: &Namespace, kind: u32, answer: u32, how: [u32; 2]) -> Option<OwnedFd> {
    attached(rx, how, move || raw_bpf::answering(kind, answer, "rxp_drops"))
}

/// Attaches a program to the device of the namespace; the test is skipped by name where the kernel can't.
pub fn attached(
    rx: &Namespace,
    how: [u32; 2],
    program: impl FnOnce() -> std::io::Result<OwnedFd> + Send + 'static,
) -> Option<OwnedFd> {
    let attached = rx.run(move |ns| {
        let ifindex = ns.route().unwrap().link("veth").unwrap().index;
        raw_bpf::attach(&program()?, ifindex, how)
    });
    attached
        .unwrap()
        .map_err(|error| skip("bpf_programs", &format!("this program can't be attached: {error}")))
        .ok()
}

#[test]
fn a_filter_of_the_socket_is_named() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let filtered = rx.run(|_| UdpSocket::bind((RX_IP, 4821)).unwrap()).unwrap();
    // ret #0: nothing passes.
    let mut none = [nix::libc::sock_filter { code: 6, jt: 0, jf: 0, k: 0 }];
    let program = nix::libc::sock_fprog { len: 1, filter: none.as_mut_ptr() };
    // SAFETY: the kernel copies the filter, which outlives the call.
    let set = unsafe {
        nix::libc::setsockopt(
            std::os::fd::AsRawFd::as_raw_fd(&filtered),
            nix::libc::SOL_SOCKET,
            nix::libc::SO_ATTACH_FILTER,
            std::ptr::from_ref(&program).cast(),
            size_of_val(&program) as u32,
        )
    };
    assert_eq!(set, 0);
    let [probed, counted] = told(&tx, &rx, || send(&tx, 4821, LOST));
    says(&probed, "filter", "a filter at the socket or its control group");
    says(&counted, "refused", "UDP, for another reason");
}

#[test]
fn an_ipsec_policy_is_named() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let _reader = rx.run(|_| UdpSocket::bind((RX_IP, 4828)).unwrap()).unwrap();
    let words = ["netns", "exec", rx.name(), "ip", "xfrm", "policy", "add", "proto", "udp"];
    let mut policy = Command::new("ip");
    policy.args(words).args(["dport", "4828", "dir", "in", "action", "block"]);
    if !policy.status().unwrap().success() {
        return skip("xfrm", "this kernel has no IPsec");
    }
    let [probed, counted] = told(&tx, &rx, || send(&tx, 4828, LOST));
    says(&probed, "filter", "an IPsec policy");
    says(&counted, "refused", "UDP, for another reason");
}

#[test]
fn a_group_that_nobody_joined_is_named() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let [probed, counted] = told(&tx, &rx, || {
        tx.run(|_| {
            let socket = UdpSocket::bind((TX_IP, 0)).unwrap();
            setsockopt(&socket, sockopt::SndBuf, &(1 << 20)).unwrap();
            socket.set_multicast_ttl_v4(1).unwrap();
            let by = nix::libc::in_addr { s_addr: u32::from_ne_bytes(TX_IP.octets()) };
            // SAFETY: an address of four bytes, as the option takes it.
            let set = unsafe {
                nix::libc::setsockopt(
                    std::os::fd::AsRawFd::as_raw_fd(&socket),
                    nix::libc::IPPROTO_IP,
                    nix::libc::IP_MULTICAST_IF,
                    std::ptr::from_ref(&by).cast(),
                    4,
                )
            };
            assert_eq!(set, 0);
            for _ in 0..LOST {
                socket.send_to(&[7; 32], (Ipv4Addr::new(239, 9, 9, 9), 4822)).unwrap();
            }
        })
        .unwrap();
    });
    says(&probed, "refused", "routing");
    // By counters alone it can't be told from a rule of netfilter's, and that is said.
    says(&counted, "filter", "multicast that no program joined");
    assert_eq!(counted["confidence"], "fair");
}

#[test]
fn frames_longer_than_the_mtu_of_the_receiver_are_named() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    rx.set_mtu("veth", 1280).unwrap();
    let _reader = rx.run(|_| UdpSocket::bind((RX_IP, 4823)).unwrap()).unwrap();
    let [probed, counted] = told(&tx, &rx, || {
        tx.run(|_| {
            let socket = UdpSocket::bind((TX_IP, 0)).unwrap();
            for _ in 0..LOST {
                socket.send_to(&[7; 1400], (RX_IP, 4823)).unwrap();
            }
        })
        .unwrap();
    });
    says(&probed, "refused", "the device's input checks");
    doubts(&counted, "rx_dropped");
}

#[test]
fn fragments_that_find_no_room_are_named() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    // The upper limit is never under the lower one.
    rx.set_sysctl("net.ipv4.ipfrag_low_thresh", "0").unwrap();
    rx.set_sysctl("net.ipv4.ipfrag_high_thresh", "0").unwrap();
    let told = told(&tx, &rx, || {
        tx.run(|_| {
            let socket = UdpSocket::bind((TX_IP, 0)).unwrap();
            for _ in 0..LOST / 4 {
                socket.send_to(&[7; 4000], (RX_IP, 4824)).unwrap();
            }
        })
        .unwrap();
    });
    for result in &told {
        says(result, "refused", "reassembly");
    }
}

#[test]
fn a_program_at_tc_ingress_is_named() {
    const INGRESS: u32 = 46;
    const SHOT: u32 = 2;
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let link = || dropping(&rx, raw_bpf::SCHED_CLS, SHOT, [INGRESS, 0]);
    // Where it can't be attached, the test ends here. Where it can, it is gone again before a window begins.
    if link().is_none() {
        return;
    }
    let [probed, counted] = told(&tx, &rx, || {
        let _link = link().unwrap();
        send(&tx, 4825, LOST);
    });
    says(&probed, "filter", "TC_INGRESS");
    // The program came and went within the window.
    assert_ne!(counted["stage"], "filter");
}

#[test]
fn an_xdp_program_is_named_by_the_drivers_counter_or_the_kernels_reason() {
    const XDP: u32 = 6;
    const AT_DEVICE: u32 = 37;
    const DROP: u32 = 1;
    let Some(bed) = Bed::with_bpf() else { return };
    for (mode, named) in [(4, "ethtool -S veth"), (2, "xdp")] {
        let (tx, rx) = bed.pair(1);
        // It is there before the window begins and lets the ones of the other service pass: they were sent before it.
        let well = rx.run(|_| UdpSocket::bind((RX_IP, WELL)).unwrap()).unwrap();
        send(&tx, WELL, 100);
        until("they are here", || well.recv(&mut [0; 64]).is_ok());
        let Some(_link) = dropping(&rx, XDP, DROP, [AT_DEVICE, mode]) else { return };
        let mut child = watching(&rx, &["-d", "600s"]);
        in_window(&mut child);
        send(&tx, 4826, LOST);
        says(&stop(child), "filter", named);
    }
}

#[test]
fn rules_of_a_bridge_are_named() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let run = |words: &str| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", rx.name(), "sh", "-c", words]);
        command.status().is_ok_and(|status| status.success())
    };
    let bridge = format!(
        "ip link add br0 type bridge && ip link set veth master br0 && ip addr flush dev veth && \
         ip addr add {RX_IP}/24 dev br0 && ip link set br0 address $(cat /sys/class/net/veth/address) up"
    );
    assert!(run(&bridge));
    let rules = "nft add table bridge b && nft 'add chain bridge b in { type filter hook prerouting priority 0; }' && \
                 nft 'add rule bridge b in udp dport 4827 drop'";
    if !run(rules) {
        return skip("nft", "nft has no bridge family here");
    }
    let [probed, counted] = told(&tx, &rx, || send(&tx, 4827, LOST));
    says(&probed, "filter", "NETFILTER_DROP");
    doubts(&counted, "rules of the bridge family drop on br0");
}

/// A reader of its own process on port 4829, ended at the end.
struct Reader(Child);

impl Reader {
    fn start(rx: &Namespace) -> Self {
        let mut serve = Command::new("ip");
        serve.args(["netns", "exec", rx.name(), env!("CARGO_BIN_EXE_rxpath"), "serve", "udp"]);
        serve.args([format!("{RX_IP}:4829").as_str(), "--work", "20us"]).stdout(Stdio::null());
        let child = serve.stderr(Stdio::null()).spawn().unwrap();
        until("it has its port", || rx.run(|_| UdpSocket::bind((RX_IP, 4829)).is_err()).unwrap());
        Self(child)
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).unwrap();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.signal(Signal::SIGCONT);
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A control group of version 1 of this controller, removed at the end.
struct Group(PathBuf);

impl Group {
    fn make(controller: &str, set: (&str, &str)) -> Option<Self> {
        let mount = PathBuf::from("/sys/fs/cgroup").join(controller);
        let path = mount.join(format!("rxpath-{}", random_id()));
        if !mount.join("tasks").exists() || fs::create_dir(&path).is_err() {
            skip("cgroup", &format!("no control groups of version 1 for {controller} here"));
            return None;
        }
        let group = Self(path);
        group.write(set.0, set.1);
        Some(group)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }

    fn take(&self, reader: &Reader) {
        self.write("cgroup.procs", &reader.0.id().to_string());
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        until("the group is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

/// What is said while more comes to the reader than it takes.
fn overloaded(tx: &Namespace, rx: &Namespace) -> Value {
    let mut child = watching(rx, &["-d", "600s"]);
    in_window(&mut child);
    for _ in 0..20 {
        send(tx, 4829, 5_000);
        seen(&child, 2);
    }
    stop(child)
}

#[test]
fn a_reader_that_a_signal_stopped_is_named() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let reader = Reader::start(&rx);
    reader.signal(Signal::SIGSTOP);
    says(&overloaded(&tx, &rx), "application-descheduled", "a signal stopped it");
}

#[test]
fn a_frozen_reader_is_named() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let Some(group) = Group::make("freezer", ("freezer.state", "THAWED")) else { return };
    let reader = Reader::start(&rx);
    group.take(&reader);
    group.write("freezer.state", "FROZEN");
    let result = overloaded(&tx, &rx);
    group.write("freezer.state", "THAWED");
    drop(reader);
    says(&result, "application-descheduled", "its control group is frozen");
}

#[test]
fn a_reader_that_used_up_its_cpu_quota_is_named_with_its_group() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let Some(group) = Group::make("cpu", ("cpu.cfs_quota_us", "5000")) else { return };
    let reader = Reader::start(&rx);
    group.take(&reader);
    let result = overloaded(&tx, &rx);
    drop(reader);
    says(&result, "application-descheduled", "CPU quota of its control group /rxpath-");
}

/// Only the first of its sockets is there when owners are looked up.
#[test]
fn a_socket_that_is_opened_again_and_again_belongs_to_its_program() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    for words in [&["-d", "600s"][..], &["-d", "600s", "--no-bpf"]] {
        let open = || {
            let mut opened = None;
            // A program that another test is about to start holds a copy of the closed one until it runs.
            until("the port is free", || {
                opened = rx.run(|_| UdpSocket::bind((RX_IP, 4831)).ok()).unwrap();
                opened.is_some()
            });
            opened.unwrap()
        };
        let mut socket = Some(open());
        let mut child = watching(&rx, words);
        in_window(&mut child);
        for _ in 0..4 {
            socket.take();
            let reader = socket.insert(open());
            send(&tx, 4831, 5_000);
            reader.recv(&mut [0; 64]).unwrap();
            seen(&child, 3);
        }
        socket.take();
        let result = stop(child);
        let sockets = result["evidence_read"]["sockets"].as_array().unwrap();
        // The first as well.
        assert_eq!(sockets.len(), 5, "{result}");
        // A socket's drops before it was first looked at are the window's: all but those after the last look.
        let dropped =
            sockets.iter().filter_map(|socket| socket["drops_packets"].as_u64()).sum::<u64>();
        assert!(dropped > 16_000, "{result}");
        for socket in sockets {
            // A program that another test is about to start holds a copy until it runs.
            let mut owners = socket["owners"].as_array().unwrap().iter();
            assert!(owners.any(|owner| owner["pid"] == std::process::id()), "{socket}");
        }
        let threads = &result["evidence_read"]["receiver_threads"];
        assert!(!threads.as_array().unwrap().is_empty(), "{result}");
    }
}
