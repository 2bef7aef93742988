//! The two ends of a probe: sockets that belong to the namespace of the thread that opens them.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt,
};

use super::super::Flow;
use crate::HostError;
use crate::netlink::Netlink;

/// How long a probe is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience(u16);

impl Patience {
    /// For a single flow that somebody asked for.
    pub const LONG: Self = Self(1000);
    /// For many flows over a link known to be up: a datagram over a veth takes microseconds.
    pub const SHORT: Self = Self(200);
}

/// Who has the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is no address of this namespace.
    Foreign,
    /// A socket is bound to it already.
    Application,
    /// Nobody.
    Free,
}

pub(super) fn failed(flow: Flow, error: &io::Error) -> HostError {
    HostError::kernel(format!("probe {flow}"), error.raw_os_error().unwrap_or(libc::EIO))
}

/// Whether an address is this namespace's own, and somebody is bound to it.
pub fn own(to: SocketAddr) -> Result<Taken, HostError> {
    let listed = || -> Result<bool, HostError> {
        Ok(Netlink::route()?.addresses()?.iter().any(|address| address.ip == to.ip()))
    };
    if !to.ip().is_loopback() && !listed()? {
        return Ok(Taken::Foreign);
    }
    // Without SO_REUSEADDR and SO_REUSEPORT: it can't join anybody.
    match UdpSocket::bind(to) {
        Ok(_) => Ok(Taken::Free),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(Taken::Application),
        Err(error) => Err(bind_refused(to, &error)),
    }
}

fn bind_refused(to: SocketAddr, error: &io::Error) -> HostError {
    match error.raw_os_error() {
        Some(libc::EACCES) => HostError::Denied {
            what: format!("bind {to}"),
            capability: caps::Capability::CAP_NET_BIND_SERVICE.to_string(),
        },
        errno => HostError::kernel(format!("bind {to}"), errno.unwrap_or(libc::EIO)),
    }
}

/// A socket that gets what comes in for `to`, by one device or by any; `shared` in a SO_REUSEPORT group.
pub fn receiver(
    to: SocketAddr,
    device: Option<&str>,
    shared: bool,
) -> Result<UdpSocket, HostError> {
    let what = |errno: nix::Error| HostError::kernel(format!("bind {to}"), errno as i32);
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let fd = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).map_err(what)?;
    if shared {
        setsockopt(&fd, sockopt::ReusePort, &true).map_err(what)?;
    }
    // Without root since Linux 5.7 (c427bfec18f2), where the socket is bound to no device yet.
    if let Some(device) = device {
        setsockopt(&fd, sockopt::BindToDevice, &device.into()).map_err(what)?;
    }
    bind(fd.as_raw_fd(), &SockaddrStorage::from(to)).map_err(what)?;
    Ok(UdpSocket::from(fd))
}

/// A socket bound to the flow's source. What it sends goes no further than one hop.
///
/// **Errors** `EADDRNOTAVAIL` when the source is no address of the thread's namespace.
pub fn sender(flow: Flow) -> Result<UdpSocket, HostError> {
    let sender = UdpSocket::bind(flow.source).map_err(|error| match error.raw_os_error() {
        Some(libc::EADDRINUSE) => HostError::Kernel {
            op: format!("send from {}", flow.source),
            errno: libc::EADDRINUSE,
            extack: Some("a socket has that address already".into()),
        },
        errno => {
            HostError::kernel(format!("send from {}", flow.source), errno.unwrap_or(libc::EIO))
        }
    })?;
    let limited = if flow.source.is_ipv4() {
        setsockopt(&sender, sockopt::Ipv4Ttl, &1)
    } else {
        setsockopt(&sender, sockopt::Ipv6Ttl, &1)
    };
    limited.map_err(|errno| HostError::kernel("limit a probe to one hop", errno as i32))?;
    Ok(sender)
}

