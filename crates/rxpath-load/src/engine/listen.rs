//! Listening TCP sockets and accepted connections.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, OwnedFd};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{Backlog, SockFlag};

use crate::LoadError;
use crate::engine::socket::Socket;

/// Takes one connection off the queue, non-blocking.
///
/// **Errors** `EAGAIN`: none waits; `EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`: no room, see [`is_exhaustion`];
/// others concern the one connection that was lost (accept(2)).
pub fn accept(listener: &Socket) -> io::Result<Socket> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = nix::sys::socket::accept4(listener.fd(), flags)?;
    // SAFETY: the kernel just gave this descriptor to us and nobody else owns it.
    Ok(Socket::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Whether the process or the host ran out of descriptors or memory: waiting helps, trying again does not.
pub fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// Starts to listen with this backlog (the kernel caps it at net.core.somaxconn).
pub fn listen(socket: &Socket, backlog: u32) -> io::Result<()> {
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    let backlog = Backlog::new(backlog).map_err(io::Error::from)?;
    Ok(nix::sys::socket::listen(socket, backlog)?)
}

/// An error of `bind` or `listen`, with a remedy.
pub fn refusal(op: &'static str, addr: SocketAddr, source: io::Error) -> LoadError {
    let port = addr.port();
    let hint = match source.kind() {
        io::ErrorKind::AddrInUse => format!(
            "port {port} is taken by another socket (`ss -tlnp sport = :{port}` shows whose); \
             choose another port, or end its owner"
        ),
        io::ErrorKind::AddrNotAvailable => {
            format!(
                "{} is not an address of this host; `ip address` lists its addresses",
                addr.ip()
            )
        }
        io::ErrorKind::PermissionDenied => {
            "ports under net.ipv4.ip_unprivileged_port_start need CAP_NET_BIND_SERVICE".into()
        }
        _ => String::new(),
    };
    LoadError::Address { op, addr: addr.to_string(), source, hint }
}

/// Raises the soft limit of descriptors to the hard one; returns what is in force.
///
/// **Source** getrlimit(2) `RLIMIT_NOFILE`.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() {
        return Ok(hard);
    }
    Ok(soft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_comes_out() {
        let addr: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let socket = Socket::tcp(addr).unwrap();
        socket.bind(addr).unwrap();
        listen(&socket, 8).unwrap();
        assert_eq!(accept(&socket).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let _peer = std::net::TcpStream::connect(socket.local().unwrap()).unwrap();
        assert!(socket.wait(libc::POLLIN, 10_000).unwrap());
        assert!(accept(&socket).unwrap().fd() > 2);
    }

    #[test]
    fn the_limit_is_the_hard_one() {
        let limit = raise_descriptor_limit().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap().0, limit);
    }
}
