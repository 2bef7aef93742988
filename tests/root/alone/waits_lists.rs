//! `rxpath trace` on packets that come in lists: the kernel runs the tracepoint of their entry for each of a list before it
//! delivers the first, and each is still timed by its own.

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::OwnedFd;

use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket, sockopt::RcvBufForce,
};
use rxpath_host::lab::netns::Namespace;
use serde_json::Value;

use crate::alone::probes::{Probe, number, probe, rows};
use crate::bed::{Bed, RX_IP, TX_IP, until};
use crate::waits::{bound, stage, stream};

/// Datagrams to a port that are sent before they are read: with those to three there is room in the ring of a veth (256).
const FLIGHT: usize = 50;

/// Flights of a test.
const FLIGHTS: usize = 400;

/// Sender and receiver, whose device merges packets and polls in a thread: it delivers lists.
fn pair(bed: &Bed) -> (Namespace, Namespace) {
    let (tx, rx) = bed.pair(1);
    // A packet of a sender that segments itself is not merged, and goes past the device's NAPI (drivers/net/veth.c
    // veth_skb_is_eligible_for_gro).
    tx.set_features("veth", &[("tso", false)]).unwrap();
    rx.set_features("veth", &[("gro", true)]).unwrap();
    rx.set_dev_attr("veth", "threaded", "1").unwrap();
    (tx, rx)
}

fn every_packet(rx: &Namespace, words: &[&str]) -> Probe {
    let all = ["trace", "-d", "10m", "--netns", rx.name(), "--every-packet"];
    probe(&[&all[..], words].concat())
}

/// Sends flights to these ports in turn, and reads those of the first; gives how many were read.
fn flights(tx: &Namespace, read: &UdpSocket, ports: &'static [u16]) -> usize {
    read.set_nonblocking(true).unwrap();
    let mut received = 0;
    for _ in 0..FLIGHTS {
        tx.run(move |_| {
            let out = UdpSocket::bind((TX_IP, 0)).unwrap();
            for _ in 0..FLIGHT {
                for port in ports {
                    // Nobody listens at some: then a send tells of the answer to the one before.
                    let _ = out.send_to(&[7; 32], (RX_IP, *port));
                }
            }
        })
        .unwrap();
        let mut left = FLIGHT;
        until("the flight is read", || {
            while left > 0 && read.recv(&mut [0; 64]).is_ok() {
                left -= 1;
            }
            left == 0
        });
        received += FLIGHT;
    }
    received
}

/// Packets that were timed to their socket, and those that were not.
fn timed(result: &Value) -> (u64, u64) {
    let ready = stage(result, "receive-to-socket");
    (number(ready, "latencies_count") as u64, number(ready, "untimed_count") as u64)
}

/// Otherwise nothing is tested.
fn came_in_lists(result: &Value) {
    let napi = rows(result, "napis").iter().find(|napi| napi["dev"] == "veth").unwrap();
    let (packets, polls) = (number(napi, "packets"), number(napi, "polls_count"));
    assert!(packets > 1.2 * polls, "{napi}");
}

#[test]
fn each_datagram_of_a_list_is_timed() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = pair(&bed);
    let socket = bound(&rx, 4731);
    let trace = every_packet(&rx, &["--port", "4731"]);
    let received = flights(&tx, &socket, &[4731]);
    let result = trace.end();
    came_in_lists(&result);
    let (timed, untimed) = timed(&result);
    assert_eq!(timed + untimed, received as u64, "each became ready once");
    assert!(timed as usize * 100 >= received * 95, "{timed} of {received}");
}

/// Packets that are dropped, answered or taken by another socket stand between those that are looked at.
#[test]
fn what_is_dropped_in_between_is_not_taken_for_what_is_delivered() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = pair(&bed);
    let (socket, _full) = (bound(&rx, 4732), bound(&rx, 4733));
    let trace = every_packet(&rx, &["--port", "4732"]);
    let received = flights(&tx, &socket, &[4732, 4733, 4734]);
    let result = trace.end();
    came_in_lists(&result);
    let (timed, untimed) = timed(&result);
    assert_eq!(timed + untimed, received as u64, "each became ready once");
    assert!(timed as usize * 100 >= received * 95, "{timed} of {received}");
}

/// A socket that gets a copy of every packet, has room for all of them, and is never read.
fn capture(rx: &Namespace) -> OwnedFd {
    const ROOM_BYTES: usize = 256 << 20;
    let opened = rx.run(|_| {
        let (family, kind, flags) = (AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC);
        let capture = socket(family, kind, flags, SockProtocol::EthAll)?;
        setsockopt(&capture, RcvBufForce, &ROOM_BYTES).map(|()| capture)
    });
    opened.unwrap().unwrap()
}

/// A capture gets its copy before the socket gets the packet: it must not pass for the socket. Its port is 0, so that only
/// a trace of all ports shows this.
#[test]
fn the_copies_of_a_capture_are_not_taken_for_datagrams_that_a_socket_gets() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = pair(&bed);
    let (read, _capture) = (bound(&rx, 4736), capture(&rx));
    let trace = every_packet(&rx, &[]);
    let received = flights(&tx, &read, &[4736]);
    let result = trace.end();
    let (timed, untimed) = timed(&result);
    assert_eq!(timed + untimed, received as u64, "each became ready once");
    assert!(timed as usize * 100 >= received * 95, "{timed} of {received}");
    // Nobody reads the copies: what was timed as one of them would never be read.
    let waited = stage(&result, "socket-to-read");
    let taken = number(waited, "latencies_count") as usize;
    assert!(taken * 2 >= received, "{taken} of {received} were read: {waited}");
}

/// A segment that is merged with the one before it is no longer in the queue when the socket is told.
#[test]
fn segments_of_a_list_are_timed() {
    const PIECE: [u8; 4000] = [7; 4000];
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = pair(&bed);
    let (mut out, mut socket) = stream(&tx, &rx, 4735);
    let trace = every_packet(&rx, &["--port", "4735"]);
    let reader = std::thread::spawn(move || {
        let mut whole = Vec::new();
        socket.read_to_end(&mut whole).unwrap();
        whole.len()
    });
    (0..5000).for_each(|_| out.write_all(&PIECE).unwrap());
    drop(out);
    assert_eq!(reader.join().unwrap(), 5000 * PIECE.len());
    let (timed, untimed) = timed(&trace.end());
    // What comes while the reader has the socket locked is made ready by the reader: no softirq, and not counted here.
    assert!(timed > 0 && timed * 100 >= (timed + untimed) * 95, "{timed}, and {untimed} not");
}
