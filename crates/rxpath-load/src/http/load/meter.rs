//! Counters and times of one load thread.

use nix::errno::Errno;
use rxpath_stats::Histogram;

use crate::http::response::Reply;
use crate::live::LiveTimes;
use crate::tally::{Counter, Tally};
use crate::usage::UsageMeter;

/// Number of distinct error causes that are kept.
const MAX_CAUSES: usize = 64;

rxpath_core::named! {
    /// What an error of a request was.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// No connection was established.
        Connect => "connect",
        /// The connection ended, or failed, before the reply was complete.
        Read => "read",
        /// The request could not be sent.
        Write => "write",
        /// No whole reply within the timeout.
        Timeout => "timeout",
        /// A whole reply with status 400 or above.
        Status => "status",
        /// The received bytes are not a reply.
        Malformed => "malformed",
    }
    /// As it stands in results.
    pub fn name(self) -> &'static str
}

/// One thread's counters that the conductor reads while it runs, in addition to its tally. There, units are replies,
/// and offered are the requests sent.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct LiveCounters {
    pub(super) response: LiveTimes,
    pub(super) errors: [Counter; Kind::ALL.len()],
    pub(super) opened: Counter,
    pub(super) resent: Counter,
    /// Requests that were lost with their connection.
    pub(super) lost: Counter,
}

/// Errors of one kind over all threads.
pub(super) fn errors(live: &[LiveCounters], kind: Kind) -> u64 {
    live.iter().map(|thread| thread.errors[kind as usize].get()).sum()
}

/// One thread's times and counters.
#[derive(Debug)]
pub(super) struct Meter<'a> {
    pub(super) tally: &'a Tally,
    pub(super) live: &'a LiveCounters,
    pub(super) usage: UsageMeter,
    /// Send to last byte; `None` where it is the response time itself.
    pub(super) service: Option<Histogram>,
    pub(super) connect: Histogram,
    pub(super) lateness: Histogram,
    /// Replies per second of tenths of a second.
    pub(super) rates: Histogram,
    /// Errors by kind and errno.
    pub(super) causes: Vec<(Kind, i32, u64)>,
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
    pub(super) fn new(
        tally: &'a Tally,
        live: &'a LiveCounters,
        usage: UsageMeter,
        two_times: bool,
    ) -> Self {
        Self {
            tally,
            live,
            usage,
            service: two_times.then(Histogram::of_times),
            connect: Histogram::of_times(),
            lateness: Histogram::of_times(),
            rates: Histogram::of_times(),
            causes: Vec::with_capacity(MAX_CAUSES),
            sample: (0, 0),
        }
    }

    /// Requests go out for the first time.
    #[inline]
    pub(super) fn sent(&mut self, requests: u64, now_ns: u64) {
        self.tally.offered.add(requests);
        self.tally.begin(now_ns);
    }

    /// A whole reply.
    #[inline]
    pub(super) fn reply(&mut self, stamp: Stamp, reply: Reply, now_ns: u64) {
        self.live.response.record(now_ns.saturating_sub(stamp.intended_ns));
        if let Some(service) = &mut self.service {
            service.record(now_ns.saturating_sub(stamp.sent_ns));
        }
        self.tally.units.add(1);
        if reply.status >= 400 {
            self.live.errors[Kind::Status as usize].add(1);
        }
    }

    /// Records the errors of `requests`, with their cause.
    #[cold]
    pub(super) fn error(&mut self, kind: Kind, requests: u64, errno: Option<Errno>) {
        self.live.errors[kind as usize].add(requests);
        let number = errno.map_or(0, |errno| errno as i32);
        if number == 0 {
            return;
        }
        if let Some(seen) = self.causes.iter_mut().find(|seen| (seen.0, seen.1) == (kind, number)) {
            seen.2 += requests;
        } else if self.causes.len() < MAX_CAUSES {
            self.causes.push((kind, number, requests));
        }
    }

    /// Takes the rate of the last tenth of a second.
    pub(super) fn sample(&mut self, now_ns: u64) {
        let (before_ns, before) = self.sample;
        let replies = self.tally.units.get();
        if before_ns > 0 && now_ns >= before_ns + SAMPLE_NS {
            let rate = (replies - before) as f64 * 1e9 / (now_ns - before_ns) as f64;
            self.rates.record(rate.round() as u64);
        }
        if before_ns == 0 || now_ns >= before_ns + SAMPLE_NS {
            self.sample = (now_ns, replies);
        }
    }
}
