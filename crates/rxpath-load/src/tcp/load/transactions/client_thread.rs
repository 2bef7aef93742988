//! What a thread of transactions gets, and what it keeps: times, errors, the schedule, the end.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use rxpath_stats::Histogram;

use crate::engine::clock;
use crate::engine::listen::{errno_name, is_exhaustion};
use crate::engine::socket::Socket;
use crate::live::LiveTimes;
use crate::pace::Pace;
use crate::pool::Start;
use crate::tally::{Shared, Tally};
use crate::tcp::load::options::TransactionOptions;
use crate::tcp::open_connections::Listed;
use crate::tcp::pattern::Pattern;
use crate::tcp::preamble::Preamble;
use crate::tcp::result::Mismatch;
use crate::usage::UsageMeter;

/// A server that could not be reached for this long is lost.
const LOST_NS: u64 = 1_000_000_000;

/// What a worker needs.
#[derive(Debug)]
pub(super) struct Plan {
    /// While intervals read the connections; dropped before they are.
    pub(super) _listed: Vec<Listed>,
    /// Persistent connections.
    pub(super) sockets: Vec<Socket>,
    /// Connections at a time.
    pub(super) slots: usize,
    pub(super) order: Preamble,
    pub(super) pattern: Arc<Pattern>,
    pub(super) options: TransactionOptions,
    pub(super) live: Arc<Vec<LiveTimes>>,
}

/// What a worker keeps.
pub(super) struct ClientThread<'a> {
    pub(super) shared: &'a Shared,
    pub(super) tally: &'a Tally,
    pub(super) usage: UsageMeter,
    pub(super) pace: Option<Pace>,
    pub(super) end_ns: u64,
    /// Due to complete; without a schedule a transaction is due when it begins.
    response: &'a LiveTimes,
    pub(super) seen: Seen,
    /// Since when nothing but errors happened; 0 = not so.
    failing_since_ns: u64,
}

/// What a thread saw and nobody reads while it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Begun to complete; empty without a schedule, where it is the response time.
    pub(super) service: Histogram,
    pub(super) connect: Histogram,
    /// By step and errno name.
    pub(super) errors: BTreeMap<(&'static str, String), u64>,
    pub(super) mismatches: Vec<Mismatch>,
    pub(super) is_peer_lost: bool,
    /// Transactions that were due by the schedule; those begun without one. Known at the end.
    pub(super) target: u64,
    /// Given to a connection.
    pub(super) begun: u64,
    /// Lost with their connection.
    pub(super) lost: u64,
    /// Neither completed nor lost at the end.
    pub(super) in_flight: u64,
}

/// A transaction in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Transaction {
    /// When it was due.
    pub(super) due_ns: u64,
    /// When it was begun.
    pub(super) begun_ns: u64,
}

impl<'a> ClientThread<'a> {
    pub(super) fn new(start: &'a Start, response: &'a LiveTimes) -> Self {
        Self {
            shared: start.shared,
            tally: start.tally,
            usage: UsageMeter::new(start.cpu),
            pace: None,
            end_ns: u64::MAX,
            response,
            seen: Seen::default(),
            failing_since_ns: 0,
        }
    }

    #[inline]
    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns || self.shared.is_stopped() || self.seen.is_peer_lost
    }

    /// The next transaction, when one is due by now; the caller begins it.
    #[inline]
    pub(super) fn next(&mut self, now_ns: u64) -> Option<Transaction> {
        let mut due_ns = now_ns;
        if let Some(pace) = &mut self.pace {
            due_ns = pace.next_ns;
            if due_ns > now_ns || due_ns >= self.end_ns {
                return None;
            }
            pace.advance();
        }
        self.seen.begun += 1;
        Some(Transaction { due_ns, begun_ns: now_ns })
    }

    /// Sleeps or spins towards the next transaction.
    #[inline]
    pub(super) fn wait(&self, now_ns: u64) {
        if let Some(pace) = &self.pace {
            pace.wait(now_ns, self.end_ns);
        }
    }

    /// How long a wait for events may take; 0 = none.
    pub(super) fn patience_ns(&self, now_ns: u64, has_idle: bool) -> u64 {
        let left = self.end_ns.saturating_sub(now_ns).clamp(1, LOST_NS);
        match &self.pace {
            // A schedule that is kept by spinning leaves no time for waking up either.
            Some(pace) if has_idle || pace.spin_only => {
                pace.nap_until(now_ns, self.end_ns).map_or(0, |until| left.min(until - now_ns))
            }
            _ => left,
        }
    }

    /// The first request goes out now.
    #[inline]
    pub(super) fn begun(&mut self, now_ns: u64) {
        if self.tally.first_ns.get() == 0 {
            self.usage.progress(self.tally, now_ns);
        }
    }

    /// The response is complete.
    #[inline]
    pub(super) fn completed(&mut self, transaction: Transaction, now_ns: u64, bytes: u32) {
        self.response.record(now_ns.saturating_sub(transaction.due_ns));
        if self.pace.is_some() {
            self.seen.service.record(now_ns.saturating_sub(transaction.begun_ns));
        }
        self.tally.received_bytes.add(u64::from(bytes));
        self.tally.units.add(1);
        self.usage.progress(self.tally, now_ns);
        self.failing_since_ns = 0;
    }

    /// Something failed that ends a connection.
    #[cold]
    pub(super) fn failed(&mut self, step: &'static str, error: &io::Error) {
        *self.seen.errors.entry((step, errno_name(error))).or_default() += 1;
        let now_ns = clock::now_ns();
        if self.failing_since_ns == 0 {
            self.failing_since_ns = now_ns;
        } else if now_ns - self.failing_since_ns > LOST_NS && !is_local(error) {
            self.seen.is_peer_lost = true;
        }
    }

    /// Notes what became of the transactions until now, which is the end.
    pub(super) fn end(&mut self) {
        let now_ns = clock::now_ns().min(self.end_ns);
        let due = self.pace.as_ref().map_or(0, |pace| pace.due_before(now_ns));
        let seen = &mut self.seen;
        // Without a schedule what was begun was due; with one the clock was read before, and now is later.
        seen.target = due.max(seen.begun);
        seen.in_flight = (seen.begun - seen.lost).saturating_sub(self.tally.units.get());
    }
}

/// Errors of this host that the server has no part in.
pub(super) fn is_local(error: &io::Error) -> bool {
    is_exhaustion(error) || error.raw_os_error() == Some(libc::EADDRNOTAVAIL)
}
