//! What waits in sockets, by `rxpath trace`: whose it is, how much, and that it goes with its socket.

use std::net::UdpSocket;
use std::os::fd::AsFd;

use crate::alone::arrived::send_all;
use crate::alone::probes::{number, probe, rows};
use crate::bed::{Bed, RX_IP, until};

#[test]
fn what_waits_in_a_socket_that_nobody_reads_is_seen() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let full = rx.run(|_| UdpSocket::bind((RX_IP, 4501)).unwrap()).unwrap();
    let trace = probe(&["trace", "-d", "10m", "--netns", rx.name()]);
    send_all(&tx, &rx, 4501, 3000);
    let limit = rxpath_host::read::netlink::SkMemInfo::of(full.as_fd()).unwrap();
    // Looked at again and again: the filled queue is seen after it was filled.
    let before = trace.looks();
    // One of TCP's may be among them.
    until("two looks", || trace.looks() >= before + 4);
    let result = trace.end();
    let sockets = rows(&result, "sockets");
    let [queue] = sockets.as_slice() else { panic!("{sockets:?}") };
    assert_eq!((queue["port"].as_u64(), queue["protocol"].as_str()), (Some(4501), Some("udp")));
    assert_eq!(queue["limit_bytes"].as_u64(), Some(u64::from(limit.rcvbuf)));
    assert_eq!(queue["max_bytes"].as_u64(), Some(u64::from(limit.rmem)));
    let own = format!("({})", std::process::id());
    let processes = queue["processes"].as_array().unwrap();
    assert!(processes.iter().any(|name| name.as_str().unwrap().ends_with(&own)), "{queue}");
    assert!(number(&result, "socket_looks_count") >= number(queue, "waiting_count"));
}

/// Sockets that come and go have rows of their own, and nothing waits in those that are gone.
#[test]
fn a_queue_belongs_to_its_socket_and_goes_with_it() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let trace = probe(&["trace", "-d", "10m", "--netns", rx.name()]);
    let ports = [6100, 6101, 6102, 6103];
    for port in ports {
        let socket = rx.run(move |_| UdpSocket::bind((RX_IP, port)).unwrap()).unwrap();
        send_all(&tx, &rx, port, 10);
        let before = trace.looks();
        // One of TCP's may be among them.
        until("two looks", || trace.looks() >= before + 4);
        drop(socket);
    }
    let before = trace.looks();
    // One of TCP's may be among them.
    until("two looks", || trace.looks() >= before + 4);
    let result = trace.end();
    let mut seen: Vec<u64> =
        rows(&result, "sockets").iter().map(|socket| socket["port"].as_u64().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen, ports.map(u64::from));
    for socket in rows(&result, "sockets") {
        assert!(number(socket, "max_bytes") > 0.0 && number(socket, "now_bytes") < 0.5, "{socket}");
    }
}
