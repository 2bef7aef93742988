//! Waiting for events up to an instant, finer than the milliseconds of `epoll_wait`.

use std::io;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent};

/// Waits for events for at most `timeout_ns`; 0 returns at once.
///
/// **Source** epoll_pwait2(2), Linux 5.11; on older kernels the time is cut to whole ms.
/// **Errors** `EINTR`: a signal came first.
#[inline]
pub fn wait(epoll: &Epoll, events: &mut [EpollEvent], timeout_ns: u64) -> Result<usize, Errno> {
    let room = events.len() as libc::c_int;
    let set = epoll.0.as_raw_fd();
    let got = if timeout_ns == 0 {
        // SAFETY: EpollEvent is a transparent epoll_event, and the pointer and `room` describe `events`.
        unsafe { libc::epoll_wait(set, events.as_mut_ptr().cast(), room, 0) }
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
        if got < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
            let ms = (timeout_ns / 1_000_000).min(60_000) as libc::c_int;
            // SAFETY: as above.
            unsafe { libc::epoll_wait(set, events.as_mut_ptr().cast(), room, ms) }
        } else {
            got
        }
    };
    Errno::result(got).map(|got| got as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::clock;
    use nix::sys::epoll::{EpollCreateFlags, EpollFlags};
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn it_ends_with_an_event_or_with_the_time() {
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let (one, mut other) = UnixStream::pair().unwrap();
        epoll.add(&one, EpollEvent::new(EpollFlags::EPOLLIN, 7)).unwrap();
        let mut events = [EpollEvent::empty(); 2];
        let start = clock::now_ns();
        while clock::now_ns() - start < 300_000 {
            assert_eq!(wait(&epoll, &mut events, 300_000), Ok(0));
        }
        assert_eq!(wait(&epoll, &mut events, 0), Ok(0));
        other.write_all(b"x").unwrap();
        assert_eq!(wait(&epoll, &mut events, 60_000_000_000), Ok(1));
        assert_eq!(events[0].data(), 7);
    }
}
