//! A connection of the server.

use crate::engine::socket::Socket;
use crate::http::serve::count::CloseReason;
use crate::http::serve::dialogue::Dialogue;
use crate::http::serve::reply::ReplyQueue;

/// A connection.
#[derive(Debug)]
pub struct Conn {
    /// Its socket; dropping it closes the connection.
    pub socket: Socket,
    /// State of the dialogue.
    pub dialogue: Dialogue,
    /// Replies that are not written yet; none is the common case and costs nothing.
    pub pending: Option<Box<Pending>>,
    /// How it will end.
    pub end: End,
    /// Time of the last progress: an idle or too slow connection ends by this.
    pub since_ns: u64,
    /// The kernel has the order to receive (io_uring only).
    pub is_receiving: bool,
}

/// Replies in flight.
#[derive(Debug, Default)]
pub struct Pending {
    /// What is left.
    pub queue: ReplyQueue,
    /// When the first of their requests was read.
    pub read_ns: u64,
}

/// How a connection will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Not known.
    Open,
    /// Closed when the replies are written.
    Close(CloseReason),
    /// Shut down for writing when the replies are written; what comes is read and dropped.
    Linger(CloseReason),
    /// Shut down: waiting for the client's end.
    Lingering(CloseReason),
}

impl Conn {
    /// A new connection.
    pub fn new(socket: Socket, now_ns: u64) -> Self {
        let (dialogue, end) = (Dialogue::default(), End::Open);
        Self { socket, dialogue, pending: None, end, since_ns: now_ns, is_receiving: false }
    }

    /// Why it closes now that the client has closed its side.
    pub fn why_ended(&self) -> CloseReason {
        match self.end {
            End::Close(why) | End::Linger(why) | End::Lingering(why) => why,
            End::Open if self.dialogue.is_within_request() => CloseReason::Cut,
            End::Open => CloseReason::Peer,
        }
    }
}

/// Key of a connection: an epoll or io_uring token.
pub type Token = u64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::Slot;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<Slot<Conn>>() <= 160, "{}", size_of::<Slot<Conn>>());
    }
}
