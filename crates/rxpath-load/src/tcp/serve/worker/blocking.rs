//! One connection of transactions that has a thread to itself is served by blocking calls: receive, send, receive.
//!
//! That spares it a wait for events per transaction: a sixth of the cost of a transaction over loopback. After some dozens of them, and as soon as a request is late, the
//! thread looks after everything else again: new connections wait for some milliseconds at most.

use std::io;
use std::time::Duration;

use crate::engine::clock;
use crate::engine::epoll::Event;
use crate::engine::tcp::is_passing;
use crate::tcp::serve::connection::{Connection, Step};
use crate::tcp::serve::worker::Worker;

/// Waits for events in a row that were ended by the same connection alone.
const STREAK: u32 = 32;
/// Transactions between two looks at everything else.
const ROUND: u32 = 64;
/// Longest wait for a request.
const PATIENCE: Duration = Duration::from_millis(5);

/// The connection that alone had events, and for how many waits.
#[derive(Debug, Default)]
pub(super) struct OnlyConnection {
    key: u64,
    streak: u32,
    /// Its socket knows how long calls may take.
    is_prepared: bool,
}

impl Worker<'_> {
    /// Serves the connection of these events by blocking calls for a while, when it has been alone for long.
    pub(super) fn serve_by_blocking(&mut self, events: &[Event]) -> io::Result<()> {
        let [event] = events else {
            self.only = OnlyConnection::default();
            return Ok(());
        };
        if self.only.key != event.data() {
            self.only = OnlyConnection { key: event.data(), ..OnlyConnection::default() };
        }
        self.only.streak = self.only.streak.saturating_add(1);
        let key = self.only.key;
        if self.only.streak < STREAK || self.plan.options.stall.is_some() {
            return Ok(());
        }
        let Some(connection) = self.connections.get(key).filter(|c| c.is_between_transactions())
        else {
            return Ok(());
        };
        if !self.only.is_prepared {
            connection.socket.set_timeouts(PATIENCE)?;
            self.only.is_prepared = true;
        }
        connection.socket.0.set_nonblocking(false)?;
        self.block(key)?;
        match self.connections.get(key) {
            Some(connection) => connection.socket.0.set_nonblocking(true),
            None => Ok(()),
        }
    }

    fn block(&mut self, key: u64) -> io::Result<()> {
        for _ in 0..ROUND {
            let mut is_late = false;
            self.turn(key, false, clock::now_ns(), |connection, lent| {
                match connection.readable(lent) {
                    Err(error) if is_passing(&error) => {
                        is_late = true;
                        Ok(Step::Idle)
                    }
                    other => other,
                }
            })?;
            let goes_on =
                self.connections.get(key).is_some_and(Connection::is_between_transactions);
            if is_late {
                self.only.streak = 0;
            }
            if is_late || !goes_on || self.start.shared.is_stopped() {
                break;
            }
        }
        Ok(())
    }
}
