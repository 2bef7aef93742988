//! `check --flow` against the kernel: the group and the selector that it names are the kernel's own.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use nix::libc;
use nix::sys::stat::fstat;
use rxpath_host::lab::netns::Namespace;
use rxpath_load::engine::socket::Socket;
use serde_json::Value;

use crate::bed::{Bed, RX_IP, TX_IP};

const PORT: u16 = 4600;

/// Runs the program in the receiver's namespace: where a flow lands.
fn check(rx: &Namespace) -> Value {
    let flow = format!("{TX_IP}:5000->{RX_IP}:{PORT}/udp");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["check", "--dev", "veth", "--flow", &flow, "--json"]);
    let output = rx.run(move |_| command.output().unwrap()).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    answer["result"]["landings"][0].clone()
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

fn op(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

#[test]
fn a_classic_selector_and_the_hash_are_named_with_their_group() {
    let Some((_bed, _tx, rx)) = Bed::wired_with_bpf() else { return };
    let classic = group(&rx, 4);
    // The source port modulo 4.
    let mut selector = vec![op(0x28, 0xfff0_0014), op(0x54, 3), op(0x16, 0)];
    classic[0].attach_reuseport(&mut selector).unwrap();
    let landing = check(&rx);
    let found = &landing["reuseport_group"]["value"];
    assert_eq!(found["sockets_count"], 4, "{landing}");
    assert_eq!(found["selector"], "a classic BPF program of 3 instructions", "{landing}");
    let inodes: Vec<u64> = classic.iter().map(|one| fstat(one).unwrap().st_ino).collect();
    assert_eq!(found["inodes"], serde_json::json!(inodes), "{landing}");
    let why = landing["reuseport_socket"]["why"].as_str().unwrap();
    assert!(why.contains("a classic BPF program chooses"), "{landing}");
    drop(classic);
    let plain = group(&rx, 2);
    let landing = check(&rx);
    let why = landing["reuseport_socket"]["why"].as_str().unwrap();
    assert!(why.contains("secret key"), "{landing}");
    drop(plain);
    let _alone = group(&rx, 1);
    assert_eq!(check(&rx)["reuseport_socket"]["value"], 0);
}

/// An eBPF program that always names one socket, loaded as a socket filter: mov r0, SOCKET; exit.
fn ebpf_selector(socket: i32) -> OwnedFd {
    const SOCKET_FILTER: u32 = 1;
    let code = [0xb7 | u64::from(socket as u32) << 32, 0x95];
    crate::raw_bpf::load(SOCKET_FILTER, &code, "chosen").unwrap()
}

#[test]
fn an_ebpf_selector_is_named() {
    let Some((_bed, _tx, rx)) = Bed::wired_with_bpf() else { return };
    let group = group(&rx, 4);
    let selector = ebpf_selector(2);
    group[0].set(libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_EBPF, selector.as_raw_fd()).unwrap();
    let landing = check(&rx);
    let named = landing["reuseport_group"]["value"]["selector"].as_str().unwrap();
    assert!(named.starts_with("the eBPF program ") && named.contains("(chosen)"), "{landing}");
    let why = landing["reuseport_socket"]["why"].as_str().unwrap();
    assert!(why.contains("not computed here"), "{landing}");
}
