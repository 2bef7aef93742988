//! The epoll engine: edge-triggered, one receive and one send call a request.
//!
//! A socket is added once and never changed. A receive that did not fill its buffer has emptied the socket, so no
//! call is spent on hearing EAGAIN; what comes later brings an event of its own.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll as Set, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{MsgFlags, recv, send};

use crate::LoadError;
use crate::engine::{clock, nap};
use crate::http::load::client::{Client, Sent, Wire};
use crate::http::load::conn::Phase;

/// Events of one wait.
const EVENTS: usize = 1024;
/// Bytes of one receive.
const BUFFER_BYTES: usize = 64 << 10;
/// Full receives from one connection before the others have their turn.
const READS: u32 = 16;

/// An epoll set.
#[derive(Debug)]
pub(super) struct Epoll {
    set: Set,
    calls: u64,
}

fn watched() -> EpollFlags {
    EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET
}

fn broken() -> EpollFlags {
    EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP
}

fn token(slot: usize, generation: u32) -> u64 {
    (u64::from(generation) << 32) | slot as u64
}

impl Epoll {
    pub(super) fn new() -> Result<Self, LoadError> {
        let set = Set::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|e| LoadError::io("epoll_create1", e.into()))?;
        Ok(Self { set, calls: 0 })
    }
}

impl Wire for Epoll {
    fn calls(&mut self) -> &mut u64 {
        &mut self.calls
    }

    fn watch(&mut self, fd: &OwnedFd, slot: usize, generation: u32) -> Result<(), Errno> {
        self.set.add(fd, EpollEvent::new(watched(), token(slot, generation)))
    }

    #[inline]
    fn send(&mut self, fd: &OwnedFd, _slot: usize, _generation: u32, bytes: &[u8]) -> Sent {
        self.calls += 1;
        match send(fd.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL) {
            Ok(sent) => Sent::Bytes(sent),
            Err(Errno::EAGAIN | Errno::EINTR) => Sent::Full,
            Err(errno) => Sent::Failed(errno),
        }
    }

    fn close(&mut self, fd: OwnedFd) {
        self.calls += 1;
        drop(fd);
    }
}

impl Client<'_, Epoll> {
    /// Loads until it is over.
    pub(super) fn run(&mut self) -> Result<(), LoadError> {
        let mut events = vec![EpollEvent::empty(); EVENTS];
        let mut buffer = vec![0; BUFFER_BYTES];
        while !self.is_over() {
            let wait_ns = self.turn();
            if wait_ns == 0 && self.is_quiet() {
                // Only the clock can bring something: looking would be a call for nothing.
                std::hint::spin_loop();
                self.now_ns = clock::now_ns();
                continue;
            }
            self.wire.calls += 1;
            let got = match nap::wait(&self.wire.set, &mut events, wait_ns) {
                Ok(got) => got,
                Err(Errno::EINTR) => 0,
                Err(errno) => return Err(LoadError::io("epoll_wait", errno.into())),
            };
            self.now_ns = clock::now_ns();
            for event in &events[..got] {
                self.happened(*event, &mut buffer);
            }
        }
        Ok(())
    }

    #[inline]
    fn happened(&mut self, event: EpollEvent, buffer: &mut [u8]) {
        let (slot, generation) = (event.data() as u32 as usize, (event.data() >> 32) as u32);
        let flags = event.events();
        if self.conns[slot].generation != generation {
            return;
        }
        if self.conns[slot].phase == Phase::Connecting {
            if flags.intersects(EpollFlags::EPOLLOUT | broken()) {
                self.connected(slot);
            }
        } else if flags.contains(EpollFlags::EPOLLOUT) && self.conns[slot].unsent > 0 {
            self.flush(slot);
        }
        let arrived = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | broken();
        if flags.intersects(arrived) && self.conns[slot].generation == generation {
            // Behind the last bytes stands the end, of which no event will tell again.
            let ends = flags.intersects(EpollFlags::EPOLLRDHUP | broken());
            self.read(slot, generation, ends, buffer);
        }
    }

    #[inline]
    fn read(&mut self, slot: usize, generation: u32, ends: bool, buffer: &mut [u8]) {
        for _ in 0..READS {
            let Some(fd) = &self.conns[slot].fd else { return };
            self.wire.calls += 1;
            match recv(fd.as_raw_fd(), buffer, MsgFlags::empty()) {
                Ok(0) => return self.ended(slot),
                Ok(got) => {
                    self.received(slot, &buffer[..got]);
                    let is_empty = got < buffer.len() && !ends;
                    if is_empty || self.conns[slot].generation != generation {
                        return;
                    }
                }
                Err(Errno::EAGAIN) => return,
                Err(Errno::EINTR) => {}
                Err(errno) => {
                    return self.fail(slot, crate::http::load::meter::Kind::Read, Some(errno));
                }
            }
        }
        // More is there: setting the events anew makes the kernel tell it again.
        if let Some(fd) = &self.conns[slot].fd {
            self.wire.calls += 1;
            let mut event = EpollEvent::new(watched(), token(slot, generation));
            let _ = self.wire.set.modify(fd, &mut event);
        }
    }
}
