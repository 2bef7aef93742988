//! Counters of a thread.

use std::collections::BTreeMap;

use rxpath_stats::Histogram;

use crate::http::serve::reply::{KINDS, Kind};
use crate::http::serve::result::Events;
use crate::tally::Tally;

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CloseReason {
    /// The client closed it between two requests.
    Peer,
    /// The client closed it within a request.
    Cut,
    /// The client asked for it (`Connection: close`, HTTP/1.0).
    Asked,
    /// A request was refused.
    Refused,
    /// Idle for too long.
    Idle,
    /// The rest of a request did not come in time (408).
    Slow,
    /// The client did not read its replies in time.
    NotReading,
    /// An error of the socket: reset, timed out.
    Error,
}

/// All reasons, each at its number.
const REASONS: [&str; 8] =
    ["peer", "cut", "asked", "refused", "idle", "slow", "not-reading", "error"];

/// Counters of one thread.
#[derive(Debug, Default)]
pub struct Counts {
    /// Replies written whole, by kind.
    pub done: [u64; KINDS],
    pub received_bytes: u64,
    pub sent_bytes: u64,
    pub accepted: u64,
    pub open_max: u64,
    closed: [u64; REASONS.len()],
    pub pauses: BTreeMap<String, u64>,
    pub accept_errors: BTreeMap<String, u64>,
    pub calls: u64,
    pub waits: u64,
    pub empty_waits: u64,
    pub wait_ns: u64,
    pub empty_wait_ns: u64,
    /// Both wait times at the last reply: what comes later is not part of the work.
    pub at_last: (u64, u64),
    pub events: Histogram,
    pub latency: Histogram,
    /// Connections whose NAPI id was read, and those that have one.
    pub napi: (u64, u64),
    first_ns: u64,
    last_ns: u64,
}

impl Counts {
    /// A wait that began at `before_ns` and ended now.
    #[inline]
    pub fn waited(&mut self, before_ns: u64, now_ns: u64, events: usize) {
        let spent = now_ns.saturating_sub(before_ns);
        self.calls += 1;
        self.waits += 1;
        self.wait_ns += spent;
        if events == 0 {
            self.empty_waits += 1;
            self.empty_wait_ns += spent;
        } else {
            self.events.record(events as u64);
        }
    }

    /// Replies to `requests` requests were written now; the first was read at `read_ns`.
    #[inline]
    pub fn answered(&mut self, requests: u64, read_ns: u64, now_ns: u64) {
        if requests == 0 {
            return;
        }
        if self.first_ns == 0 {
            // What was waited before the first request is not part of the work.
            self.first_ns = read_ns;
            (self.wait_ns, self.empty_wait_ns) = (0, 0);
        }
        self.last_ns = now_ns;
        self.latency.record_n(now_ns.saturating_sub(read_ns), requests);
    }

    pub fn closed(&mut self, why: CloseReason) {
        self.closed[why as usize] += 1;
    }

    /// Requests answered.
    pub fn requests(&self) -> u64 {
        self.sum(Kind::is_final)
    }

    fn refused(&self) -> u64 {
        self.sum(|kind| kind.status() >= 400)
    }

    fn sum(&self, is_counted: impl Fn(Kind) -> bool) -> u64 {
        let all = Kind::ALL.into_iter().zip(self.done);
        all.filter(|(kind, _)| is_counted(*kind)).map(|(_, n)| n).sum()
    }

    /// Shows the counters to others; once per wait.
    #[inline]
    pub fn publish(&mut self, tally: &Tally, open: usize) {
        if tally.last_ns.get() != self.last_ns {
            self.at_last = (self.wait_ns, self.empty_wait_ns);
            tally.first_ns.set(self.first_ns);
            tally.last_ns.set(self.last_ns);
        }
        tally.units.set(self.requests());
        tally.sent_bytes.set(self.sent_bytes);
        tally.calls.set(self.calls);
        tally.received_bytes.set(self.received_bytes);
        tally.accepted.set(self.accepted);
        tally.connections.set(open as u64);
        tally.refused.set(self.refused());
        self.open_max = self.open_max.max(open as u64);
    }

    /// Connections closed, by reason.
    pub fn closed_by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> {
        REASONS.into_iter().zip(self.closed).filter(|(_, n)| *n > 0)
    }

    /// How many events a wait gave.
    pub fn events_per_wait(&self) -> Option<Events> {
        let at = |q| self.events.quantile_ns(q);
        (self.events.count() > 0).then(|| Events {
            mean: self.events.mean_ns(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: self.events.max_ns(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_before_the_first_request_are_no_work() {
        let mut counts = Counts::default();
        counts.waited(0, 1_000_000, 1);
        counts.answered(1, 1_000_000, 1_005_000);
        counts.waited(1_005_000, 1_006_000, 0);
        let tally = Tally::default();
        counts.publish(&tally, 3);
        assert_eq!((counts.wait_ns, counts.empty_wait_ns), (1_000, 1_000));
        assert_eq!((tally.first_ns.get(), tally.last_ns.get()), (1_000_000, 1_005_000));
        // The end of the work is behind the reply: a later wait does not move it.
        let at_last = counts.at_last;
        counts.waited(1_006_000, 9_000_000, 0);
        counts.publish(&tally, 3);
        assert_eq!(counts.at_last, at_last);
        assert_eq!((counts.open_max, tally.connections.get()), (3, 3));
        assert_eq!(counts.latency.max_ns() / 100, 50);
    }

    #[test]
    fn every_reason_has_a_name() {
        let mut counts = Counts::default();
        counts.closed(CloseReason::Error);
        counts.closed(CloseReason::Peer);
        assert_eq!(counts.closed_by_reason().collect::<Vec<_>>(), [("peer", 1), ("error", 1)]);
    }
}
