//! `rxpath trace --netns`: a namespace has the drops of its readers, and those that were seen before it was gone.

use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};

use crate::alone::arrived::until_arrived;
use crate::alone::probes::{probe, rows};
use crate::bed::{Bed, RX_IP, send, until};

/// The checksum of a long datagram is looked at when it is read: it has no device any more then, and no socket is named.
#[test]
fn a_namespace_has_the_drops_of_its_readers() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let reader = rx.run(|_| UdpSocket::bind((RX_IP, 4503)).unwrap()).unwrap();
    reader.set_nonblocking(true).unwrap();
    let trace = probe(&["trace", "-d", "10m", "--netns", rx.name()]);
    tx.run(|_| damaged(4503, 50)).unwrap();
    // The good one is behind them, whichever CPU delivers it.
    until_arrived(&rx, 50);
    send(&tx, 4503, 1);
    rx.run(move |_| until("the good one is read", || reader.recv(&mut [0; 600]).is_ok())).unwrap();
    let result = trace.end();
    let drops = rows(&result, "drops").iter().filter(|drop| drop["port"] == 4503);
    let packets = drops.map(|drop| drop["packets"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(packets, 50, "{result}");
}

/// Sends long datagrams with a wrong checksum.
fn damaged(port: u16, count: usize) {
    let (raw, none) = (SockType::Raw, SockFlag::empty());
    let socket = socket(AddressFamily::Inet, raw, none, SockProtocol::Udp).unwrap();
    let mut packet = [0; 508];
    for (at, word) in [port, port, 508, 0x1234].into_iter().enumerate() {
        packet[2 * at..][..2].copy_from_slice(&word.to_be_bytes());
    }
    let to = SockaddrIn::from(SocketAddrV4::new(RX_IP, 0));
    for _ in 0..count {
        sendto(socket.as_raw_fd(), &packet, &to, MsgFlags::empty()).unwrap();
    }
}

#[test]
fn a_namespace_that_goes_while_it_is_traced_leaves_what_was_seen_of_it() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let trace = probe(&["trace", "-d", "10m", "--netns", rx.name()]);
    send(&tx, 4700, 100);
    until_arrived(&rx, 100);
    drop((tx, rx));
    let document = trace.end_whole();
    assert!(
        document["warnings"].to_string().contains("namespace-gone"),
        "{}",
        document["warnings"]
    );
    let drops = document["result"]["drops"].as_array().unwrap();
    let of: u64 = drops.iter().map(|drop| drop["packets"].as_u64().unwrap()).sum();
    assert!(of >= 100, "{drops:?}");
}
