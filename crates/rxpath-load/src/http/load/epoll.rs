//! The epoll engine: edge-triggered, one receive and one send call per request.
//!
//! A socket is added once and never changed. A receive that did not fill its buffer has emptied the socket, so no
//! call is spent on hearing EAGAIN; what comes later brings an event of its own.

use std::ops::Range;

use nix::errno::Errno;

use crate::LoadError;
use crate::engine::clock;
use crate::engine::direct::{recv, send};
use crate::engine::epoll::{Epoll, Event, Flags};
use crate::http::load::client::Client;
use crate::http::load::conn::Phase;
use crate::http::load::message::Message;
use crate::http::load::meter::Kind;
use crate::http::load::sockets::{Sockets, errno};
use crate::http::load::wire::{Sent, Wire};

/// Events of one wait.
const EVENTS: usize = 1024;
/// Bytes of one receive.
const BUFFER_BYTES: usize = 64 << 10;
/// Full receives from one connection before the others have their turn.
const READS: u32 = 16;

/// An epoll set with its sockets.
#[derive(Debug)]
pub(super) struct EpollWire {
    set: Epoll,
    sockets: Sockets,
}

const WATCHED: Flags =
    Flags::EPOLLIN.union(Flags::EPOLLOUT).union(Flags::EPOLLRDHUP).union(Flags::EPOLLET);
const BROKEN: Flags = Flags::EPOLLERR.union(Flags::EPOLLHUP);

fn token(slot: usize, generation: u32) -> u64 {
    (u64::from(generation) << 32) | slot as u64
}

impl EpollWire {
    pub(super) fn new(sockets: Sockets) -> Result<Self, LoadError> {
        let set = Epoll::new().map_err(|e| LoadError::io("epoll_create1", e))?;
        Ok(Self { set, sockets })
    }
}

impl Wire for EpollWire {
    fn sockets(&mut self) -> &mut Sockets {
        &mut self.sockets
    }

    fn open(&mut self, slot: usize, generation: u32) -> Result<(), Errno> {
        let fd = self.sockets.open(slot)?;
        self.set.add(fd, WATCHED, token(slot, generation)).map_err(errno)?;
        self.sockets.calls += 1;
        Ok(())
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
}

impl Client<'_, EpollWire> {
    /// Loads until it is over.
    pub(super) fn run(&mut self) -> Result<(), LoadError> {
        let mut events = vec![Event::empty(); EVENTS];
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Some(wait_ns) = self.next_wait_ns() {
            self.wire.sockets.calls += 1;
            let got = self.wire.set.wait_ns(&mut events, wait_ns);
            let got = got.map_err(|e| LoadError::io("epoll_wait", e))?;
            // With a schedule the clock decides when requests leave: what handles an event reads it anyway.
            if self.pace.is_some() {
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
    fn happened(&mut self, event: Event, buffer: &mut [u8]) {
        let (slot, generation) = (event.data() as u32 as usize, (event.data() >> 32) as u32);
        let flags = event.events();
        if self.conns[slot].generation != generation {
            return;
        }
        if self.conns[slot].phase == Phase::Connecting {
            if flags.intersects(Flags::EPOLLOUT | BROKEN) {
                self.connected(slot);
            }
        } else if flags.contains(Flags::EPOLLOUT) && self.conns[slot].unsent > 0 {
            self.flush(slot);
        }
        let arrived = Flags::EPOLLIN | Flags::EPOLLRDHUP | BROKEN;
        if flags.intersects(arrived) && self.conns[slot].generation == generation {
            // After the last bytes comes the end, which no further event reports.
            let ends = flags.intersects(Flags::EPOLLRDHUP | BROKEN);
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
                Err(errno) => return self.fail(slot, Kind::Read, Some(errno)),
            }
        }
        // More is there: setting the events again makes the kernel report it again.
        self.wire.sockets.calls += 1;
        if let Some(socket) = self.wire.sockets.get(slot) {
            let _ = self.wire.set.change(socket, WATCHED, token(slot, generation));
        }
    }
}
