//! One connection of a load.

use crate::http::response::ResponseReader;

/// First pause after a failure that followed another; it doubles each time.
const FIRST_PAUSE_NS: u64 = 1_000_000;
/// Longest pause before the next attempt.
const LONGEST_PAUSE_NS: u64 = 256_000_000;

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Closed; it waits for its turn, for the end of a pause or for a request.
    Closed,
    /// Connecting since `since_ns`.
    Connecting,
    /// Open.
    Open,
}

#[derive(Debug)]
pub(super) struct Conn {
    /// Distinguishes it from earlier sockets in the same slot, whose events may still arrive.
    pub(super) generation: u32,
    pub(super) phase: Phase,
    /// When the attempt began, or when the next may begin.
    pub(super) since_ns: u64,
    /// Failures since the last whole reply.
    pub(super) failures: u32,
    pub(super) reader: ResponseReader,
    /// Index of the oldest request in flight, in the ring of stamps.
    pub(super) oldest: usize,
    /// Requests in flight.
    pub(super) outstanding: usize,
    /// Requests it could take, in the queue of an open loop.
    pub(super) idle: usize,
    /// Requests in flight whose connection was closed cleanly before their turn: they are sent again.
    pub(super) again: bool,
    /// Bytes of the oldest unfinished request that were sent.
    pub(super) at: usize,
    /// Bytes to send.
    pub(super) unsent: usize,
    /// A send call is with the kernel.
    pub(super) sending: bool,
}

impl Conn {
    pub(super) fn new(bodiless: bool) -> Self {
        Self {
            generation: 0,
            phase: Phase::Closed,
            since_ns: u64::MAX,
            failures: 0,
            reader: ResponseReader::new(bodiless),
            oldest: 0,
            outstanding: 0,
            idle: 0,
            again: false,
            at: 0,
            unsent: 0,
            sending: false,
        }
    }

    /// Forgets what was half read or half sent.
    pub(super) fn close(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.phase = Phase::Closed;
        self.since_ns = u64::MAX;
        self.reader.reset();
        (self.at, self.unsent, self.sending) = (0, 0, false);
    }

    /// How long to pause after one more failure: not at all after the first, at most a quarter of a second.
    pub(super) fn pause_ns(&mut self) -> u64 {
        self.failures = self.failures.saturating_add(1);
        match self.failures {
            0 | 1 => 0,
            n => (FIRST_PAUSE_NS << (n - 2).min(8)).min(LONGEST_PAUSE_NS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_end_with_a_reply() {
        let mut conn = Conn::new(false);
        let pauses: Vec<u64> = (0..20).map(|_| conn.pause_ns()).collect();
        assert_eq!(&pauses[..4], [0, 1_000_000, 2_000_000, 4_000_000]);
        assert!(pauses.is_sorted() && pauses[19] == LONGEST_PAUSE_NS, "{pauses:?}");
        conn.failures = 0;
        assert_eq!(conn.pause_ns(), 0);
    }
}
