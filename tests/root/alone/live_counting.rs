//! `rxpath diagnose` where UDP's counters are not datagrams that a program read: tunnels, and aggregates.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;

use nix::sys::socket::{setsockopt, sockopt};
use rxpath_host::lab::netns::Namespace;

use crate::alone::diagnose::{in_window, watching};
use crate::alone::live_limits::stop;
use crate::bed::{Bed, RX_IP, TX_IP};

/// Addresses in the tunnel.
const INNER: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 99, 0, 2)];

/// One end of a VXLAN tunnel over the pair.
fn tunnel(ns: &Namespace, inner: Ipv4Addr, far: Ipv4Addr) {
    let ip = |words: &str| {
        let mut command = Command::new("ip");
        assert!(command.args(["-n", ns.name()]).args(words.split(' ')).status().unwrap().success());
    };
    ip(&format!("link add vx0 type vxlan id 7 remote {far} dstport 4789 dev veth"));
    ip(&format!("address add {inner}/24 dev vx0"));
    ip("link set vx0 up");
}

#[test]
fn the_packets_of_a_tunnel_count_once() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    tunnel(&tx, INNER[0], RX_IP);
    tunnel(&rx, INNER[1], TX_IP);
    let reader = rx.run(|_| UdpSocket::bind((INNER[1], 4840)).unwrap()).unwrap();
    let sender = tx.run(|_| UdpSocket::bind((INNER[0], 0)).unwrap()).unwrap();
    let mut child = watching(&rx, &["-d", "600s"]);
    in_window(&mut child);
    for _ in 0..500 {
        sender.send_to(&[0; 100], (INNER[1], 4840)).unwrap();
        reader.recv(&mut [0; 100]).unwrap();
    }
    let result = stop(child);
    let evidence = &result["evidence_read"];
    assert_eq!(evidence["ledger"]["offered_packets"], 500, "{result}");
    let taken = evidence["udp_counting"]["taken_by_kernel_packets"].as_u64();
    assert!(taken >= Some(500), "{result}");
    let said = result["evidence"].to_string();
    assert!(said.contains("were taken by the kernel itself"), "{said}");
}

#[test]
fn aggregates_that_the_reader_takes_whole_are_told() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let reader = rx.run(|_| UdpSocket::bind((RX_IP, 4841)).unwrap()).unwrap();
    setsockopt(&reader, sockopt::UdpGroSegment, &true).unwrap();
    let sender = tx.run(|_| UdpSocket::bind((TX_IP, 0)).unwrap()).unwrap();
    setsockopt(&sender, sockopt::UdpGsoSegment, &100).unwrap();
    let mut child = watching(&rx, &["-d", "600s"]);
    in_window(&mut child);
    for _ in 0..200 {
        sender.send_to(&[0; 2_000], (RX_IP, 4841)).unwrap();
        assert_eq!(reader.recv(&mut [0; 4_000]).unwrap(), 2_000);
    }
    let result = stop(child);
    let per_packet = &result["evidence_read"]["udp_counting"]["segments_per_packet"];
    // A few other packets are among them.
    assert!((15.0..=20.0).contains(&per_packet.as_f64().unwrap()), "{result}");
    let said = result["evidence"].to_string();
    assert!(said.contains("may be an aggregate: packets of IP had"), "{said}");
}
