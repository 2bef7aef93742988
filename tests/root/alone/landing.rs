//! `check --flow` against the kernel: what it computes of a selector and finds out by probes is where packets really go.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Output};

use nix::libc;
use rxpath_host::Namespace;
use rxpath_load::engine::socket::Socket;
use serde_json::Value;

use crate::bed::{Bed, RX_IP, TX_IP, until};

const PORT: u16 = 4600;

fn flow(from: u16) -> String {
    format!("{TX_IP}:{from}->{RX_IP}:{PORT}/udp")
}

/// Runs the program in the receiver's namespace.
fn run(rx: &Namespace, flow: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["check", "--dev", "veth", "--flow", flow]).args(more);
    rx.run(move |_| command.output().unwrap()).unwrap()
}

/// Its status and what it answered.
fn check(rx: &Namespace, from: u16, more: &[&str]) -> (Option<i32>, Value) {
    let output = run(rx, &flow(from), &[&["--json"], more].concat());
    let told = String::from_utf8_lossy(&output.stderr);
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {told}"));
    (output.status.code(), answer["result"]["landings"][0].clone())
}

/// A SO_REUSEPORT group in the receiver's namespace.
fn group(rx: &Namespace, sockets: usize) -> Vec<Socket> {
    let to = SocketAddr::new(RX_IP.into(), PORT);
    let one = move || {
        let socket = Socket::udp(to).unwrap();
        socket.set(libc::SOL_SOCKET, libc::SO_REUSEPORT, 1).unwrap();
        socket.bind(to).unwrap();
        socket
    };
    rx.run(move |_| (0..sockets).map(|_| one()).collect()).unwrap()
}

/// Sends datagrams of a flow as an application does.
fn send(tx: &Namespace, from: u16, count: u32) {
    tx.run(move |_| {
        let socket = UdpSocket::bind((TX_IP, from)).unwrap();
        for _ in 0..count {
            // That nobody listens comes back as an error of the next one.
            let _ = socket.send_to(&[7; 8], (RX_IP, PORT));
        }
    })
    .unwrap();
}

/// Bytes that wait at each socket.
fn queued(group: &[Socket]) -> Vec<u64> {
    group.iter().map(|one| one.meminfo().unwrap().rmem_bytes).collect()
}

/// The socket that a datagram of the flow ends up in.
fn gets(tx: &Namespace, group: &[Socket], from: u16) -> u64 {
    let before = queued(group);
    send(tx, from, 1);
    let grown = || (0..group.len()).find(|at| queued(group)[*at] > before[*at]);
    let mut found = None;
    until("the datagram in a queue", || {
        found = grown();
        found.is_some()
    });
    found.unwrap() as u64
}

fn op(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

const RETURN_A: libc::sock_filter = libc::sock_filter { code: 0x16, jt: 0, jf: 0, k: 0 };

#[test]
fn a_classic_selector_is_computed_as_the_kernel_runs_it() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    // With one CPU of RPS the program's question for the CPU has one answer.
    rx.set_queue_attr("veth", "rx-0/rps_cpus", "1").unwrap();
    let jump = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let selectors: [&[libc::sock_filter]; 6] = [
        // The source port modulo 4.
        &[op(0x28, 0xfff0_0014), op(0x54, 3), RETURN_A],
        // By X: source port shifted, xor of the address, modulo 3.
        &[
            op(0x28, 0xfff0_0014),
            op(0x74, 1),
            op(0x07, 0),
            op(0x20, 0xfff0_000c),
            op(0xac, 0),
            op(0x94, 3),
            RETURN_A,
        ],
        // Ports above 5001 to the last socket.
        &[op(0x28, 0xfff0_0014), jump(0x25, 1, 5001), op(0x06, 0), op(0x06, 3)],
        // Scratch memory and a negation.
        &[
            op(0x28, 0xfff0_0014),
            op(0x02, 5),
            op(0x00, 9),
            op(0x60, 5),
            op(0x84, 0),
            op(0x54, 3),
            RETURN_A,
        ],
        // The protocol, by an index in X.
        &[op(0x01, 9), op(0x50, 0xfff0_0000), op(0x94, 4), RETURN_A],
        // The CPU, two further on.
        &[op(0x20, 0xffff_f024), op(0x04, 2), RETURN_A],
    ];
    for (number, selector) in selectors.into_iter().enumerate() {
        let group = group(&rx, 4);
        group[0].attach_reuseport(&mut selector.to_vec()).unwrap();
        for from in 5000..5004 {
            let (_, landing) = check(&rx, from, &[]);
            let told = &landing["reuseport_socket"];
            assert_eq!(told["value"], gets(&tx, &group, from), "{number}, port {from}: {landing}");
            let found = &landing["reuseport_group"]["value"];
            assert_eq!(found["sockets_count"], 4, "{landing}");
            assert!(found["selector"].as_str().unwrap().contains("classic BPF"), "{landing}");
        }
    }
}

