//! Which sockets a sleeping thread waits for: the system call it is in (`/proc/PID/task/TID/syscall`, fs/proc/base.c
//! `proc_pid_syscall`), its descriptor, and what an epoll set watches (`/proc/PID/fdinfo/FD`, fs/eventpoll.c
//! `ep_show_fdinfo`).

use std::collections::BTreeSet;

use crate::Root;
use crate::read::procfs::socket_owner::inode;

/// Calls that wait for the descriptor in their first argument.
const READS: &[libc::c_long] =
    &[libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_recvmmsg, libc::SYS_read, libc::SYS_readv];
/// Calls that wait for an epoll set.
const EPOLLS: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
];

/// Inodes of the sockets that a thread waits for at this moment. `None` where that is not known: it runs, it waits for
/// something else or by `poll`, whose descriptors are in its memory; or the file is not shown (`CAP_SYS_PTRACE`).
///
/// **Caveat** an epoll set within another is not followed.
pub fn sockets(root: &Root, pid: i32, tid: i32) -> Option<BTreeSet<u32>> {
    let (call, fd) = call(&root.text(&format!("/proc/{pid}/task/{tid}/syscall")).ok()?)?;
    if READS.contains(&call) {
        let target = root.link(&format!("/proc/{pid}/fd/{fd}")).ok()?;
        return inode(&target.to_string_lossy()).map(|inode| [inode].into());
    }
    if EPOLLS.contains(&call) {
        return Some(watched(&root.text(&format!("/proc/{pid}/fdinfo/{fd}")).ok()?));
    }
    None
}

/// Number and first argument of a blocked call: `45 0x3 0x7f...`; a thread that runs says `running`.
fn call(text: &str) -> Option<(libc::c_long, u64)> {
    let mut words = text.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    Some((number, u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?))
}

/// Inodes of an epoll set: `tfd: 5 events: 19 data: 0  pos:0 ino:3a4f sdev:8`. Those of no socket are among them.
fn watched(text: &str) -> BTreeSet<u32> {
    let lines = text.lines().filter(|line| line.starts_with("tfd:"));
    let inodes = lines.filter_map(|line| line.split("ino:").nth(1)?.split_whitespace().next());
    inodes.filter_map(|inode| u32::from_str_radix(inode, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
    use proptest::prelude::*;
    use std::net::UdpSocket;
    use std::os::unix::fs::MetadataExt;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    fn number(socket: &UdpSocket) -> u32 {
        let fd = std::os::fd::AsRawFd::as_raw_fd(socket);
        std::fs::metadata(format!("/proc/self/fd/{fd}")).unwrap().ino() as u32
    }

    /// What a thread waits for that does this to a socket, once it does.
    fn waited(wait: fn(&UdpSocket)) -> (u32, Option<BTreeSet<u32>>) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (to, inode) = (socket.local_addr().unwrap(), number(&socket));
        let (tell, told) = channel();
        let waiting = std::thread::spawn(move || {
            tell.send(crate::read::thread::current_tid()).unwrap();
            wait(&socket);
        });
        let (tid, pid) = (told.recv().unwrap(), std::process::id() as i32);
        let (begun, mut found) = (Instant::now(), None);
        while found.is_none() && begun.elapsed() < Duration::from_secs(20) {
            found = sockets(&Root::host(), pid, tid);
            // why: the thread has not entered the call yet, and nothing says when it has.
            std::thread::sleep(Duration::from_millis(1));
        }
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", to).unwrap();
        waiting.join().unwrap();
        (inode, found)
    }

    #[test]
    fn a_blocked_reader_waits_for_its_socket() {
        let (inode, found) = waited(|socket| assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 1));
        assert_eq!(found, Some([inode].into()));
    }

    #[test]
    fn an_epoll_loop_waits_for_all_that_it_watches() {
        let (inode, found) = waited(|socket| {
            let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
            epoll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, 0)).unwrap();
            epoll.wait(&mut [EpollEvent::empty()], EpollTimeout::NONE).unwrap();
        });
        assert_eq!(found, Some([inode].into()));
    }

    #[test]
    fn who_runs_or_is_gone_waits_for_nothing() {
        let (pid, tid) = (std::process::id() as i32, crate::read::thread::current_tid());
        assert_eq!(sockets(&Root::host(), pid, tid), None);
        assert_eq!(sockets(&Root::host(), -1, -1), None);
        assert_eq!(call("running\n"), None);
        assert_eq!(call("-1 0x7ffd 0x7f08"), Some((-1, 0x7ffd)));
        assert_eq!(call("45 0x3 0x7f085f216000"), Some((45, 3)));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in "(tfd:|ino:|0x|[ -~]){0,40}") {
            let _ = (call(&text), watched(&text));
        }
    }
}
