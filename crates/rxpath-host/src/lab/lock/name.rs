//! The name that goes with the lab's lock file: an abstract address of a Unix socket, which everybody may bind.
//!
//! On a freshly booted host there is no lock file, and only root may create one in `/run`. Who has the file binds the name
//! too, so that root and ordinary users exclude each other. The kernel frees the name with its holder, however that ends.
//!
//! Each network namespace has abstract addresses of its own. So the name is bound in the namespace of process 1 where the
//! caller may enter it; an ordinary user is there already. The name holds the identity of the lock's directory: a host that
//! is made of namespaces has a `/run` of its own, and so a lock of its own.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr, sockopt};

use super::Holder;
use crate::lab::netns;

/// The network namespace in which most processes of the machine are.
const FIRST_NETNS: &str = "/proc/1/ns/net";

/// Binds the name of a lock file.
///
/// **Errors** `AddrInUse` while somebody has it.
pub(super) fn bind(lock: &Path) -> io::Result<UnixListener> {
    let name = of(lock);
    in_first_netns(|| UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?))
}

/// Who has the name of a lock file; `None` if nobody does.
pub(super) fn holder(lock: &Path) -> Option<Holder> {
    let name = of(lock);
    let pid = in_first_netns(|| listener(&name)).ok()?;
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // Another user's words: nothing in them may act on a terminal.
    let shown = |char: char| if char.is_control() { ' ' } else { char };
    let command: String = String::from_utf8_lossy(&line).chars().map(shown).collect();
    // 0: a process that this PID namespace does not show.
    Some(Holder { pid: (pid > 0).then_some(pid), command: command.trim().into() })
}

fn of(lock: &Path) -> String {
    let dir = lock.parent().and_then(|dir| fs::metadata(dir).ok());
    let (device, inode) = dir.map_or((0, 0), |dir| (dir.dev(), dir.ino()));
    format!("rxpath-lab-{device:x}-{inode:x}")
}

/// The process that listens there. **Source** unix(7), `SO_PEERCRED`: the credentials of the one that called listen(2).
fn listener(name: &str) -> nix::Result<i32> {
    // It accepts nothing: with a full backlog a blocking connect would never end.
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let asking = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    socket::connect(asking.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
    Ok(socket::getsockopt(&asking, sockopt::PeerCredentials)?.pid())
}

/// Does this in the network namespace of process 1, or in the caller's where that may not be entered.
fn in_first_netns<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let there = scope.spawn(|| {
            let _ = netns::enter(Path::new(FIRST_NETNS));
            work()
        });
        there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
