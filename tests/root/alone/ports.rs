//! Packets by the port of the socket that got them.

use std::net::UdpSocket;

use rxpath_bpf::filter::Filter;
use rxpath_bpf::stages::{Pace, Stages};

use crate::bed::{Bed, RX_IP, TX_IP, send, until};

const UDP: u32 = 17;

#[test]
fn packets_are_counted_by_the_port_of_their_socket_and_chosen_ports_together() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
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

#[test]
fn a_new_port_is_counted_after_more_ports_than_have_a_row() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let stages = Stages::start(&Filter::default(), Pace::Every).unwrap();
    // Two CPUs have 1024 rows.
    for from in [20_000u16, 20_500, 21_000, 21_500] {
        let bound = |port: u16| UdpSocket::bind((RX_IP, port)).unwrap();
        let ports = from..from + 500;
        let wanted = ports.clone();
        let all = rx.run(move |_| wanted.map(bound).collect::<Vec<_>>()).unwrap();
        tx.run(move |_| {
            let socket = UdpSocket::bind((TX_IP, 0)).unwrap();
            for port in ports {
                socket.send_to(&[7; 32], (RX_IP, port)).unwrap();
            }
        })
        .unwrap();
        drop(all);
    }
    let _late = rx.run(|_| UdpSocket::bind((RX_IP, 4814)).unwrap()).unwrap();
    until("a late port is counted", || {
        send(&tx, 4814, 10);
        stages.ports().unwrap().iter().any(|row| (row.protocol, row.port) == (UDP, 4814))
    });
}
