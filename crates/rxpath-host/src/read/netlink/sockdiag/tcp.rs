//! TCP sockets: what waits in them and, of listeners, how many connections wait to be accepted.

use std::net::SocketAddr;

use super::{INET_DIAG_INFO, INET_DIAG_MSG, INET_DIAG_SKMEMINFO, SkMemInfo, addresses, request};
use crate::HostError;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, word32};

/// `enum` of include/net/tcp_states.h, as far as data can wait in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    /// Data may flow.
    Established,
    /// The other side has closed; data may wait.
    CloseWait,
    /// Waiting for connections.
    Listen,
}

impl TcpState {
    const ALL: [(u8, Self); 3] = [(1, Self::Established), (8, Self::CloseWait), (10, Self::Listen)];

    fn of(number: u8) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == number).map(|(_, state)| *state)
    }
}

/// What the kernel reports of a connection's receiving side, and of what had to be sent again.
///
/// **Source** `struct tcp_info` (linux/tcp.h), net/ipv4/tcp.c `tcp_get_info`. A kernel gives the fields that it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpDiagInfo {
    /// Segments that this host sent again (`tcpi_total_retrans`).
    pub retransmitted_segments: u32,
    /// Bytes that arrived in order (`tcpi_bytes_received`, since 4.1).
    pub received_bytes: Option<u64>,
    /// Segments that arrived ahead of a gap (`tcpi_rcv_ooopack`, since 5.4).
    pub out_of_order_segments: Option<u32>,
    /// The window that was advertised last (`tcpi_rcv_wnd`, since 6.2).
    pub window_bytes: Option<u32>,
}

impl TcpDiagInfo {
    /// By the words of the structure; `None` when it is too short for what Linux 2.6 had.
    fn of(bytes: &[u8]) -> Option<Self> {
        let wide = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(Self {
            retransmitted_segments: word32(bytes, 25)?,
            received_bytes: wide(128),
            out_of_order_segments: word32(bytes, 56),
            window_bytes: word32(bytes, 58),
        })
    }
}

/// One TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// Own address.
    pub local: SocketAddr,
    /// The other's; unspecified and port 0 of a listener.
    pub remote: SocketAddr,
    /// State.
    pub state: TcpState,
    /// Inode, as in `/proc/PID/fd`.
    pub inode: u32,
    /// Bytes that wait for the reader; of a listener connections that wait to be accepted.
    ///
    /// **Source** net/ipv4/tcp_diag.c `tcp_diag_get_info`.
    pub receive_queue: u32,
    /// Bytes that are not acknowledged; of a listener the most connections that may wait.
    pub send_queue: u32,
    /// Memory; `None` when the kernel did not give it.
    pub memory: Option<SkMemInfo>,
    /// What happened on a connection so far; `None` of a listener.
    pub info: Option<TcpDiagInfo>,
}

impl TcpSocket {
    /// Reads one answer; `None` for states that were not asked for.
    pub fn parse(payload: &[u8]) -> Result<Option<Self>, HostError> {
        let attrs = Attrs::after(payload, INET_DIAG_MSG)?;
        let (local, remote) = addresses(payload);
        let Some(state) = TcpState::of(payload[1]) else { return Ok(None) };
        Ok(Some(Self {
            local,
            remote,
            state,
            receive_queue: word32(payload, 14).unwrap_or_default(),
            send_queue: word32(payload, 15).unwrap_or_default(),
            inode: word32(payload, 17).unwrap_or_default(),
            memory: attrs.get(INET_DIAG_SKMEMINFO).and_then(SkMemInfo::parse),
            info: attrs
                .get(INET_DIAG_INFO)
                .and_then(TcpDiagInfo::of)
                .filter(|_| state != TcpState::Listen),
        }))
    }
}

impl Netlink {
    /// The TCP sockets, IPv4 then IPv6, of this namespace, in which something can wait.
    ///
    /// **Source** `net/ipv4/inet_diag.c`. **Cost** walks the TCP hash tables, about 1 us a socket.
    /// **Errors** `Unsupported` when the kernel was built without `CONFIG_INET_TCP_DIAG`.
    pub fn tcp_sockets(&mut self) -> Result<Vec<TcpSocket>, HostError> {
        self.tcp_in(&TcpState::ALL)
    }

    /// The listening TCP sockets, IPv4 then IPv6, of this namespace.
    ///
    /// **Cost** walks the table of listeners alone. **Errors** as [`Netlink::tcp_sockets`].
    pub fn tcp_listeners(&mut self) -> Result<Vec<TcpSocket>, HostError> {
        self.tcp_in(&TcpState::ALL[2..])
    }

    fn tcp_in(&mut self, states: &[(u8, TcpState)]) -> Result<Vec<TcpSocket>, HostError> {
        let states = states.iter().fold(0, |mask, (number, _)| mask | 1 << number);
        let ask = |family| {
            let mut body = request(family, libc::IPPROTO_TCP, states, 0);
            body[2] |= 1 << (INET_DIAG_INFO - 1);
            body
        };
        self.sockets("TCP", ask, TcpSocket::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::takes_any_bytes;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_waits_is_seen() {
        use std::io::Write;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"12345").unwrap();
        let mut diag = Netlink::sock_diag().unwrap();
        let of = |all: &[TcpSocket], state| {
            all.iter().find(|one| one.local == address && one.state == state).copied()
        };
        let waiting = of(&diag.tcp_sockets().unwrap(), TcpState::Listen).unwrap();
        assert_eq!(waiting.receive_queue, 1);
        assert!(waiting.send_queue >= 1);
        let (accepted, _) = listener.accept().unwrap();
        let all = diag.tcp_sockets().unwrap();
        assert_eq!(of(&all, TcpState::Listen).unwrap().receive_queue, 0);
        let own = of(&all, TcpState::Established).unwrap();
        assert_eq!((own.receive_queue, own.remote), (5, stream.local_addr().unwrap()));
        assert!(own.memory.unwrap().rcvbuf > 0);
        let info = own.info.unwrap();
        assert!(info.received_bytes.is_none_or(|bytes| bytes == 5), "{info:?}");
        assert!(info.window_bytes.is_none_or(|window| window > 1_000), "{info:?}");
        assert_eq!((info.retransmitted_segments, info.out_of_order_segments.unwrap_or(0)), (0, 0));
        assert_eq!(of(&all, TcpState::Listen).unwrap().info, None);
        drop(accepted);
    }

    takes_any_bytes!(200, bytes => TcpSocket::parse(&bytes));
}
