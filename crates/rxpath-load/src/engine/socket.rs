//! One socket (UDP, TCP or raw) and its options.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rxpath_host::HostError;
use rxpath_host::read::netlink::SkMemInfo;
use socket2::{Domain, Protocol, SockAddr, Type};

use super::hops;

/// `UDP_SEGMENT` and `UDP_GRO` (include/uapi/linux/udp.h).
pub const UDP_SEGMENT: libc::c_int = 103;
/// See [`UDP_SEGMENT`].
pub const UDP_GRO: libc::c_int = 104;

/// A socket.
#[derive(Debug)]
pub struct Socket(pub(crate) socket2::Socket);

impl Socket {
    /// A UDP socket of the address' family.
    pub fn udp(like: SocketAddr) -> io::Result<Self> {
        Self::open(like, Type::DGRAM, Some(Protocol::UDP))
    }

    /// A TCP socket of the address' family, non-blocking.
    pub fn tcp(like: SocketAddr) -> io::Result<Self> {
        Self::open(like, Type::STREAM.nonblocking(), Some(Protocol::TCP))
    }

    /// A TCP socket of the address' family whose calls wait.
    pub fn tcp_blocking(like: SocketAddr) -> io::Result<Self> {
        Self::open(like, Type::STREAM, Some(Protocol::TCP))
    }

    /// A raw socket that takes whole IP packets (`IPPROTO_RAW`). **Errors** `EPERM`: needs `CAP_NET_RAW`.
    pub fn raw(like: SocketAddr) -> io::Result<Self> {
        Self::open(like, Type::RAW, Some(Protocol::from(libc::IPPROTO_RAW)))
    }

