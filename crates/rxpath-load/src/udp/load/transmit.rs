//! Engines of UDP senders: how the messages of a thread get to the kernel.
//!
//! An engine is a file here and a line in `open`, which chooses it. The send loop is compiled for each engine.

pub(super) mod raw;
pub(super) mod socket;

use std::io;
use std::net::SocketAddr;

use crate::LoadError;
use crate::engine::socket::Socket;
use crate::udp::load::options::LoadOptions;

/// An engine with the flows and the messages of one thread.
pub(super) trait Transmit: Sized {
    /// What a flow, one source port to one destination, is opened with.
    type Flow: Send + 'static;

    /// System call of the loop.
    fn call(options: &LoadOptions) -> &'static str;
    /// Opens a flow by a socket that is bound as the options want.
    fn open(socket: Socket, to: SocketAddr, options: &LoadOptions)
    -> Result<Self::Flow, LoadError>;
    /// The socket whose send buffer holds the messages.
    fn socket(flow: &Self::Flow) -> &Socket;
    /// The source of a flow.
    fn source(flow: &Self::Flow) -> io::Result<SocketAddr>;

    /// The engine of a thread, with room for `messages` messages.
    fn new(flows: Vec<Self::Flow>, messages: usize, options: &LoadOptions) -> Self;
    /// The payload of message `i`: one datagram or, with GSO, the datagrams of one send.
    fn payload(&mut self, i: usize) -> &mut [u8];
    /// Addresses the first `messages` messages, whose payloads are written, to a flow.
    fn address(&mut self, flow: usize, messages: usize);
    /// Sends the messages `from..to` of a flow without waiting; returns how many were taken.
    ///
    /// **Errors** those of the first message; an error behind it only shortens the count.
    fn send(&mut self, flow: usize, from: usize, to: usize) -> io::Result<usize>;
    /// Waits for room in a flow's send buffer, for some milliseconds; whether there is some.
    fn wait_for_room(&self, flow: usize) -> io::Result<bool>;
}
