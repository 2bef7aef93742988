//! An epoll set, and its own busy polling.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll as Set, EpollCreateFlags, EpollTimeout};

pub use nix::sys::epoll::{EpollEvent as Event, EpollFlags as Flags};

/// An epoll set.
#[derive(Debug)]
pub struct Epoll(Set);

impl Epoll {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Set::new(EpollCreateFlags::EPOLL_CLOEXEC)?))
    }

    /// Watches a descriptor; `token` comes back with its events.
    pub fn add(&self, fd: impl AsFd, flags: Flags, token: u64) -> io::Result<()> {
        Ok(self.0.add(fd, Event::new(flags, token))?)
    }

    /// Changes what is watched.
    pub fn change(&self, fd: impl AsFd, flags: Flags, token: u64) -> io::Result<()> {
        Ok(self.0.modify(fd, &mut Event::new(flags, token))?)
    }

    /// Watches a descriptor no longer.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(self.0.delete(fd)?)
    }

    /// Waits for events; 0 ms returns at once. A signal ends the wait without events.
    #[inline]
    pub fn wait(&self, events: &mut [Event], timeout_ms: u16) -> io::Result<usize> {
        none_if_interrupted(self.0.wait(events, EpollTimeout::from(timeout_ms)))
    }

    /// Waits for events for at most `timeout_ns`, finer than in whole ms; 0 returns at once. A signal ends the wait without events.
    ///
    /// **Source** epoll_pwait2(2), Linux 5.11; on older kernels the time is cut to whole ms.
    #[inline]
    pub fn wait_ns(&self, events: &mut [Event], timeout_ns: u64) -> io::Result<usize> {
        let room = events.len() as libc::c_int;
        let set = self.0.0.as_raw_fd();
        let wait_ms = |events: &mut [Event], ms: libc::c_int| {
            // SAFETY: Event is a transparent epoll_event, and the pointer and `room` describe `events`.
            unsafe { libc::epoll_wait(set, events.as_mut_ptr().cast(), room, ms) }
        };
        let got = if timeout_ns == 0 {
            wait_ms(events, 0)
        } else {
            let time = libc::timespec {
                tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
                tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
            };
            // SAFETY: as above; `time` lives across the call and no signal mask is given.
            let got = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    set,
                    events.as_mut_ptr(),
                    room,
                    &raw const time,
                    std::ptr::null::<libc::sigset_t>(),
                    0usize,
                )
            } as libc::c_int;
            if got < 0 && Errno::last() == Errno::ENOSYS {
                wait_ms(events, (timeout_ns / 1_000_000).min(60_000) as libc::c_int)
            } else {
                got
            }
        };
        none_if_interrupted(Errno::result(got).map(|got| got as usize))
    }

    /// Sets the busy polling of this set and reads it back.
    ///
    /// **Source** `ep_eventpoll_bp_ioctl`, fs/eventpoll.c. **Errors** `ENOTTY`: before 6.9; `EOPNOTSUPP`: built
    /// without `CONFIG_NET_RX_BUSY_POLL`; `EPERM`: a budget above 64 without `CAP_NET_ADMIN`.
    pub fn set_busy(&self, mut params: libc::epoll_params) -> io::Result<libc::epoll_params> {
        let set = self.0.0.as_raw_fd();
        // SAFETY: both pointers are to a whole `struct epoll_params`, and the descriptor is an epoll set.
        unsafe {
            Errno::result(libc::ioctl(set, libc::EPIOCSPARAMS, &raw const params))?;
            Errno::result(libc::ioctl(set, libc::EPIOCGPARAMS, &raw mut params))?;
        }
        Ok(params)
    }
}

#[inline]
fn none_if_interrupted(got: Result<usize, Errno>) -> io::Result<usize> {
    match got {
        Err(Errno::EINTR) => Ok(0),
        other => Ok(other?),
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::clock;
    use crate::engine::thread::alarm_at;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_token_comes_back() {
        let set = Epoll::new().unwrap();
        let (one, mut other) = UnixStream::pair().unwrap();
        set.add(&one, Flags::EPOLLIN, 17).unwrap();
        let mut events = [Event::empty(); 4];
        assert_eq!(set.wait(&mut events, 0).unwrap(), 0);
        other.write_all(b"x").unwrap();
        assert_eq!(set.wait(&mut events, 10_000).unwrap(), 1);
        assert_eq!(events[0].data(), 17);
        set.remove(&one).unwrap();
        assert_eq!(set.wait(&mut events, 0).unwrap(), 0);
    }

    #[test]
    fn a_wait_ends_with_an_event_or_with_the_time() {
        let set = Epoll::new().unwrap();
        let (one, mut other) = UnixStream::pair().unwrap();
        set.add(&one, Flags::EPOLLIN, 7).unwrap();
        let mut events = [Event::empty(); 2];
        let start = clock::now_ns();
        while clock::now_ns() - start < 300_000 {
            assert_eq!(set.wait_ns(&mut events, 300_000).unwrap(), 0);
        }
        assert_eq!(set.wait_ns(&mut events, 0).unwrap(), 0);
        other.write_all(b"x").unwrap();
        assert_eq!(set.wait_ns(&mut events, 60_000_000_000).unwrap(), 1);
        assert_eq!(events[0].data(), 7);
    }

    #[test]
    fn a_signal_ends_a_wait_without_an_error() {
        let set = Epoll::new().unwrap();
        let mut events = [Event::empty(); 2];
        // It comes again every millisecond: one of them comes within each wait.
        let _alarm = alarm_at(clock::now_ns() + 1_000_000).unwrap();
        assert_eq!(set.wait(&mut events, 60_000).unwrap(), 0);
        assert_eq!(set.wait_ns(&mut events, 3_600_000_000_000).unwrap(), 0);
    }

    #[test]
    fn busy_polling_is_read_back_or_refused() {
        let params = libc::epoll_params {
            busy_poll_usecs: 50,
            busy_poll_budget: 16,
            prefer_busy_poll: 0,
            __pad: 0,
        };
        match Epoll::new().unwrap().set_busy(params) {
            Ok(got) => assert_eq!(got, params),
            Err(error) => assert!(
                matches!(error.raw_os_error(), Some(libc::ENOTTY | libc::EOPNOTSUPP)),
                "{error}"
            ),
        }
    }
}