#[test]
fn what_a_selector_takes_from_the_packet_is_said() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (_tx, rx) = bed.pair(1);
    for (selector, why) in [
        (vec![op(0x30, 0), RETURN_A], "payload"),
        (vec![op(0x20, 0xffff_f020), RETURN_A], "hash"),
        (vec![op(0x06, 77)], "a socket that is not there"),
    ] {
        let group = group(&rx, 2);
        group[0].attach_reuseport(&mut selector.clone()).unwrap();
        let (_, landing) = check(&rx, 5000, &[]);
        let told = landing["reuseport_socket"]["why"].as_str().unwrap_or_default();
        assert!(told.contains(why), "{landing}");
    }
    let plain = group(&rx, 2);
    let (_, landing) = check(&rx, 5000, &[]);
    let told = landing["reuseport_socket"]["why"].as_str().unwrap();
    assert!(told.contains("secret key"), "{landing}");
    assert!(landing["probed"].is_null(), "nothing is sent unless it is asked for");
    assert_eq!(queued(&plain), [0, 0]);
}

/// An eBPF program that always names one socket, loaded as a socket filter: mov r0, SOCKET; exit.
fn ebpf_selector(socket: i32) -> OwnedFd {
    const SOCKET_FILTER: u32 = 1;
    let code = [0xb7 | u64::from(socket as u32) << 32, 0x95];
    crate::raw_bpf::load(SOCKET_FILTER, &code, "chosen").unwrap()
}

#[test]
fn an_ebpf_selector_is_named_and_probes_find_what_it_chooses() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let group = group(&rx, 4);
    let selector = ebpf_selector(2);
    group[0].set(libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_EBPF, selector.as_raw_fd()).unwrap();
    let (_, landing) = check(&rx, 5000, &[]);
    let told = landing["reuseport_group"]["value"]["selector"].as_str().unwrap();
    assert!(told.starts_with("the eBPF program ") && told.contains("(chosen)"), "{landing}");
    let why = landing["reuseport_socket"]["why"].as_str().unwrap();
    assert!(why.contains("not computed here; probes can tell"), "{landing}");
    let probe = ["--probe", "--probe-from", tx.name(), "--probe-into-app"];
    let (status, landing) = check(&rx, 5000, &probe);
    assert_eq!(status, Some(0), "{landing}");
    assert_eq!(landing["probed"]["reuseport_socket"]["value"], 2, "{landing}");
    assert_eq!(gets(&tx, &group, 5000), 2);
}

