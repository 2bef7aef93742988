//! The epoll engine: edge-triggered, one receive and one send call per request.
//!
//! A socket is added once and never changed. A receive that did not fill its buffer has emptied the socket, so no
//! call is spent on hearing EAGAIN; what comes later brings an event of its own.

use std::ops::Range;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll as Set, EpollCreateFlags, EpollEvent, EpollFlags};

use crate::LoadError;
use crate::engine::direct::{recv, send};
use crate::engine::{clock, nap};
use crate::http::load::client::Client;
use crate::http::load::conn::Phase;
use crate::http::load::message::Message;
use crate::http::load::meter::Kind;
use crate::http::load::sockets::Sockets;
use crate::http::load::wire::{Sent, Wire};

/// Events of one wait.
const EVENTS: usize = 1024;
/// Bytes of one receive.
const BUFFER_BYTES: usize = 64 << 10;
/// Full receives from one connection before the others have their turn.
const READS: u32 = 16;

/// An epoll set with its sockets.
#[derive(Debug)]
pub(super) struct Epoll {
    set: Set,
    sockets: Sockets,
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
    pub(super) fn new(sockets: Sockets) -> Result<Self, LoadError> {
        let set = Set::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|e| LoadError::io("epoll_create1", e.into()))?;
        Ok(Self { set, sockets })
    }
}

impl Wire for Epoll {
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn calls(&self) -> u64 {
        self.sockets.calls
    }

    fn open(&mut self, slot: usize, generation: u32) -> Result<(), Errno> {
        let fd = self.sockets.open(slot)?;
        self.set.add(fd, EpollEvent::new(watched(), token(slot, generation)))?;
        self.sockets.calls += 1;
        Ok(())
    }

    fn outcome(&mut self, slot: usize) -> Result<(), Errno> {
        self.sockets.outcome(slot)
    }

    #[inline]
    fn send(
        &mut self,
        slot: usize,
        _generation: u32,
        message: &Message,
        range: Range<usize>,
    ) -> Sent {
        self.sockets.calls += 1;
        match send(self.sockets.fd(slot), &message.bytes[range]) {
            Ok(sent) => Sent::Bytes(sent),
            Err(Errno::EAGAIN | Errno::EINTR) => Sent::Full,
            Err(errno) => Sent::Failed(errno),
        }
    }

    fn close(&mut self, slot: usize, _generation: u32) {
        self.sockets.close(slot);
    }

    fn take_sockets(&mut self) -> Vec<OwnedFd> {
        self.sockets.take()
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
                // Only the clock can change something: a poll would be a useless call.
                std::hint::spin_loop();
                self.now_ns = clock::now_ns();
                continue;
            }
            self.wire.sockets.calls += 1;
            let got = match nap::wait(&self.wire.set, &mut events, wait_ns) {
                Ok(got) => got,
                Err(Errno::EINTR) => 0,
                Err(errno) => return Err(LoadError::io("epoll_wait", errno.into())),
            };
            if self.has_schedule() {
                self.now_ns = clock::now_ns();
            }
            let before_ns = self.now_ns;
            for event in &events[..got] {
                self.happened(*event, &mut buffer);
            }
            // A receive reads the clock.
            if self.now_ns == before_ns {
                self.now_ns = clock::now_ns();
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
            // After the last bytes comes the end, which no further event reports.
            let ends = flags.intersects(EpollFlags::EPOLLRDHUP | broken());
            self.read(slot, generation, ends, buffer);
        }
    }

    #[inline]
    fn read(&mut self, slot: usize, generation: u32, ends: bool, buffer: &mut [u8]) {
        for _ in 0..READS {
            self.wire.sockets.calls += 1;
            match recv(self.wire.sockets.fd(slot), buffer) {
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
                    return self.fail(slot, Kind::Read, Some(errno));
                }
            }
        }
        // More is there: setting the events again makes the kernel report it again.
        self.wire.sockets.calls += 1;
        let mut event = EpollEvent::new(watched(), token(slot, generation));
        if let Some(fd) = self.wire.sockets.get(slot) {
            let _ = self.wire.set.modify(fd, &mut event);
        }
    }
}
