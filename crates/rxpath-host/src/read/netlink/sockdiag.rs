//! Sockets and their memory: who holds how many bytes of which queue, and how many were dropped.

mod tcp;

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::HostError;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, word32};

pub use tcp::{TcpDiagInfo, TcpSocket, TcpState};

pub(super) const SOCK_DIAG_BY_FAMILY: u16 = 20;
// linux/inet_diag.h
pub(super) const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_SKMEMINFO: u16 = 7;
pub(super) const INET_DIAG_MSG: usize = 72;
pub(super) const ALL_STATES: u32 = u32::MAX;

/// A socket's memory: `SK_MEMINFO_*` (`linux/sock_diag.h`).
///
/// **Source** net/core/sock.c `sk_get_meminfo`. **Unit** bytes of truesize, except `drops`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkMemInfo {
    /// Charged to the receive queue now.
    pub rmem: u32,
    /// Limit of it.
    pub rcvbuf: u32,
    /// Limit of what was sent and not freed yet.
    pub sndbuf: u32,
    /// Reserved from the protocol's memory in advance.
    pub fwd_alloc: u32,
    /// Queued for sending (TCP).
    pub wmem_queued: u32,
    /// Waiting while the socket was locked by its owner.
    pub backlog: u32,
    /// **Unit** packets dropped at this socket since it was made; wraps at 2^32.
    pub drops: u32,
}

impl SkMemInfo {
    /// Reads the array of the kernel; `None` when it is too short to hold the drops (before 4.6).
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let at = |n| word32(bytes, n);
        Some(Self {
            rmem: at(0)?,
            rcvbuf: at(1)?,
            sndbuf: at(3)?,
            fwd_alloc: at(4)?,
            wmem_queued: at(5)?,
            backlog: at(7)?,
            drops: at(8)?,
        })
    }

    /// The memory of an own socket, by `SO_MEMINFO` (since 4.12).
    ///
    /// **Cost** one system call, no lock. **Errors** `Unsupported` on older kernels.
    pub fn of(socket: BorrowedFd<'_>) -> Result<Self, HostError> {
        let mut words = [0u32; 9];
        let mut length = size_of_val(&words) as libc::socklen_t;
        // SAFETY: the descriptor is borrowed and open; pointer and length describe `words`, which
        // the kernel fills with at most `length` bytes.
        let rc = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                words.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if rc != 0 {
            return Err(HostError::last_os("read SO_MEMINFO"));
        }
        let mut bytes = [0; size_of::<[u32; 9]>()];
        for (bytes, word) in bytes.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        let parsed = bytes.get(..length as usize).and_then(Self::parse);
        parsed.ok_or_else(|| HostError::unsupported("read SO_MEMINFO", "Linux 4.12"))
    }
}

/// One UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpSocket {
    /// Bound address.
    pub local: SocketAddr,
    /// Connected address; unspecified and port 0 when unconnected.
    pub remote: SocketAddr,
    /// Inode, as in `/proc/PID/fd`.
    pub inode: u32,
    /// Owner.
    pub uid: u32,
    /// Memory; `None` when the kernel did not give it.
    pub memory: Option<SkMemInfo>,
}

impl UdpSocket {
    /// Reads one answer (`struct inet_diag_msg` and attributes).
    pub fn parse(payload: &[u8]) -> Result<Self, HostError> {
        let attrs = Attrs::after(payload, INET_DIAG_MSG)?;
        let (local, remote) = addresses(payload);
        Ok(Self {
            local,
            remote,
            uid: word32(payload, 16).unwrap_or_default(),
            inode: word32(payload, 17).unwrap_or_default(),
            memory: attrs.get(INET_DIAG_SKMEMINFO).and_then(SkMemInfo::parse),
        })
    }
}

/// Own and other address of a `struct inet_diag_msg`, which must be whole.
fn addresses(message: &[u8]) -> (SocketAddr, SocketAddr) {
    let v6 = i32::from(message[0]) == libc::AF_INET6;
    let port = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
    let address = |at: usize| {
        let mut long = [0; 16];
        long.copy_from_slice(&message[at..at + 16]);
        if v6 { IpAddr::from(long) } else { IpAddr::from([long[0], long[1], long[2], long[3]]) }
    };
    (SocketAddr::new(address(8), port(4)), SocketAddr::new(address(24), port(6)))
}

