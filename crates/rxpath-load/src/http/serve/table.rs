//! The connections of one thread.

use std::os::fd::RawFd;

use crate::engine::socket::Socket;
use crate::http::serve::count::Why;
use crate::http::serve::dialogue::Dialogue;
use crate::http::serve::reply::Queue;

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
    pub queue: Queue,
    /// When the first of their requests was read.
    pub read_ns: u64,
}

/// How a connection will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Not known.
    Open,
    /// Closed when the replies are written.
    Close(Why),
    /// Shut down for writing when the replies are written; what comes is read and dropped.
    Linger(Why),
    /// Shut down: waiting for the client's end.
    Lingering(Why),
}

impl Conn {
    /// A new connection.
    pub fn new(socket: Socket, now_ns: u64) -> Self {
        Self {
            socket,
            dialogue: Dialogue::default(),
            pending: None,
            end: End::Open,
            since_ns: now_ns,
            is_receiving: false,
        }
    }

    /// The socket's descriptor.
    #[inline]
    pub fn raw(&self) -> RawFd {
        self.socket.fd()
    }
}

/// A slot of the table. The generation tells a late event from one of the slot's next connection.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    conn: Option<Conn>,
}

/// Connections by number.
#[derive(Debug, Default)]
pub struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// Generation and number of a connection: an epoll or io_uring token.
pub type Token = u64;

/// The number in a token.
#[inline]
pub fn number(token: Token) -> usize {
    (token & 0xffff_ffff) as usize
}

impl Table {
    /// Takes a connection in.
    pub fn insert(&mut self, conn: Conn) -> Token {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.conn = Some(conn);
        u64::from(slot.generation) << 32 | u64::from(index)
    }

    /// The connection of a token; `None` when it is gone.
    #[inline]
    pub fn get(&mut self, token: Token) -> Option<&mut Conn> {
        let slot = self.slots.get_mut(number(token))?;
        if u64::from(slot.generation) == token >> 32 { slot.conn.as_mut() } else { None }
    }

    /// Takes a connection out; dropping it closes it.
    pub fn remove(&mut self, token: Token) -> Option<Conn> {
        self.get(token)?;
        let slot = self.slots.get_mut(number(token))?;
        // 24 bits: the tokens' highest byte is the engines' own.
        slot.generation = (slot.generation + 1) & 0x00ff_ffff;
        self.free.push(number(token) as u32);
        slot.conn.take()
    }

    /// How many there are.
    pub fn open(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Slots, empty ones included.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The token of the connection in this slot.
    pub fn at(&self, index: usize) -> Option<(Token, &Conn)> {
        let slot = self.slots.get(index)?;
        slot.conn.as_ref().map(|conn| (u64::from(slot.generation) << 32 | index as u64, conn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    fn conn() -> Conn {
        let one: OwnedFd = UnixStream::pair().unwrap().0.into();
        Conn::new(Socket::from(one), 0)
    }

    #[test]
    fn a_late_token_finds_nobody() {
        let mut table = Table::default();
        let old = table.insert(conn());
        assert!(table.get(old).is_some());
        assert!(table.remove(old).is_some());
        let new = table.insert(conn());
        assert_eq!((number(old), table.open(), table.slots()), (number(new), 1, 1));
        assert!(table.get(old).is_none() && table.remove(old).is_none());
        assert!(table.get(new).is_some());
        assert_eq!(table.at(0).map(|(token, _)| token), Some(new));
    }

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<Slot>() <= 160, "{}", size_of::<Slot>());
    }
}
