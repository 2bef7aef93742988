//! The interface of the HTTP client's engines: move bytes, connect, close.

use std::ops::Range;

use nix::errno::Errno;

use crate::engine::clock;
use crate::http::load::message::Message;
use crate::http::load::sockets::Sockets;

/// What became of bytes handed to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// This many were taken.
    Bytes(usize),
    /// The engine has them and will report (see [`Client::sent`](super::client::Client::sent)).
    Later,
    /// The send buffer is full; the engine reports when it has room.
    Full,
    /// The connection is broken.
    Failed(Errno),
}

/// How bytes get to the kernel and back, and what time it is there. Each slot has at most one socket.
pub(super) trait Wire {
    /// `CLOCK_MONOTONIC`.
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }
    /// Its sockets, and the system calls so far.
    fn sockets(&mut self) -> &mut Sockets;
    /// Begins to connect; the engine tells when that has an outcome (see
    /// [`Client::connected`](super::client::Client::connected)).
    fn open(&mut self, slot: usize, generation: u32) -> Result<(), Errno>;
    /// How the connection that was begun has ended.
    fn outcome(&mut self, slot: usize) -> Result<(), Errno> {
        self.sockets().outcome(slot)
    }
    /// Sends the bytes of the message in this range.
    fn send(
        &mut self,
        slot: usize,
        generation: u32,
        message: &Message,
        range: Range<usize>,
    ) -> Sent;
    /// Closes.
    fn close(&mut self, slot: usize, generation: u32);
}
