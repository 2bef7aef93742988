//! Packets by the port of the socket that got them.

use std::net::UdpSocket;

use rxpath_bpf::filter::Filter;
use rxpath_bpf::stages::{Pace, Stages};

use crate::bed::{Bed, RX_IP, send, until};

const UDP: u32 = 17;

#[test]
fn packets_are_counted_by_the_port_of_their_socket_and_chosen_ports_together() {
    let Some(bed) = Bed::with_bpf() else { return };
    let (tx, rx) = bed.pair(1);
    let bound = |port: u16| rx.run(move |_| UdpSocket::bind((RX_IP, port)).unwrap()).unwrap();
    let (_service, client) = (bound(4813), bound(0));
    let chosen = client.local_addr().unwrap().port();
    let stages = Stages::start(&Filter::default(), Pace::Every).unwrap();
    let of = |port: u16| -> u64 {
        let rows = stages.ports().unwrap().into_iter();
        rows.filter(|row| (row.protocol, row.port) == (UDP, port)).map(|row| row.packets).sum()
    };
    let chosen_before = of(0);
    send(&tx, 4813, 100);
    send(&tx, chosen, 50);
    // Of a packet whose receive time is unknown the port is, too.
    until("packets of the service are counted", || of(4813) >= 90);
    until("and those of the other socket", || of(0) >= chosen_before + 45);
    assert!(of(4813) <= 100 && of(chosen) == 0, "{} {}", of(4813), of(chosen));
}
