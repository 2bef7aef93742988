//! Engines of UDP senders: how the messages of a thread get to the kernel.
//!
//! An engine is a file here and a line in `open`, which chooses it. The send loop is compiled for each engine.

pub(super) mod frames;
pub(super) mod raw;
pub(super) mod socket;
pub(super) mod xsk;

use std::io;
use std::net::SocketAddr;

use crate::LoadError;
use crate::engine::socket::Socket;
use crate::udp::load::options::{LoadOptions, LoadSettings};
use crate::udp::result::XdpLedger;
use crate::zone;

/// One source port to one destination.
pub(super) trait Flow: Sized + Send + 'static {
    /// Opens a flow by a socket that is bound as the options want.
    fn open(socket: Socket, to: SocketAddr, options: &LoadOptions) -> Result<Self, LoadError>;
    /// The socket whose send buffer holds the messages; frames have none.
    fn send_buffer(&self) -> Option<&Socket> {
        None
    }
    /// The source.
    fn source(&self) -> io::Result<SocketAddr>;
    /// Opens what the flows of each thread share, before the threads start, and says in the settings what is in force.
    fn share(
        _threads: &mut [Vec<Self>],
        _options: &LoadOptions,
        _settings: &mut LoadSettings,
    ) -> Result<(), LoadError> {
        Ok(())
    }
}

/// An engine with the flows and the messages of one thread.
pub(super) trait Transmit: Sized {
    /// What it sends over.
    type Flow: Flow;
    /// Whether the kernel, when it takes only some of several messages, keeps the reason for itself.
    const HIDES_ERRORS: bool = true;

    /// The engine of a thread, with room for the messages of a batch.
    fn new(flows: Vec<Self::Flow>, options: &LoadOptions) -> Result<Self, LoadError>;
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
    /// Waits until the kernel has taken what is still in flight to it, for some seconds at most. Returns how many messages the
    /// kernel took, less those that [`Transmit::send`] counted, and what AF_XDP sockets say.
    fn finish(&mut self) -> (i64, Option<XdpLedger>) {
        (0, None)
    }
}

/// A refused connect in words.
fn connect_error(to: SocketAddr, source: io::Error) -> LoadError {
    let hint = match source.raw_os_error() {
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => {
            format!("this host has no route to {}; check with `ip route get {}`", to.ip(), to.ip())
        }
        Some(libc::EACCES) => "broadcast addresses are not supported".into(),
        Some(libc::EINVAL) if to.is_ipv6() => zone::missing(to),
        _ => String::new(),
    };
    LoadError::Address { op: "connect", addr: to.to_string(), source, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_destination_needs_its_interface() {
        let invalid = io::Error::from_raw_os_error(libc::EINVAL);
        let error = connect_error("[fe80::1]:4397".parse().unwrap(), invalid);
        assert!(error.hint().unwrap().contains("[fe80::1%2]:4397"), "{error}");
    }
}
