//! Non-blocking TCP connects.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, getsockopt, setsockopt,
    socket, sockopt,
};

/// System calls of [`socket_to`].
pub fn calls(with_source: bool) -> u64 {
    if with_source { 4 } else { 2 }
}

/// A non-blocking socket that is ready for `connect`; it sends small requests at once (`TCP_NODELAY`).
///
/// With `source` it is bound to that address; the port is chosen by `connect`, which knows the other end, so that
/// one port may serve several (`IP_BIND_ADDRESS_NO_PORT`, ip(7)).
pub fn socket_to(to: SocketAddr, source: Option<IpAddr>) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(family, SockType::Stream, flags, None)?;
    setsockopt(&fd, sockopt::TcpNoDelay, &true)?;
    if let Some(source) = source {
        setsockopt(&fd, sockopt::IpBindAddressNoPort, &true)?;
        bind(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(source, 0)))?;
    }
    Ok(fd)
}

/// Begins to connect; `Ok(true)` when it is connected already.
pub fn begin(fd: &OwnedFd, to: SocketAddr) -> Result<bool, Errno> {
    match connect(fd.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) => Ok(true),
        Err(Errno::EINPROGRESS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// How a connection that was begun has ended, once it is writable.
pub fn outcome(fd: &OwnedFd) -> Result<(), Errno> {
    match getsockopt(fd, sockopt::SocketError)? {
        0 => Ok(()),
        number => Err(Errno::from_raw(number)),
    }
}

/// Connects once and closes again: whether it can be done.
pub fn reach(to: SocketAddr, source: Option<IpAddr>, timeout_ms: u16) -> io::Result<()> {
    let fd = socket_to(to, source)?;
    if begin(&fd, to)? {
        return Ok(());
    }
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLOUT)];
    loop {
        match poll(&mut fds, PollTimeout::from(timeout_ms)) {
            Ok(0) => return Err(Errno::ETIMEDOUT.into()),
            Ok(_) => return Ok(outcome(&fd)?),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_is_reached_and_a_closed_port_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        reach(to, None, 10_000).unwrap();
        reach(to, Some("127.0.0.2".parse().unwrap()), 10_000).unwrap();
        drop(listener);
        let error = reach(to, None, 10_000).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED));
    }

    #[test]
    fn the_source_is_the_one_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let fd =
            socket_to(listener.local_addr().unwrap(), Some("127.0.0.3".parse().unwrap())).unwrap();
        begin(&fd, listener.local_addr().unwrap()).unwrap();
        let (_, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip().to_string(), "127.0.0.3");
        outcome(&fd).unwrap();
    }
}
