//! What a connection does in its turn.

use std::io;

use crate::engine::epoll::Flags;
use crate::engine::tcp::is_passing;
use crate::tcp::serve::connection::{Connection, Lent, Step};

/// Reads from, or writes to, one connection in a row.
const STEPS: usize = 16;

/// When a step is not repeated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// It did not fill the buffer: nothing more is there.
    Short,
    /// The kernel refused it.
    Refused,
}

/// What a connection may do in its turn.
pub(super) struct Steps {
    pub(super) flags: Flags,
    pub(super) stopping: bool,
}

impl Steps {
    pub(super) fn run(&self, connection: &mut Connection, lent: &mut Lent) -> io::Result<Step> {
        let mut last = Step::Idle;
        if self.flags.contains(Flags::EPOLLERR) {
            // Completions of zero-copy sends, or an error that the next call tells.
            connection.reap()?;
        }
        if self.flags.intersects(Flags::EPOLLIN | Flags::EPOLLHUP | Flags::EPOLLERR) {
            last = Self::repeat(lent, Until::Short, |lent| connection.readable(lent))?;
        }
        let goes_on = matches!(last, Step::Idle | Step::Moved);
        if goes_on && self.flags.contains(Flags::EPOLLOUT) && !self.stopping {
            last = Self::repeat(lent, Until::Refused, |lent| connection.writable(lent))?;
        }
        Ok(last)
    }

    /// Repeats a step until the kernel has no more bytes, or no more room.
    fn repeat(
        lent: &mut Lent,
        until: Until,
        mut step: impl FnMut(&mut Lent) -> io::Result<Step>,
    ) -> io::Result<Step> {
        let mut last = Step::Idle;
        for _ in 0..STEPS {
            let before = (lent.delivered + lent.sent, lent.transactions);
            let came = match step(lent) {
                Ok(came) => came,
                Err(error) if is_passing(&error) => return Ok(last),
                Err(error) => return Err(error),
            };
            let got = lent.delivered + lent.sent - before.0;
            match came {
                Step::Moved => last = Step::Moved,
                // The one transaction of a connection that ends with it is work, too.
                other => return Ok(other),
            }
            let short = until == Until::Short && got < lent.buffer.len() as u64;
            if lent.transactions > before.1 || short {
                break;
            }
        }
        Ok(last)
    }
}
