//! The io_uring engine: receives that stay armed, sends in batches, one system call per round.

use std::io;
use std::ops::Range;
use std::os::fd::RawFd;
use std::time::Duration;

use nix::errno::Errno;

use crate::LoadError;
use crate::engine::clock;
use crate::engine::uring::{Done, Region, SURELY_FITS_BYTES, Shape, Uring};
use crate::http::load::client::Client;
use crate::http::load::conn::Phase;
use crate::http::load::message::Message;
use crate::http::load::meter::Kind;
use crate::http::load::sockets::Sockets;
use crate::http::load::wire::{Sent, Wire};

/// Bytes of a provided buffer.
const BUFFER_BYTES: usize = 16 << 10;
/// Connections for which the queues have room at once.
const MAX_ENTRIES: usize = 4096;

/// What an order is, and what its completion is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// The connection has an outcome.
    Connect,
    /// Everything that comes.
    Receive,
    Send,
    /// Taking another order back.
    Cancel,
}

/// Which order of which socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag(u64);

/// Bits of a generation that fit next to the slot and the request type.
const GENERATION: u64 = (1 << 30) - 1;

impl Tag {
    fn new(about: About, slot: usize, generation: u32) -> Self {
        Self(((about as u64) << 62) | ((u64::from(generation) & GENERATION) << 32) | slot as u64)
    }

    fn about(self) -> About {
        match self.0 >> 62 {
            0 => About::Connect,
            1 => About::Receive,
            2 => About::Send,
            _ => About::Cancel,
        }
    }

    fn slot(self) -> usize {
        self.0 as u32 as usize
    }

    fn is_of(self, generation: u32) -> bool {
        (self.0 >> 32) & GENERATION == u64::from(generation) & GENERATION
    }
}

/// Something to submit with the next call.
#[derive(Clone, Debug)]
struct Order {
    fd: RawFd,
    range: Range<usize>,
    tag: Tag,
    /// Take the order of this tag back instead of giving it.
    is_over: bool,
}

/// The sockets, and what shall be done with them.
#[derive(Debug)]
pub(super) struct RingWire {
    sockets: Sockets,
    orders: Vec<Order>,
    /// Sends report errors only: the request is short, and the send buffer is empty whenever one leaves.
    is_quiet: bool,
}

impl RingWire {
    pub(super) fn new(sockets: Sockets, message: &Message, pipeline: usize) -> Self {
        let is_quiet = pipeline == 1 && message.len <= SURELY_FITS_BYTES;
        Self { sockets, orders: Vec::with_capacity(MAX_ENTRIES), is_quiet }
    }

    #[inline]
    fn order(&mut self, about: About, slot: usize, generation: u32, range: Range<usize>) {
        let tag = Tag::new(about, slot, generation);
        self.orders.push(Order { fd: self.sockets.fd(slot), range, tag, is_over: false });
    }
}

impl Wire for RingWire {
    fn sockets(&mut self) -> &mut Sockets {
        &mut self.sockets
    }

    fn open(&mut self, slot: usize, generation: u32) -> Result<(), Errno> {
        self.sockets.open(slot)?;
        self.order(About::Connect, slot, generation, 0..0);
        Ok(())
    }

    #[inline]
    fn send(&mut self, slot: usize, generation: u32, _: &Message, range: Range<usize>) -> Sent {
        let bytes = range.len();
        self.order(About::Send, slot, generation, range);
        if self.is_quiet { Sent::Bytes(bytes) } else { Sent::Later }
    }

    fn close(&mut self, slot: usize, generation: u32) {
        // An armed order would hold the socket open.
        for about in [About::Connect, About::Receive, About::Send] {
            let tag = Tag::new(about, slot, generation);
            self.orders.push(Order { fd: -1, range: 0..0, tag, is_over: true });
        }
        self.sockets.close(slot);
    }
}

/// A ring for the calling thread.
pub(super) fn ring(connections: usize, message: &Message) -> Result<Uring, LoadError> {
    let room = connections.clamp(32, MAX_ENTRIES).next_power_of_two();
    let shape =
        Shape { entries: 2 * room as u32, buffers: room as u16, buffer_bytes: BUFFER_BYTES };
    Uring::new(shape, vec![message.bytes.clone()])
}

