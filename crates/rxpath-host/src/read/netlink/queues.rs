//! The queues of sockets of one port, TCP or UDP, as they are at one moment: what a sampler asks for again and again.

use std::net::SocketAddr;

use super::addr::octets;
use super::sockdiag::{
    self, ALL_STATES, INET_DIAG_INFO, INET_DIAG_MSG, SOCK_DIAG_BY_FAMILY, SkMemInfo, UdpSocket,
};
use crate::HostError;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, word32};

/// `tcpi_rcv_ooopack` as a word of `struct tcp_info` (linux/tcp.h, since 5.4).
const OUT_OF_ORDER: usize = 56;
/// States without a queue of data: `TCP_TIME_WAIT`, `TCP_CLOSE`, `TCP_LISTEN`, `TCP_NEW_SYN_RECV`.
const TCP_WITHOUT_DATA: u32 = 1 << 6 | 1 << 7 | 1 << 10 | 1 << 12;

/// Which sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueAsk {
    /// TCP instead of UDP.
    pub tcp: bool,
    /// IPv6 instead of IPv4.
    pub v6: bool,
    /// Their own port; 0 = any.
    pub local_port: u16,
    /// The other end's port; 0 = any.
    pub remote_port: u16,
}

/// One socket's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Its own address.
    pub local: SocketAddr,
    /// The other end's; unspecified when not connected.
    pub remote: SocketAddr,
    /// Inode, which names it for as long as it lives.
    pub inode: u32,
    /// Payload not read yet (TCP); `sk_rmem_alloc` (UDP).
    pub unread_bytes: u32,
    /// Payload not acknowledged yet (TCP); `sk_wmem_alloc` (UDP).
    pub unsent_bytes: u32,
    /// Memory; `None` when the kernel did not give it.
    pub memory: Option<SkMemInfo>,
    /// Segments that came out of order so far; `None` for UDP and before 5.4.
    pub out_of_order_total: Option<u32>,
}

impl Queues {
    /// Reads one answer (`struct inet_diag_msg` and attributes).
    pub fn parse(payload: &[u8]) -> Result<Self, HostError> {
        let socket = UdpSocket::parse(payload)?;
        let attrs = Attrs::after(payload, INET_DIAG_MSG)?;
        Ok(Self {
            local: socket.local,
            remote: socket.remote,
            inode: socket.inode,
            unread_bytes: word32(payload, 14).unwrap_or_default(),
            unsent_bytes: word32(payload, 15).unwrap_or_default(),
            memory: socket.memory,
            out_of_order_total: attrs
                .get(INET_DIAG_INFO)
                .and_then(|info| word32(info, OUT_OF_ORDER)),
        })
    }
}

/// `struct inet_diag_req_v2`.
fn request(ask: QueueAsk) -> [u8; 56] {
    let family = if ask.v6 { libc::AF_INET6 } else { libc::AF_INET };
    let (protocol, states) = if ask.tcp {
        (libc::IPPROTO_TCP, ALL_STATES & !TCP_WITHOUT_DATA)
    } else {
        (libc::IPPROTO_UDP, ALL_STATES)
    };
    let mut bytes = sockdiag::request(family, protocol, states, ask.local_port);
    if ask.tcp {
        bytes[2] |= 1 << (INET_DIAG_INFO - 1);
    }
    bytes[10..12].copy_from_slice(&ask.remote_port.to_be_bytes());
    bytes
}

impl Netlink {
    /// The queues of the sockets that fit, of the namespace that this was opened in.
    ///
    /// **Source** `inet_diag_dump_icsk` (net/ipv4/inet_diag.c), `udp_dump` (net/ipv4/udp_diag.c). **Cost** a walk over
    /// the whole hash table, which all namespaces share. **Errors** `Kernel`.
    pub fn queues(&mut self, ask: QueueAsk) -> Result<Vec<Queues>, HostError> {
        let replies = self.dump("read socket queues", SOCK_DIAG_BY_FAMILY, &request(ask))?;
        replies.iter().map(|reply| Queues::parse(reply)).collect()
    }

    /// The queues of one TCP connection, by both of its ends; `None` when it is gone.
    ///
    /// **Source** `inet_diag_dump_one_icsk`. **Cost** some microseconds: a lookup instead of a walk.
    /// **Errors** `Kernel`.
    pub fn queues_of(
        &mut self,
        v6: bool,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<Option<Queues>, HostError> {
        let (local_port, remote_port) = (local.port(), remote.port());
        let mut body = request(QueueAsk { tcp: true, v6, local_port, remote_port });
        for (at, ip) in [(12, octets(local.ip())), (28, octets(remote.ip()))] {
            body[at..at + ip.len()].copy_from_slice(&ip);
        }
        // INET_DIAG_NOCOOKIE
        body[48..56].fill(0xff);
        let replies = match self.get("read socket queues", SOCK_DIAG_BY_FAMILY, &body) {
            Err(HostError::Kernel { errno: libc::ENOENT, .. }) => return Ok(None),
            other => other?,
        };
        let found = replies.first().map(|reply| Queues::parse(reply)).transpose()?;
        // Of a connection that is gone the kernel finds the listener in its place (inet_lookup falls back to
        // inet_lookup_listener): another socket's queue.
        Ok(found.filter(|queues| queues.local == local && queues.remote == remote))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    #[test]
    fn what_nobody_reads_is_seen_on_both_sides() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let _server = listener.accept().unwrap();
        client.write_all(&[0; 1000]).unwrap();
        let mut netlink = Netlink::sock_diag().unwrap();
        let ask = QueueAsk { tcp: true, v6: false, local_port: port, remote_port: 0 };
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let found = netlink.queues(ask).unwrap();
            assert_eq!(found.len(), 1, "the listener has no data of its own");
            if found[0].unread_bytes == 1000 {
                let memory = found[0].memory.unwrap();
                assert!(memory.rmem >= 1000 && memory.rcvbuf > memory.rmem);
                assert_eq!(found[0].out_of_order_total, Some(0));
                break;
            }
            assert!(Instant::now() < deadline, "{found:?}");
            std::thread::yield_now();
        }
        let one = netlink.queues(ask).unwrap()[0];
        let again = netlink.queues_of(false, one.local, one.remote).unwrap().unwrap();
        assert_eq!((again.inode, again.unread_bytes), (one.inode, 1000));
        let gone = "127.0.0.1:1".parse().unwrap();
        assert_eq!(netlink.queues_of(false, one.local, gone).unwrap(), None);
        let ask = QueueAsk { local_port: 0, remote_port: port, ..ask };
        assert_eq!(netlink.queues(ask).unwrap()[0].remote.port(), port);
    }
}