/// [`sender`] in another network namespace, by its file (`/run/netns/NAME`, `/proc/PID/ns/net`).
///
/// **Errors** `Denied` without CAP_SYS_ADMIN, `Missing` when there is no such file.
pub fn sender_in(namespace: &Path, flow: Flow) -> Result<UdpSocket, HostError> {
    let file = std::fs::File::open(namespace)
        .map_err(|e| HostError::from_io("open the namespace", namespace, e))?;
    let fd: OwnedFd = file.into();
    let shown = namespace.display().to_string();
    // A thread of its own: the namespace ends with it, the socket stays in it.
    let opened = std::thread::spawn(move || {
        setns(&fd, CloneFlags::CLONE_NEWNET).map_err(|errno| match errno {
            nix::Error::EPERM => HostError::Denied {
                what: format!("enter the namespace {shown}"),
                capability: caps::Capability::CAP_SYS_ADMIN.to_string(),
            },
            errno => HostError::kernel(format!("enter the namespace {shown}"), errno as i32),
        })?;
        sender(flow)
    });
    opened.join().unwrap_or_else(|_| Err(HostError::kernel("open a probe's sender", libc::EIO)))
}

/// Sends one empty datagram.
pub(super) fn send(sender: &UdpSocket, flow: Flow) -> Result<(), HostError> {
    match sender.send_to(&[], flow.destination) {
        // The error of an earlier probe that nobody took (ICMP port unreachable) is told once.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            sender.send_to(&[], flow.destination).map(drop).map_err(|e| failed(flow, &e))
        }
        other => other.map(drop).map_err(|e| failed(flow, &e)),
    }
}

/// Waits until a socket has something to read; `false` when the time is over.
pub(super) fn wait(socket: &UdpSocket, patience: Patience) -> io::Result<bool> {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    Ok(poll(&mut fds, PollTimeout::from(patience.0))? > 0)
}

/// Which socket of a group gets the datagram that was sent; what others sent is read and passed over.
pub(super) fn which(
    group: &[UdpSocket],
    flow: Flow,
    patience: Patience,
) -> Result<Option<u32>, HostError> {
    let deadline = std::time::Instant::now() + std::time::Duration::from_millis(patience.0.into());
    let mut asked = false;
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        // On a busy port there is always something to read.
        if asked && left.is_zero() {
            return Ok(None);
        }
        asked = true;
        let left = left.as_millis();
        let mut fds: Vec<PollFd<'_>> =
            group.iter().map(|one| PollFd::new(one.as_fd(), PollFlags::POLLIN)).collect();
        let left = PollTimeout::from(u16::try_from(left).unwrap_or(u16::MAX));
        match poll(&mut fds, left) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => continue,
            Err(errno) => return Err(HostError::kernel(format!("probe {flow}"), errno as i32)),
        }
        for (index, socket) in group.iter().enumerate() {
            if fds[index].any() != Some(true) {
                continue;
            }
            let (_, from) = socket.recv_from(&mut []).map_err(|e| failed(flow, &e))?;
            if from == flow.source {
                return Ok(Some(index as u32));
            }
        }
    }
}

/// Inode of an own socket, as in `/proc/self/fd`.
pub(super) fn inode(socket: &UdpSocket) -> Option<u64> {
    nix::sys::stat::fstat(socket).ok().map(|stat| stat.st_ino)
}

/// CPU that processed the last datagram; `None` before the first.
pub(super) fn incoming_cpu(socket: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    let mut cpu: libc::c_int = -1;
    let mut length = size_of_val(&cpu) as libc::socklen_t;
    // SAFETY: the descriptor is borrowed and open; pointer and length describe `cpu`, which the kernel fills with at
    // most `length` bytes.
    let rc = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_INCOMING_CPU,
            (&raw mut cpu).cast(),
            &raw mut length,
        )
    };
    if rc == 0 { Ok(u32::try_from(cpu).ok()) } else { Err(io::Error::last_os_error()) }
}
