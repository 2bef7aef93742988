//! Which sockets a sleeping thread waits for: the system call it is in (`/proc/PID/task/TID/syscall`, fs/proc/base.c
//! `proc_pid_syscall`), its descriptor, and what an epoll set watches (`/proc/PID/fdinfo/FD`, fs/eventpoll.c
//! `ep_show_fdinfo`).

use std::collections::BTreeSet;

use crate::read::procfs::socket_owner::inode;
use crate::{HostError, Root};

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
/// Calls that may wait for any socket: their descriptors are in the thread's memory, and the kernel lists no waiters of a socket.
/// The polling thread of a ring shows the call that made the ring. A `poll` that a signal interrupted shows the restarted call.
const HIDDEN: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_setup,
    libc::SYS_restart_syscall,
];
/// What an epoll set may watch in place of sockets (fs/eventpoll.c, io_uring/io_uring.c).
const NESTED: [&str; 2] = ["anon_inode:[eventpoll]", "anon_inode:[io_uring]"];

/// Inodes of the sockets that a thread waits for at this moment; none where it runs, waits for something else, or has ended.
///
/// **Caveat** a ring that wakes its thread by an eventfd is not recognised: the thread waits for the eventfd alone.
/// **Errors** `Denied` when the thread does not show it (`CAP_SYS_PTRACE`), `Unsupported` when it waits in a call that does not
/// show its sockets: `poll`, `select`, io_uring, or an epoll set with another set or a ring in it.
pub fn sockets(root: &Root, pid: i32, tid: i32) -> Result<BTreeSet<u32>, HostError> {
    match waited_for(root, pid, tid) {
        // Ended or closed since.
        Err(HostError::Missing { .. }) => Ok(BTreeSet::new()),
        found => found,
    }
}

