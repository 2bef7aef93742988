//! What a thread of the server keeps, whatever its engine: what it needs, shares and reports.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::engine::clock;
use crate::engine::socket::Socket;
use crate::engine::spin;
use crate::http::serve::connection::{Conn, End, Token};
use crate::http::serve::count::{CloseReason, Counts};
use crate::http::serve::dialogue::{ConnectionAction, Rules, Scratch};
use crate::http::serve::options::ServeOptions;
use crate::http::serve::reply::ReplyTable;
use crate::http::serve::result::ThreadResult;
use crate::pool::Start;
use crate::slab::Slab;
use crate::tally::Shared;
use crate::usage::UsageMeter;

/// How long a shut-down connection may take to end.
const LINGER_NS: u64 = 2_000_000_000;
/// Slots that are checked for idle connections after one wait.
const SWEEP_SLOTS: usize = 256;
/// How long accepting rests when there was no room.
const PAUSE_NS: u64 = 100_000_000;
/// Connections of each thread whose NAPI id is read.
const NAPI_LOOKS: u64 = 64;

/// What a worker needs.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) listener: Arc<Socket>,
    pub(super) reply_table: Arc<ReplyTable>,
    /// Connections open, of all threads.
    pub(super) open: Arc<AtomicU64>,
    pub(super) max_connections: u64,
    pub(super) options: Arc<ServeOptions>,
}

/// What a worker saw.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) thread: ThreadResult,
    pub(super) counts: Counts,
    /// The connections stay open until the report is dropped.
    pub(super) connections: Slab<Conn>,
}

/// What a thread keeps, with either engine.
#[derive(Debug)]
pub(super) struct WorkerState {
    pub(super) plan: Plan,
    pub(super) shared: Arc<Shared>,
    index: usize,
    usage: UsageMeter,
    pub(super) connections: Slab<Conn>,
    pub(super) scratch: Scratch,
    pub(super) counts: Counts,
    /// The last reading of the clock.
    pub(super) now_ns: u64,
    /// When accepting goes on; `None` while it is not paused.
    pub(super) paused_until_ns: Option<u64>,
    sweep_at: usize,
    next_sweep_ns: u64,
}

/// What is to be done with a connection whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// Close it.
    Close(CloseReason),
    /// Reply 408, then close.
    Tell,
}

impl WorkerState {
    pub(super) fn new(plan: Plan, start: &Start) -> Self {
        let options = &plan.options;
        let work_steps = spin::steps_of(options.work_ns);
        let (max_head, max_body) = (options.max_request_bytes, options.max_body_bytes);
        let rules = Rules { max_head, max_body, work_steps };
        Self {
            shared: Arc::clone(start.shared),
            index: start.index,
            usage: UsageMeter::new(start.cpu),
            connections: Slab::default(),
            scratch: Scratch::new(rules),
            counts: Counts::default(),
            now_ns: clock::now_ns(),
            paused_until_ns: None,
            sweep_at: 0,
            next_sweep_ns: 0,
            plan,
        }
    }

    /// Shows the counters to others.
    #[inline]
    pub(super) fn publish(&mut self) {
        let tally = &self.shared.tallies[self.index];
        self.counts.publish(tally, self.connections.count());
        self.usage.note_cpu(tally);
    }

    /// Whether another connection may be accepted.
    pub(super) fn has_room(&self) -> bool {
        self.plan.open.load(Relaxed) < self.plan.max_connections
    }

    /// Takes a connection in.
    pub(super) fn welcome(&mut self, conn: Conn) -> Token {
        self.counts.accepted += 1;
        self.plan.open.fetch_add(1, Relaxed);
        if self.counts.napi.0 < NAPI_LOOKS {
            self.look_at_napi(&conn);
        }
        self.connections.insert(conn)
    }

    /// Whether the connection came through a device that can be polled.
    #[cold]
    fn look_at_napi(&mut self, conn: &Conn) {
        if let Ok(id) = conn.socket.get(libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID) {
            self.counts.calls += 1;
            self.counts.napi.0 += 1;
            self.counts.napi.1 += u64::from(id != 0);
        }
    }

    /// Takes a connection out and closes it.
    pub(super) fn dismiss(&mut self, token: Token, why: CloseReason) {
        let Some(conn) = self.connections.remove(token) else { return };
        drop(conn);
        self.counts.calls += 1;
        self.counts.closed(why);
        self.plan.open.fetch_sub(1, Relaxed);
        // There is room again.
        if let Some(until) = &mut self.paused_until_ns {
            *until = 0;
        }
    }

