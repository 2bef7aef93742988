//! Counters and times of one load thread.

use nix::errno::Errno;
use rxpath_stats::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::response::Reply;
use crate::live::LiveTimes;
use crate::tally::{Counter, Shared, Tally};

/// Number of distinct error causes that are kept.
const MAX_CAUSES: usize = 64;

/// What an error of a request was.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// No connection was established.
    Connect,
    /// The connection ended, or failed, before the reply was complete.
    Read,
    /// The request could not be sent.
    Write,
    /// No whole reply within the timeout.
    Timeout,
    /// A whole reply with status 400 or above.
    Status,
    /// The received bytes are not a reply.
    Malformed,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Connect, Self::Read, Self::Write, Self::Timeout, Self::Status, Self::Malformed];

    /// As it stands in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Read => "read",
            Self::Write => "write",
            Self::Timeout => "timeout",
            Self::Status => "status",
            Self::Malformed => "malformed",
        }
    }
}

/// One thread's counters that the conductor reads while it runs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Board {
    pub(super) response: LiveTimes,
    pub(super) errors: [Counter; Kind::ALL.len()],
    pub(super) sent_bytes: Counter,
    pub(super) opened: Counter,
    pub(super) resent: Counter,
    /// Requests that were lost with their connection.
    pub(super) lost: Counter,
}

/// What the threads and their conductor share. In the tallies, packets are replies, bytes those received, offered
/// the requests sent.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) shared: Shared,
    pub(super) boards: Vec<Board>,
}

impl Desk {
    pub(super) fn new(threads: usize) -> Self {
        let boards = (0..threads).map(|_| Board::default()).collect();
        Self { shared: Shared::new(threads), boards }
    }

    /// Errors of one kind over all threads.
    pub(super) fn errors(&self, kind: Kind) -> u64 {
        self.boards.iter().map(|board| board.errors[kind as usize].get()).sum()
    }
}

/// One thread's times and counters.
#[derive(Debug)]
pub(super) struct Meter<'a> {
    pub(super) tally: &'a Tally,
    pub(super) board: &'a Board,
    /// Send to last byte; `None` where it is the response time itself.
    pub(super) service: Option<Histogram>,
    pub(super) connect: Histogram,
    pub(super) lateness: Histogram,
    /// Replies per second of tenths of a second.
    pub(super) rates: Histogram,
    numbers: Vec<(Kind, i32, u64)>,
    sample: (u64, u64),
}

/// When a request was meant to leave and when it did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamp {
    pub(super) intended_ns: u64,
    pub(super) sent_ns: u64,
}

/// Time over which replies per second are taken. **Source** wrk's `RECORD_INTERVAL_MS`.
pub(super) const SAMPLE_NS: u64 = 100_000_000;

impl<'a> Meter<'a> {
    pub(super) fn new(desk: &'a Desk, index: usize, two_times: bool) -> Self {
        Self {
            tally: &desk.shared.tallies[index],
            board: &desk.boards[index],
            service: two_times.then(Histogram::of_times),
            connect: Histogram::of_times(),
            lateness: Histogram::of_times(),
            rates: Histogram::of_times(),
            numbers: Vec::with_capacity(MAX_CAUSES),
            sample: (0, 0),
        }
    }

    /// Requests go out for the first time.
    #[inline]
    pub(super) fn sent(&mut self, requests: u64, now_ns: u64) {
        self.tally.offered.add(requests);
        if self.tally.first_ns.get() == 0 {
            self.tally.first_ns.set(now_ns);
        }
    }

    /// A whole reply.
    #[inline]
    pub(super) fn reply(&mut self, stamp: Stamp, reply: Reply, now_ns: u64) {
        self.board.response.record(now_ns.saturating_sub(stamp.intended_ns));
        if let Some(service) = &mut self.service {
            service.record(now_ns.saturating_sub(stamp.sent_ns));
        }
        self.tally.packets.add(1);
        if reply.status >= 400 {
            self.board.errors[Kind::Status as usize].add(1);
        }
    }

    /// Records the errors of `requests`, with their cause.
    #[cold]
    pub(super) fn error(&mut self, kind: Kind, requests: u64, errno: Option<Errno>) {
        self.board.errors[kind as usize].add(requests);
        let number = errno.map_or(0, |errno| errno as i32);
        if number == 0 {
            return;
        }
        if let Some(seen) = self.numbers.iter_mut().find(|seen| (seen.0, seen.1) == (kind, number))
        {
            seen.2 += requests;
        } else if self.numbers.len() < MAX_CAUSES {
            self.numbers.push((kind, number, requests));
        }
    }

    /// Takes the rate of the last tenth of a second.
    pub(super) fn sample(&mut self, now_ns: u64) {
        let (before_ns, before) = self.sample;
        let replies = self.tally.packets.get();
        if before_ns > 0 && now_ns >= before_ns + SAMPLE_NS {
            let rate = (replies - before) as f64 * 1e9 / (now_ns - before_ns) as f64;
            self.rates.record(rate.round() as u64);
        }
        if before_ns == 0 || now_ns >= before_ns + SAMPLE_NS {
            self.sample = (now_ns, replies);
        }
    }

    /// Causes by kind and errno.
    pub(super) fn causes(&self) -> &[(Kind, i32, u64)] {
        &self.numbers
    }
}