fn waited_for(root: &Root, pid: i32, tid: i32) -> Result<BTreeSet<u32>, HostError> {
    let Some((call, fd)) = call(&root.text(&format!("/proc/{pid}/task/{tid}/syscall"))?) else {
        return Ok(BTreeSet::new());
    };
    if READS.contains(&call) {
        let target = root.link(&format!("/proc/{pid}/fd/{fd}"))?;
        return Ok(inode(&target.to_string_lossy()).into_iter().collect());
    }
    let set = if EPOLLS.contains(&call) {
        root.text(&format!("/proc/{pid}/fdinfo/{fd}"))?
    } else {
        String::new()
    };
    if HIDDEN.contains(&call) || nests(root, pid, &set) {
        let what = format!("see which sockets thread {tid} waits for");
        return Err(HostError::Unsupported { what, needs: "a read, or epoll with sockets".into() });
    }
    Ok(watched(&set))
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

/// Whether an epoll set watches another one, or a ring of io_uring.
fn nests(root: &Root, pid: i32, set: &str) -> bool {
    // All sockets are of one file system: a set of thousands costs one link.
    let mut of_sockets = "";
    set.lines().filter_map(|line| line.strip_prefix("tfd:")).any(|line| {
        let device = line.split("sdev:").nth(1).unwrap_or_default();
        if device == of_sockets {
            return false;
        }
        let fd = line.split_whitespace().next().unwrap_or_default();
        let Ok(target) = root.link(&format!("/proc/{pid}/fd/{fd}")) else { return false };
        let target = target.to_string_lossy();
        if inode(&target).is_some() {
            of_sockets = device;
        }
        NESTED.contains(&&*target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
    use nix::sys::select::{FdSet, select};
    use proptest::prelude::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    fn number(socket: &UdpSocket) -> u32 {
        let fd = std::os::fd::AsRawFd::as_raw_fd(socket);
        std::fs::metadata(format!("/proc/self/fd/{fd}")).unwrap().ino() as u32
    }

    /// What a thread waits for that does this to a socket, once it does; none where its call does not show it.
    fn waited(wait: fn(&UdpSocket)) -> (u32, Option<BTreeSet<u32>>) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (to, inode) = (socket.local_addr().unwrap(), number(&socket));
        let (tell, told) = channel();
        let waiting = std::thread::spawn(move || {
            tell.send(crate::read::thread::current_tid()).unwrap();
            wait(&socket);
        });
        let (tid, pid) = (told.recv().unwrap(), std::process::id() as i32);
        let (begun, mut found) = (Instant::now(), Some(BTreeSet::new()));
        while found.as_ref().is_some_and(BTreeSet::is_empty) && begun.elapsed().as_secs() < 20 {
            found = match sockets(&Root::host(), pid, tid) {
                Err(HostError::Unsupported { .. }) => None,
                shown => Some(shown.unwrap()),
            };
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
    fn what_a_thread_in_poll_or_select_waits_for_is_unknown_and_not_nothing() {
        let (_, found) = waited(|socket| {
            poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE).unwrap();
        });
        assert_eq!(found, None);
        let (_, found) = waited(|socket| {
            let mut set = FdSet::new();
            set.insert(socket.as_fd());
            select(None, &mut set, None, None, None).unwrap();
        });
        assert_eq!(found, None);
    }

    #[test]
    fn what_an_epoll_set_within_another_watches_is_unknown_and_not_nothing() {
        let (_, found) = waited(|socket| {
            let [outer, inner] = [(); 2].map(|()| Epoll::new(EpollCreateFlags::empty()).unwrap());
            inner.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, 0)).unwrap();
            outer.add(&inner.0, EpollEvent::new(EpollFlags::EPOLLIN, 0)).unwrap();
            outer.wait(&mut [EpollEvent::empty()], EpollTimeout::NONE).unwrap();
        });
        assert_eq!(found, None);
    }

    #[test]
    fn threads_of_a_ring_do_not_show_their_sockets() {
        let tree = tempfile::tempdir().unwrap();
        let thread = tree.path().join("proc/7/task/8");
        std::fs::create_dir_all(&thread).unwrap();
        let root = Root::tree(tree.path()).unwrap();
        // One that waits for completions, and one that polls for submissions (as `iou-sqp-7` shows itself).
        for call in [libc::SYS_io_uring_enter, libc::SYS_io_uring_setup] {
            std::fs::write(thread.join("syscall"), format!("{call} 0x4 0x0 0x1 0x1\n")).unwrap();
            let shown = sockets(&root, 7, 8);
            assert!(matches!(shown, Err(HostError::Unsupported { .. })), "{call}: {shown:?}");
        }
    }

    #[test]
    fn who_runs_or_is_gone_waits_for_nothing() {
        let (pid, tid) = (std::process::id() as i32, crate::read::thread::current_tid());
        for (pid, tid) in [(pid, tid), (-1, -1)] {
            assert!(sockets(&Root::host(), pid, tid).unwrap().is_empty(), "{tid}");
        }
        assert_eq!(call("running\n"), None);
        assert_eq!(call("-1 0x7ffd 0x7f08"), Some((-1, 0x7ffd)));
        assert_eq!(call("45 0x3 0x7f085f216000"), Some((45, 3)));
    }

    #[test]
    fn who_does_not_show_its_call_differs_from_who_waits_for_nothing() {
        let tree = tempfile::tempdir().unwrap();
        let file = tree.path().join("proc/7/task/8/syscall");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "running\n").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o000)).unwrap();
        let root = Root::tree(tree.path()).unwrap();
        // Of this thread alone: root may read everything with them.
        let asked = std::thread::spawn(move || {
            for all in [caps::Capability::CAP_DAC_OVERRIDE, caps::Capability::CAP_DAC_READ_SEARCH] {
                caps::drop(None, caps::CapSet::Effective, all).unwrap();
            }
            sockets(&root, 7, 8)
        });
        assert!(matches!(asked.join().unwrap(), Err(HostError::Denied { .. })));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in "(tfd:|ino:|0x|[ -~]){0,40}") {
            let _ = (call(&text), watched(&text));
        }
    }
}
