//! Socket memory: what `sock_diag` says of a socket is what the socket says of itself.

use std::net::UdpSocket;
use std::os::fd::AsFd;

use rxpath_host::read::netlink::SkMemInfo;

use crate::bed::{Bed, RX_IP, send, until};

#[test]
fn sock_diag_agrees_with_so_meminfo() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    let socket = rx.run(|_| UdpSocket::bind((RX_IP, 4242)).unwrap()).unwrap();
    let other = rx.run(|_| UdpSocket::bind((RX_IP, 4243)).unwrap()).unwrap();
    let own = || SkMemInfo::of(socket.as_fd()).unwrap();
    let capacity = own().rcvbuf;
    // More than the buffer holds: 768 bytes of truesize each on this and most kernels.
    let count = capacity / 512 + 1000;
    send(&tx, 4242, count);
    until("drops at the socket", || own().drops > 0);
    let found = rx.udp_sockets(Some(4242)).unwrap();
    assert_eq!(found.len(), 1, "filtered by port: {found:?}");
    let mut diag = found[0];
    // What was sent may still be in flight, in ksoftirqd.
    until("both say the same", || {
        diag = rx.udp_sockets(Some(4242)).unwrap()[0];
        diag.memory == Some(own())
    });
    let memory = diag.memory.unwrap();
    assert!(memory.rmem > 0 && memory.drops > 0, "{memory:?}");
    assert_eq!(diag.local.to_string(), "10.77.0.2:4242");
    assert_eq!(diag.uid, 0);

    // Every datagram is either in the queue or dropped.
    socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 64];
    let mut read = 0;
    until("each is read or dropped", || {
        while socket.recv(&mut buffer).is_ok() {
            read += 1;
        }
        read + own().drops == count
    });
    assert_eq!(rx.udp_sockets(None).unwrap().len(), 2);
    drop(other);
    assert!(tx.udp_sockets(Some(4242)).unwrap().is_empty(), "each namespace has its own");
}
