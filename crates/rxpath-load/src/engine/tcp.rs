//! TCP sockets: listening, connecting, sending and receiving, the options that only TCP has.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::engine::socket::Socket;

/// `SO_MAX_PACING_RATE` (include/uapi/asm-generic/socket.h).
const SO_MAX_PACING_RATE: libc::c_int = 47;

/// Where the kernel lists the congestion controls that it can use at once.
pub const CONGESTION_LIST: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

impl Socket {
    /// A TCP socket of the address' family whose calls wait.
    pub fn tcp_blocking(like: SocketAddr) -> io::Result<Self> {
        Self::open(like, libc::SOCK_STREAM, libc::IPPROTO_TCP)
    }

    /// Listens.
    pub fn listen(&self, backlog: i32) -> io::Result<()> {
        // SAFETY: plain integers.
        let done = unsafe { libc::listen(self.fd(), backlog) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Takes a waiting connection; the new socket never blocks.
    ///
    /// **Errors** `EAGAIN`: none waits; `EMFILE`, `ENFILE`: no descriptor is left.
    pub fn accept(&self) -> io::Result<Self> {
        // SAFETY: no address is asked for.
        let fd = unsafe {
            libc::accept4(
                self.fd(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened and nobody else owns it.
        Ok(Self::from(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Whether calls return `EAGAIN` instead of waiting.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        // SAFETY: plain integers.
        let flags = unsafe { libc::fcntl(self.fd(), libc::F_GETFL) };
        let flags = if on { flags | libc::O_NONBLOCK } else { flags & !libc::O_NONBLOCK };
        // SAFETY: plain integers.
        if unsafe { libc::fcntl(self.fd(), libc::F_SETFL, flags) } == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Connects and waits for at most this long.
    ///
    /// **Errors** `ETIMEDOUT` after that time, earlier ones as connect(2) has them.
    pub fn connect_within(&self, addr: SocketAddr, timeout_ms: i32) -> io::Result<()> {
        match self.connect(addr) {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            other => return other,
        }
        if !self.wait(libc::POLLOUT, timeout_ms)? {
            return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
        }
        self.connected()
    }

    /// How connecting has ended, once the socket is writable.
    pub fn connected(&self) -> io::Result<()> {
        match self.get(libc::SOL_SOCKET, libc::SO_ERROR)? {
            0 => Ok(()),
            number => Err(io::Error::from_raw_os_error(number)),
        }
    }

    /// Receives; `flags` are those of recv(2). 0 = the peer has ended its direction.
    #[inline]
    pub fn recv(&self, into: &mut [u8], flags: libc::c_int) -> io::Result<usize> {
        // SAFETY: pointer and length describe `into`.
        let got = unsafe { libc::recv(self.fd(), into.as_mut_ptr().cast(), into.len(), flags) };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }

    /// Takes up to `len` bytes from the receive queue without copying them (`MSG_TRUNC`, tcp(7)).
    #[inline]
    pub fn recv_discard(&self, len: usize, flags: libc::c_int) -> io::Result<usize> {
        // SAFETY: with MSG_TRUNC TCP writes nothing through the pointer (`tcp_recvmsg_locked`, net/ipv4/tcp.c).
        let got =
            unsafe { libc::recv(self.fd(), std::ptr::null_mut(), len, flags | libc::MSG_TRUNC) };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }

    /// Wakes readers only when this much waits, or the end (`SO_RCVLOWAT`); what the kernel made of it.
    pub fn set_low_water(&self, bytes: u64) -> io::Result<u64> {
        let wish = i32::try_from(bytes).unwrap_or(i32::MAX);
        self.set(libc::SOL_SOCKET, libc::SO_RCVLOWAT, wish)?;
        Ok(self.get(libc::SOL_SOCKET, libc::SO_RCVLOWAT)?.try_into().unwrap_or(1))
    }

    /// Sends; a closed peer is an error, never a signal.
    #[inline]
    pub fn send_with(&self, data: &[u8], flags: libc::c_int) -> io::Result<usize> {
        // SAFETY: pointer and length describe `data`.
        let sent = unsafe {
            libc::send(self.fd(), data.as_ptr().cast(), data.len(), flags | libc::MSG_NOSIGNAL)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Ends this side's direction (FIN); the other side may go on.
    pub fn shutdown_write(&self) -> io::Result<()> {
        // SAFETY: plain integers.
        let done = unsafe { libc::shutdown(self.fd(), libc::SHUT_WR) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Closing sends RST and leaves no TIME_WAIT (`SO_LINGER` of 0 s).
    pub fn reset_on_close(&self) -> io::Result<()> {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        self.set_raw(libc::SOL_SOCKET, libc::SO_LINGER, &linger)
    }

    /// How long a blocking call may wait before it gives `EAGAIN`; 0 = for ever.
    ///
    /// **Caveat** rounded up to timer ticks.
    pub fn set_timeouts(&self, us: i64) -> io::Result<()> {
        let time = libc::timeval { tv_sec: us / 1_000_000, tv_usec: us % 1_000_000 };
        self.set_raw(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &time)?;
        self.set_raw(libc::SOL_SOCKET, libc::SO_SNDTIMEO, &time)
    }

    /// `SO_MAX_PACING_RATE`. **Unit** bytes per second.
    pub fn set_pacing(&self, bytes_per_s: u64) -> io::Result<()> {
        self.set_raw(libc::SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_s)
    }

    /// The other end's address.
    pub fn peer(&self) -> io::Result<SocketAddr> {
        let addr: nix::sys::socket::SockaddrStorage = nix::sys::socket::getpeername(self.fd())?;
        let v4 = addr.as_sockaddr_in().map(|a| SocketAddr::V4((*a).into()));
        let v6 = || addr.as_sockaddr_in6().map(|a| SocketAddr::V6((*a).into()));
        v4.or_else(v6).ok_or_else(|| io::Error::other("the socket has no IP peer"))
    }

    /// The congestion control in force.
    pub fn congestion(&self) -> io::Result<String> {
        let mut name = [0u8; 16];
        let mut len = name.len() as libc::socklen_t;
        // SAFETY: pointer and length describe `name`.
        let done = unsafe {
            libc::getsockopt(
                self.fd(),
                libc::IPPROTO_TCP,
                libc::TCP_CONGESTION,
                name.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        let text = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// Sets the congestion control.
    ///
    /// **Errors** `ENOENT`: the kernel has none of that name; `EPERM`: it is not in
    /// `tcp_allowed_congestion_control` and needs `CAP_NET_ADMIN`.
    pub fn set_congestion(&self, name: &str) -> io::Result<()> {
        // SAFETY: pointer and length describe `name`.
        let done = unsafe {
            libc::setsockopt(
                self.fd(),
                libc::IPPROTO_TCP,
                libc::TCP_CONGESTION,
                name.as_ptr().cast(),
                name.len() as libc::socklen_t,
            )
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A connected pair over loopback.
    pub(crate) fn pair() -> (Socket, Socket) {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let listener = Socket::tcp(any).unwrap();
        listener.bind(any).unwrap();
        listener.listen(1).unwrap();
        let client = Socket::tcp(any).unwrap();
        client.connect_within(listener.local().unwrap(), 10_000).unwrap();
        assert!(listener.wait(libc::POLLIN, 10_000).unwrap());
        let server = listener.accept().unwrap();
        server.set_nonblocking(false).unwrap();
        client.set_nonblocking(false).unwrap();
        (client, server)
    }

    #[test]
    fn bytes_go_both_ways_and_an_end_is_zero() {
        let (client, server) = pair();
        assert_eq!(client.send_with(b"hello", 0).unwrap(), 5);
        let mut got = [0; 8];
        assert_eq!(server.recv(&mut got, 0).unwrap(), 5);
        assert_eq!(server.send_with(b"abc", 0).unwrap(), 3);
        assert_eq!(client.recv_discard(100, 0).unwrap(), 3);
        client.shutdown_write().unwrap();
        assert_eq!(server.recv(&mut got, 0).unwrap(), 0);
        assert_eq!(server.peer().unwrap(), client.local().unwrap());
    }

    #[test]
    fn congestion_control_reads_back() {
        let (client, _server) = pair();
        client.set_congestion("reno").unwrap();
        assert_eq!(client.congestion().unwrap(), "reno");
        let error = client.set_congestion("no-such").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn a_refused_connection_is_an_error() {
        let (client, server) = pair();
        let addr = server.local().unwrap();
        drop((client, server));
        let error = Socket::tcp(addr).unwrap().connect_within(addr, 10_000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