    fn open(like: SocketAddr, kind: Type, protocol: Option<Protocol>) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(like), kind, protocol)?;
        match hops::limit() {
            Some(hops) if like.is_ipv6() => socket.set_unicast_hops_v6(u32::from(hops))?,
            Some(hops) => socket.set_ttl_v4(u32::from(hops))?,
            None => {}
        }
        Ok(Self(socket))
    }

    /// The descriptor, valid while this socket lives.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Binds to a local address.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        self.0.bind(&addr.into())
    }

    /// Connects, so that the kernel looks the route up once.
    pub fn connect(&self, addr: SocketAddr) -> io::Result<()> {
        self.0.connect(&addr.into())
    }

    /// The local address.
    pub fn local(&self) -> io::Result<SocketAddr> {
        ip_address(&self.0.local_addr()?)
    }

    /// The other end's address.
    pub fn peer(&self) -> io::Result<SocketAddr> {
        ip_address(&self.0.peer_addr()?)
    }

    /// Sets an integer option.
    pub fn set(&self, level: libc::c_int, name: libc::c_int, value: i32) -> io::Result<()> {
        self.set_raw(level, name, &value)
    }

    pub(super) fn set_raw<T>(
        &self,
        level: libc::c_int,
        name: libc::c_int,
        value: &T,
    ) -> io::Result<()> {
        // SAFETY: the pointer and the length describe `value`, which outlives the call.
        let done = unsafe {
            libc::setsockopt(
                self.fd(),
                level,
                name,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Reads an integer option.
    pub fn get(&self, level: libc::c_int, name: libc::c_int) -> io::Result<i32> {
        let mut value = 0;
        // SAFETY: any bytes are a valid integer.
        unsafe { read_option(self.fd(), (level, name), &mut value) }.map(|_| value)
    }

    /// The memory of this socket. **Cost** one system call, no lock of the socket.
    pub fn meminfo(&self) -> io::Result<SkMemInfo> {
        SkMemInfo::of(self.as_fd()).map_err(|error| match error {
            HostError::Kernel { errno, .. } => io::Error::from_raw_os_error(errno),
            other => io::Error::other(other),
        })
    }

    /// Attaches a classic BPF program that picks the socket of a `SO_REUSEPORT` group.
    pub fn attach_reuseport(&self, program: &mut [libc::sock_filter]) -> io::Result<()> {
        let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        self.set_raw(libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF, &program)
    }

    /// A buffer size, forced past `rmem_max`/`wmem_max` where that is allowed; returns whether it was forced.
    ///
    /// `bytes` is what the kernel shall hold: it doubles the number that it is given.
    pub fn set_buffer(&self, side: Buffer, bytes: u64) -> io::Result<bool> {
        let half = i32::try_from(bytes / 2).unwrap_or(i32::MAX / 2);
        let (force, plain) = match side {
            Buffer::Receive => (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            Buffer::Send => (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        };
        if self.set(libc::SOL_SOCKET, force, half).is_ok() {
            return Ok(true);
        }
        self.set(libc::SOL_SOCKET, plain, half).map(|()| false)
    }

    /// The path MTU of a connected socket. **Source** `IP_MTU`, `IPV6_MTU`.
    pub fn mtu(&self, like: SocketAddr) -> io::Result<u32> {
        let mtu = if like.is_ipv4() {
            self.get(libc::IPPROTO_IP, libc::IP_MTU)
        } else {
            self.get(libc::IPPROTO_IPV6, libc::IPV6_MTU)
        }?;
        Ok(mtu as u32)
    }

    /// Waits until a `poll` event is there; `Ok(false)` when the time is up or a signal came.
    pub fn wait(&self, events: libc::c_short, timeout_ms: i32) -> io::Result<bool> {
        poll(&mut [libc::pollfd { fd: self.fd(), events, revents: 0 }], timeout_ms)
    }
}

/// Reads an option into `value`, at most its size; gives how many bytes the kernel wrote.
///
/// # Safety
///
/// Any bytes must be a valid `T`. Where the option is a request with addresses, the kernel may write to the memory there.
#[inline]
pub(super) unsafe fn read_option<T>(
    fd: RawFd,
    (level, name): (libc::c_int, libc::c_int),
    value: &mut T,
) -> io::Result<usize> {
    let (mut len, value) = (size_of::<T>() as libc::socklen_t, std::ptr::from_mut(value).cast());
    // SAFETY: the pointer and the length describe `value`, for which any bytes are valid, says the caller.
    let done = unsafe { libc::getsockopt(fd, level, name, value, &raw mut len) };
    if done == 0 { Ok(len as usize) } else { Err(io::Error::last_os_error()) }
}

/// Waits until one of them has an event; `Ok(false)` when the time is up or a signal came.
pub(super) fn poll(sockets: &mut [libc::pollfd], timeout_ms: i32) -> io::Result<bool> {
    // SAFETY: the pointer and the number describe the list.
    match unsafe { libc::poll(sockets.as_mut_ptr(), sockets.len() as _, timeout_ms) } {
        n if n >= 0 => Ok(n > 0),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
    }
}

fn ip_address(addr: &SockAddr) -> io::Result<SocketAddr> {
    addr.as_socket().ok_or_else(|| io::Error::other("the socket has no IP address"))
}

impl From<OwnedFd> for Socket {
    fn from(fd: OwnedFd) -> Self {
        Self(fd.into())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Which buffer of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// `SO_RCVBUF`.
    Receive,
    /// `SO_SNDBUF`.
    Send,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_read_back() {
        let addr: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let socket = Socket::udp(addr).unwrap();
        socket.bind(addr).unwrap();
        socket.set_buffer(Buffer::Receive, 65_536).unwrap();
        assert_eq!(socket.meminfo().unwrap().rcvbuf, 65_536);
        assert_eq!(socket.meminfo().unwrap().rmem, 0);
        let peer = Socket::udp(addr).unwrap();
        peer.connect(socket.local().unwrap()).unwrap();
        assert!(peer.mtu(addr).unwrap() >= 1280);
        peer.send_with(b"x", libc::MSG_DONTWAIT).unwrap();
        assert!(socket.wait(libc::POLLIN, 10_000).unwrap());
        assert!(socket.meminfo().unwrap().rmem > 0);
    }
}