#[test]
fn probes_find_the_socket_of_a_group_that_is_opened_later() {
    let Some(bed) = Bed::new() else { return };
    let (tx, rx) = bed.pair(1);
    let probe = ["--probe", "--probe-sockets", "4", "--probe-from", tx.name()];
    let told: Vec<Value> = (5000..5008)
        .map(|from| {
            let (status, landing) = check(&rx, from, &probe);
            assert_eq!(status, Some(0), "{landing}");
            assert_eq!(landing["probed"]["into_application"], false);
            landing["probed"]["reuseport_socket"]["value"].clone()
        })
        .collect();
    let group = group(&rx, 4);
    let real: Vec<Value> = (5000..5008).map(|from| gets(&tx, &group, from).into()).collect();
    assert_eq!(told, real);
}

#[test]
fn probes_go_into_an_application_only_when_that_is_allowed() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let group = group(&rx, 3);
    let probe = ["--probe", "--probe-from", tx.name()];
    let (status, landing) = check(&rx, 5000, &probe);
    assert_eq!((status, queued(&group)), (Some(4), vec![0; 3]), "{landing}");
    assert_eq!(landing["probed"]["sent_packets"], 0);
    let why = landing["probed"]["reuseport_socket"]["why"].as_str().unwrap();
    assert!(why.contains("--probe-into-app"), "{landing}");

    let (status, landing) = check(&rx, 5000, &[&probe[..], &["--probe-into-app"]].concat());
    assert_eq!(status, Some(0), "{landing}");
    let index = landing["probed"]["reuseport_socket"]["value"].as_u64().unwrap();
    let filled: Vec<usize> = (0..3).filter(|at| queued(&group)[*at] > 0).collect();
    assert_eq!(filled, [index as usize], "{landing}");
    assert_eq!(landing["probed"]["into_application"], true);
    assert_eq!(gets(&tx, &group, 5000), index);
}

#[test]
fn probes_find_the_cpu_of_software_rps() {
    let Some(bed) = Bed::new() else { return };
    let cpus = rxpath_host::thread::allowed_cpus().unwrap();
    if cpus.0.len() < 2 {
        return crate::skip::skip("second_cpu", "this process may use one CPU only");
    }
    let (tx, rx) = bed.pair(1);
    rx.set_queue_attr("veth", "rx-0/rps_cpus", "3").unwrap();
    for from in 5000..5004 {
        let (status, landing) = check(&rx, from, &["--probe", "--probe-from", tx.name()]);
        assert_eq!(status, Some(0), "{landing}");
        let cpu = landing["probed"]["rps_cpu"]["value"].as_u64().unwrap() as u32;
        // More packets than other work of the machine brings in such a time, all processed there.
        let processed = || {
            let all = rxpath_host::procfs::softnet::read(&rxpath_host::Root::host()).unwrap();
            all.into_iter().find(|(of, _)| *of == cpu).unwrap().1.processed
        };
        let before = processed();
        // In small pieces: the CPU's backlog takes a thousand at once.
        until("the flow on its CPU", || {
            send(&tx, from, 100);
            processed().wrapping_sub(before) >= 3000
        });
    }
}

#[test]
fn what_can_not_be_probed_is_refused_in_a_line() {
    let Some(bed) = Bed::new() else { return };
    let (tx, rx) = bed.pair(1);
    let (plain, from) = (flow(5000), tx.name());
    let (tcp, foreign) = (plain.replace("udp", "tcp"), plain.replace("10.77.0.2", "192.0.2.1"));
    for (flow, words, why) in [
        (&tcp, vec!["--probe"], "would open a connection"),
        (&plain, vec!["--probe"], "is not an address of the sending side"),
        (&plain, vec!["--probe", "--probe-from", "no-such"], "/run/netns/no-such"),
        (&plain, vec!["--probe-sockets", "2"], "--probe"),
    ] {
        let output = run(&rx, flow, &words);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
        assert!(told.contains(why), "{words:?}: {told}");
    }
    let output = run(&rx, &foreign, &["--json", "--probe", "--probe-from", from]);
    assert_eq!(output.status.code(), Some(4));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["result"]["landings"][0]["probed"]["sent_packets"], 0, "{answer}");
}