    /// Delays accepting.
    #[cold]
    pub(super) fn pause(&mut self, why: &str) {
        *self.counts.pauses.entry(why.to_owned()).or_default() += 1;
        self.paused_until_ns = Some(clock::now_ns() + PAUSE_NS);
    }

    /// Whether a pause of accepting is over.
    pub(super) fn pause_is_over(&self) -> bool {
        self.paused_until_ns.is_some_and(|until| until <= self.now_ns) && self.has_room()
    }

    /// How a connection ends after what its dialogue said.
    #[inline]
    pub(super) fn end(next: ConnectionAction, is_refused: bool) -> End {
        let why = if is_refused { CloseReason::Refused } else { CloseReason::Asked };
        match next {
            ConnectionAction::Open => End::Open,
            ConnectionAction::Close => End::Close(why),
            ConnectionAction::Linger => End::Linger(why),
        }
    }

    /// Looks for connections whose time is over, some slots at a time; gives them to the engine.
    #[inline]
    pub(super) fn overdue(&mut self, found: &mut Vec<(Token, Overdue)>) {
        if self.now_ns >= self.next_sweep_ns && self.connections.slots() > 0 {
            self.sweep(found);
        }
    }

    #[cold]
    fn sweep(&mut self, found: &mut Vec<(Token, Overdue)>) {
        let end = (self.sweep_at + SWEEP_SLOTS).min(self.connections.slots());
        for index in self.sweep_at..end {
            if let Some((token, conn)) = self.connections.at(index)
                && let Some(overdue) = self.judge(conn)
            {
                found.push((token, overdue));
            }
        }
        self.sweep_at = end;
        if end == self.connections.slots() {
            self.sweep_at = 0;
            let period_ns = match self.plan.options.idle_timeout_ns {
                0 => LINGER_NS / 4,
                timeout => (timeout / 4).clamp(10_000_000, LINGER_NS / 4),
            };
            self.next_sweep_ns = self.now_ns + period_ns;
        }
    }

    fn judge(&self, conn: &Conn) -> Option<Overdue> {
        let age = self.now_ns.saturating_sub(conn.since_ns);
        let timeout = self.plan.options.idle_timeout_ns;
        match conn.end {
            End::Lingering(why) => (age >= LINGER_NS).then_some(Overdue::Close(why)),
            _ if timeout == 0 || age < timeout => None,
            _ if conn.pending.is_some() => Some(Overdue::Close(CloseReason::NotReading)),
            _ if conn.dialogue.is_within_request() => Some(Overdue::Tell),
            _ => Some(Overdue::Close(CloseReason::Idle)),
        }
    }

    /// Longest wait now: no longer than asked, and not past a sweep or the end of a pause.
    pub(super) fn timeout_ms(&self) -> u16 {
        let mut timeout = self.plan.options.timeout_ms();
        if self.connections.count() > 0 {
            let left = self.next_sweep_ns.saturating_sub(self.now_ns).div_ceil(1_000_000);
            timeout = timeout.min(u16::try_from(left).unwrap_or(u16::MAX));
        }
        if let Some(until) = self.paused_until_ns {
            // Past its end it waits for room, which another thread may make.
            let left = if until > self.now_ns { until - self.now_ns } else { PAUSE_NS };
            timeout = timeout.min(u16::try_from(left.div_ceil(1_000_000)).unwrap_or(u16::MAX));
        }
        timeout
    }

    pub(super) fn report(mut self) -> Report {
        self.publish();
        let counts = self.counts;
        let (usage, blocked_s, runqueue_s) = self.usage.end(&self.shared.tallies[self.index]);
        let thread = ThreadResult {
            usage,
            requests_total: counts.requests(),
            received_bytes: counts.received_bytes,
            sent_bytes: counts.sent_bytes,
            accepted_total: counts.accepted,
            calls_total: counts.calls,
            waits_total: counts.waits,
            events_per_wait: counts.events_per_wait(),
            empty_waits_total: counts.empty_waits,
            wait_s: counts.wait_ns as f64 / 1e9,
            blocked_s,
            runqueue_s,
        };
        Report { thread, counts, connections: self.connections }
    }
}
