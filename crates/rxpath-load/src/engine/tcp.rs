//! TCP sockets: listening, connecting, sending and receiving, the options that only TCP has.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use nix::sys::socket::{SockFlag, accept4};

use crate::engine::socket::Socket;

/// `SO_MAX_PACING_RATE` (include/uapi/asm-generic/socket.h).
const SO_MAX_PACING_RATE: libc::c_int = 47;

/// Where the kernel lists the congestion controls that it can use at once.
pub const CONGESTION_LIST: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Errors after which the same call is made again: a signal, no room, nothing there.
#[inline]
pub fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}

impl Socket {
    /// A non-blocking TCP socket that is ready for [`Socket::begin_connect`]; it sends small requests at once
    /// (`TCP_NODELAY`).
    ///
    /// With `source` it is bound to that address; the port is chosen by `connect`, which knows the other end, so that
    /// one port may serve several (`IP_BIND_ADDRESS_NO_PORT`, ip(7)). **Cost** two system calls, four with `source`.
    pub fn tcp_from(to: SocketAddr, source: Option<IpAddr>) -> io::Result<Self> {
        let socket = Self::tcp(to)?;
        socket.0.set_tcp_nodelay(true)?;
        if let Some(source) = source {
            socket.set(libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
            socket.bind(SocketAddr::new(source, 0))?;
        }
        Ok(socket)
    }

    /// Listens with this backlog (the kernel caps it at net.core.somaxconn).
    pub fn listen(&self, backlog: u32) -> io::Result<()> {
        self.0.listen(i32::try_from(backlog).unwrap_or(i32::MAX))
    }

    /// Takes a waiting connection; the new socket never blocks.
    ///
    /// **Errors** `EAGAIN`: none waits; `EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`: no room, see
    /// [`is_exhaustion`](crate::engine::listen::is_exhaustion); others concern the one connection that was lost
    /// (accept(2)).
    #[inline]
    pub fn accept(&self) -> io::Result<Self> {
        let fd = accept4(self.fd(), SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK)?;
        // SAFETY: `fd` was just opened and nobody else owns it.
        Ok(Self::from(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Connects and waits for at most this long; afterwards the socket does not block.
    ///
    /// **Errors** `ETIMEDOUT` after that time, earlier ones as connect(2) has them.
    pub fn connect_within(&self, addr: SocketAddr, timeout_ms: u64) -> io::Result<()> {
        let done = self.0.connect_timeout(&addr.into(), Duration::from_millis(timeout_ms));
        self.0.set_nonblocking(true)?;
        done.map_err(|error| match error.kind() {
            ErrorKind::TimedOut => io::Error::from_raw_os_error(libc::ETIMEDOUT),
            _ => error,
        })
    }

    /// Begins to connect; [`Socket::connected`] tells how it has ended, once the socket is writable.
    pub fn begin_connect(&self, addr: SocketAddr) -> io::Result<()> {
        match self.connect(addr) {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
            other => other,
        }
    }

    /// How connecting has ended.
    pub fn connected(&self) -> io::Result<()> {
        self.0.take_error()?.map_or(Ok(()), Err)
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
    pub fn recv_discard(&self, len: usize) -> io::Result<usize> {
        // SAFETY: with MSG_TRUNC TCP writes nothing through the pointer (`tcp_recvmsg_locked`, net/ipv4/tcp.c).
        let got = unsafe { libc::recv(self.fd(), std::ptr::null_mut(), len, libc::MSG_TRUNC) };
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
        self.0.shutdown(Shutdown::Write)
    }

    /// Closing sends RST and leaves no TIME_WAIT (`SO_LINGER` of 0 s).
    pub fn reset_on_close(&self) -> io::Result<()> {
        self.0.set_linger(Some(Duration::ZERO))
    }

    /// How long a blocking call may wait before it gives `EAGAIN`.
    ///
    /// **Caveat** rounded up to timer ticks.
    pub fn set_timeouts(&self, timeout: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(timeout))?;
        self.0.set_write_timeout(Some(timeout))
    }

    /// `SO_MAX_PACING_RATE`. **Unit** bytes per second.
    pub fn set_pacing(&self, bytes_per_s: u64) -> io::Result<()> {
        self.set_raw(libc::SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_s)
    }

    /// The congestion control in force.
    pub fn congestion(&self) -> io::Result<String> {
        let name = self.0.tcp_congestion()?;
        let text = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// Sets the congestion control.
    ///
    /// **Errors** `ENOENT`: the kernel has none of that name; `EPERM`: it is not in
    /// `tcp_allowed_congestion_control` and needs `CAP_NET_ADMIN`.
    pub fn set_congestion(&self, name: &str) -> io::Result<()> {
        self.0.set_tcp_congestion(name.as_bytes())
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
        server.0.set_nonblocking(false).unwrap();
        client.0.set_nonblocking(false).unwrap();
        (client, server)
    }

    #[test]
    fn bytes_go_both_ways_and_an_end_is_zero() {
        let (client, server) = pair();
        assert_eq!(client.send_with(b"hello", 0).unwrap(), 5);
        let mut got = [0; 8];
        assert_eq!(server.recv(&mut got, 0).unwrap(), 5);
        assert_eq!(server.send_with(b"abc", 0).unwrap(), 3);
        assert_eq!(client.recv_discard(100).unwrap(), 3);
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
        // Bound and not listening: no other test gets the port.
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let silent = Socket::tcp(any).unwrap();
        silent.bind(any).unwrap();
        let addr = silent.local().unwrap();
        let error = Socket::tcp(addr).unwrap().connect_within(addr, 10_000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_connection_comes_out() {
        let addr: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let socket = Socket::tcp(addr).unwrap();
        socket.bind(addr).unwrap();
        socket.listen(8).unwrap();
        assert_eq!(socket.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        let _peer = std::net::TcpStream::connect(socket.local().unwrap()).unwrap();
        assert!(socket.wait(libc::POLLIN, 10_000).unwrap());
        assert!(socket.accept().unwrap().fd() > 2);
    }

    #[test]
    fn the_source_is_the_one_asked_for() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let socket = Socket::tcp_from(to, Some("127.0.0.3".parse().unwrap())).unwrap();
        socket.begin_connect(to).unwrap();
        let (_, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip().to_string(), "127.0.0.3");
        socket.connected().unwrap();
    }
}