/// `struct inet_diag_req_v2` for all sockets of a family and protocol in these states, with this local port (0: any).
pub(super) fn request(family: i32, protocol: i32, states: u32, port: u16) -> [u8; 56] {
    let mut bytes = [0; 56];
    bytes[0] = family as u8;
    bytes[1] = protocol as u8;
    bytes[2] = 1 << (INET_DIAG_SKMEMINFO - 1);
    bytes[4..8].copy_from_slice(&states.to_ne_bytes());
    bytes[8..10].copy_from_slice(&port.to_be_bytes());
    bytes
}

impl Netlink {
    /// The UDP sockets, IPv4 then IPv6, of this namespace, bound to `port` or all with `None`.
    ///
    /// **Source** `net/ipv4/udp_diag.c`. **Cost** walks the UDP hash table, about 1 us a socket.
    /// **Errors** `Unsupported` when the kernel was built without `CONFIG_INET_UDP_DIAG`.
    pub fn udp_sockets(&mut self, port: Option<u16>) -> Result<Vec<UdpSocket>, HostError> {
        let ask = |family| request(family, libc::IPPROTO_UDP, ALL_STATES, port.unwrap_or(0));
        self.sockets("UDP", ask, |answer| UdpSocket::parse(answer).map(Some))
    }

    /// The sockets of a protocol: what `parse` makes of the answers to `ask`, the request for a family.
    fn sockets<T>(
        &mut self,
        protocol: &str,
        ask: impl Fn(i32) -> [u8; 56],
        parse: impl Fn(&[u8]) -> Result<Option<T>, HostError>,
    ) -> Result<Vec<T>, HostError> {
        let op = format!("list {protocol} sockets");
        let mut sockets = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let replies = match self.dump(&op, SOCK_DIAG_BY_FAMILY, &ask(family)) {
                // inet_diag_handler: no module for this protocol.
                Err(HostError::Kernel { errno: libc::ENOENT, .. }) => {
                    let module = format!("{}_diag", protocol.to_lowercase());
                    let needs = format!("CONFIG_INET_{protocol}_DIAG (module {module})");
                    return Err(HostError::Unsupported { what: op, needs });
                }
                other => other?,
            };
            for reply in replies {
                sockets.extend(parse(&reply)?);
            }
        }
        Ok(sockets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::{takes_a_cut_answer, takes_any_bytes};
    use crate::netlink::wire::Body;

    fn sample() -> Vec<u8> {
        let mut message = vec![0; INET_DIAG_MSG];
        message[0] = libc::AF_INET as u8;
        message[4..6].copy_from_slice(&4242u16.to_be_bytes());
        message[8..12].copy_from_slice(&[10, 0, 0, 2]);
        message[68..72].copy_from_slice(&99u32.to_ne_bytes());
        let memory: Vec<u8> = (1..=9u32).flat_map(u32::to_ne_bytes).collect();
        Body::new(&message).raw(INET_DIAG_SKMEMINFO, &memory).bytes().to_vec()
    }

    #[test]
    fn a_socket_is_read() {
        let socket = UdpSocket::parse(&sample()).unwrap();
        assert_eq!(socket.local.to_string(), "10.0.0.2:4242");
        assert_eq!(socket.remote.to_string(), "0.0.0.0:0");
        assert_eq!(socket.inode, 99);
        let memory = socket.memory.unwrap();
        assert_eq!((memory.rmem, memory.rcvbuf, memory.drops), (1, 2, 9));
    }

    #[test]
    fn memory_that_is_not_given_is_not_zero() {
        assert_eq!(UdpSocket::parse(&sample()[..INET_DIAG_MSG]).unwrap().memory, None);
        assert_eq!(SkMemInfo::parse(&[0; 32]), None);
    }

    #[test]
    fn an_own_socket_tells_its_buffer() {
        use std::os::fd::AsFd;
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let memory = SkMemInfo::of(socket.as_fd()).unwrap();
        assert!(memory.rcvbuf > 0 && memory.sndbuf > 0);
        assert_eq!(memory.drops, 0);
    }

    takes_a_cut_answer!(sample(), cut => UdpSocket::parse(cut));
    takes_any_bytes!(200, bytes => UdpSocket::parse(&bytes));
}