impl Client<'_, RingWire> {
    /// Loads until it is over.
    pub(super) fn run_ring(&mut self, ring: &mut Uring) -> Result<(), LoadError> {
        let mut done = Vec::with_capacity(4 * MAX_ENTRIES);
        let io = |error| LoadError::io("io_uring_enter", error);
        while let Some(wait_ns) = self.next_wait_ns() {
            self.submit(ring).map_err(io)?;
            self.wire.sockets.calls += 1;
            ring.wait(1, Duration::from_nanos(wait_ns)).map_err(io)?;
            self.now_ns = clock::now_ns();
            ring.reap(&mut done);
            for done in done.drain(..) {
                self.completed(done, ring);
            }
            ring.show_buffers();
        }
        ring.cancel_all();
        Ok(())
    }

    /// Puts the orders into the ring; those of sockets that were closed meanwhile are dropped.
    fn submit(&mut self, ring: &mut Uring) -> io::Result<()> {
        for order in self.wire.orders.drain(..) {
            let Order { fd, range, tag, is_over } = order;
            if is_over {
                ring.cancel(tag.0, Tag::new(About::Cancel, tag.slot(), 0).0)?;
                continue;
            }
            if !tag.is_of(self.conns[tag.slot()].generation) {
                continue;
            }
            match tag.about() {
                About::Connect => ring.writable(fd, tag.0)?,
                About::Receive => ring.receive(fd, tag.0)?,
                About::Send if self.wire.is_quiet => {
                    ring.send_quietly(fd, Region { block: 0, range }, tag.0)?;
                }
                About::Send => ring.send(fd, Region { block: 0, range }, tag.0)?,
                About::Cancel => {}
            }
        }
        Ok(())
    }

    #[inline]
    fn completed(&mut self, done: Done, ring: &mut Uring) {
        let tag = Tag(done.data);
        let slot = tag.slot();
        if tag.about() != About::Cancel && tag.is_of(self.conns[slot].generation) {
            match tag.about() {
                About::Receive => self.arrived(slot, &done, ring),
                About::Connect => {
                    self.connected(slot);
                    self.arm(slot);
                }
                About::Send if done.result < 0 => {
                    self.fail(slot, Kind::Write, Some(Errno::from_raw(-done.result)));
                }
                About::Send => {
                    self.sent(slot, done.result as usize);
                    self.flush(slot);
                }
                About::Cancel => {}
            }
        }
        if let Some(buffer) = done.buffer {
            ring.give_back(buffer);
        }
    }

    /// RingWire to receive what comes to an open connection.
    fn arm(&mut self, slot: usize) {
        if self.conns[slot].phase == Phase::Open {
            let generation = self.conns[slot].generation;
            self.wire.order(About::Receive, slot, generation, 0..0);
        }
    }

    #[inline]
    fn arrived(&mut self, slot: usize, done: &Done, ring: &mut Uring) {
        let generation = self.conns[slot].generation;
        match (done.result, &done.buffer) {
            (0, _) => return self.ended(slot),
            (bytes @ 1.., Some(buffer)) => {
                self.received(slot, ring.received(buffer, bytes as usize));
            }
            // No buffer was free: they come back with this round.
            (error, _) if error == -libc::ENOBUFS => {}
            (error, _) => {
                return self.fail(slot, Kind::Read, Some(Errno::from_raw(error.saturating_neg())));
            }
        }
        if !done.has_more && self.conns[slot].generation == generation {
            self.arm(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_tells_what_where_and_of_which_socket() {
        for about in [About::Connect, About::Receive, About::Send, About::Cancel] {
            let tag = Tag::new(about, 70_000, u32::MAX);
            assert_eq!((tag.about(), tag.slot()), (about, 70_000));
            assert!(tag.is_of(u32::MAX) && !tag.is_of(0) && !tag.is_of(u32::MAX - 1));
        }
    }
}
