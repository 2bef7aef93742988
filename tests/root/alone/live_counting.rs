//! `rxpath diagnose` where UDP's counters are not datagrams that a program read: tunnels, and aggregates.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use nix::sys::socket::{setsockopt, sockopt};
use rxpath_host::lab::netns::Namespace;
use serde_json::Value;

use crate::alone::diagnose::{end, in_window, watching};
use crate::alone::live_limits::stop;
use crate::bed::{Bed, RX_IP, TX_IP, tried};
use crate::schema;

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

/// Sends until some time after `over`: when, and how many datagrams by then.
fn sent_until(over: &AtomicBool, sender: &UdpSocket) -> Vec<(Timestamp, u64)> {
    let (mut sent, mut after) = (vec![(Timestamp::now(), 0)], 0);
    // A minute at most.
    for step in 1..=60_000 {
        after += u32::from(over.load(Ordering::Relaxed));
        if after > 300 {
            break;
        }
        for _ in 0..20 {
            sender.send_to(&[0; 10], (RX_IP, 4842)).unwrap();
        }
        sent.push((Timestamp::now(), step * 20));
        // why: the pace of the sender.
        std::thread::sleep(Duration::from_millis(1));
    }
    sent
}

/// What `diagnose` counts in its window, as a share of what was sent in it, and its result.
fn counted_ratio(sender: &UdpSocket, rx: &Namespace) -> (f64, Value) {
    let over = AtomicBool::new(false);
    let (sent, (code, value)) = std::thread::scope(|threads| {
        let sending = threads.spawn(|| sent_until(&over, sender));
        let ended = end(watching(rx, &["-d", "1s"]));
        over.store(true, Ordering::Relaxed);
        (sending.join().unwrap(), ended)
    });
    assert_eq!(code, Some(0), "{value}");
    let result = schema::result("diagnose", &value.to_string());
    let began: Timestamp = result["window"]["began"].as_str().unwrap().parse().unwrap();
    let window = Duration::from_secs_f64(result["window"]["duration_s"].as_f64().unwrap());
    let by = |at: Timestamp| sent[sent.partition_point(|(sent_at, _)| *sent_at < at)].1;
    let offered = result["evidence_read"]["ledger"]["offered_packets"].as_f64().unwrap();
    (offered / (by(began + window) - by(began)) as f64, result)
}

#[test]
fn all_that_arrives_in_the_window_is_counted_while_drops_are_watched() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4842)).unwrap()).unwrap();
    let sender = tx.run(|_| UdpSocket::bind((TX_IP, 0)).unwrap()).unwrap();
    // To find the names of places that drop takes as long as a tenth of the window.
    let is_whole = |(ratio, _): &(f64, Value)| (0.97..=1.03).contains(ratio);
    let counted = tried(|| counted_ratio(&sender, &rx), is_whole);
    assert!(is_whole(&counted), "{} of what was sent: {}", counted.0, counted.1);
}
