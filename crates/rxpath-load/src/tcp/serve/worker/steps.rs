//! What a connection does in its turn.

use std::io;

use crate::engine::epoll::Flags;
use crate::engine::tcp::is_passing;
use crate::tcp::serve::connection::{Connection, Lent, Step};

/// Reads from, or writes to, one connection in a row.
const STEPS: usize = 16;

/// Lets a connection do what these events allow.
pub(super) fn run(flags: Flags, connection: &mut Connection, lent: &mut Lent) -> io::Result<Step> {
    let mut last = Step::Idle;
    if flags.contains(Flags::EPOLLERR) {
        // Completions of zero-copy sends, or an error that the next call tells.
        connection.reap()?;
    }
    if flags.intersects(Flags::EPOLLIN | Flags::EPOLLHUP | Flags::EPOLLERR) {
        // A read that did not fill the buffer left nothing.
        last = repeat(lent.buffer.len() as u64, lent, |lent| connection.readable(lent))?;
    }
    if matches!(last, Step::Idle | Step::Moved) && flags.contains(Flags::EPOLLOUT) {
        last = repeat(0, lent, |lent| connection.writable(lent))?;
    }
    Ok(last)
}

/// Repeats a step until the kernel has no more bytes, or no more room, or until it moved fewer bytes than `at_least`.
fn repeat(
    at_least: u64,
    lent: &mut Lent,
    mut step: impl FnMut(&mut Lent) -> io::Result<Step>,
) -> io::Result<Step> {
    let mut last = Step::Idle;
    for _ in 0..STEPS {
        let before = (lent.delivered + lent.sent, lent.transactions);
        match step(lent) {
            Ok(Step::Moved) => last = Step::Moved,
            // The one transaction of a connection that ends with it is work, too.
            Ok(other) => return Ok(other),
            Err(error) if is_passing(&error) => return Ok(last),
            Err(error) => return Err(error),
        }
        let moved = lent.delivered + lent.sent - before.0;
        if lent.transactions > before.1 || moved < at_least {
            break;
        }
    }
    Ok(last)
}
