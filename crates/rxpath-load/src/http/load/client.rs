//! One thread's connections: which request leaves when, and what its reply means. Engines move the bytes.

mod ending;

use std::collections::VecDeque;

use nix::errno::Errno;

use crate::engine::socket::Socket;
use crate::http::load::conn::{Conn, Phase};
use crate::http::load::message::Message;
use crate::http::load::meter::{Kind, Meter, SAMPLE_NS, Stamp};
use crate::http::load::wire::{Sent, Wire};
use crate::http::response::{Known, Reply};
use crate::pace::Pace;
use crate::tally::Shared;

/// Connections of a thread that may be in progress at once: more would only fill the server's queue of
/// connections (nginx: 511, net.core.somaxconn: 4096), and what overflows it waits a second for its next try.
const MAX_CONNECTING: usize = 128;

/// What the threads get.
#[derive(Clone, Debug)]
pub(super) struct ClientConfig<'a> {
    pub(super) message: &'a Message,
    pub(super) shared: &'a Shared,
    pub(super) connections: usize,
    pub(super) pipeline: usize,
    pub(super) keepalive: bool,
    pub(super) timeout_ns: u64,
    pub(super) end_ns: u64,
    /// Requests to start, at most.
    pub(super) requests: u64,
    /// Time of nothing but failures after which a run without an end in time gives up.
    pub(super) give_up_ns: u64,
}

/// A connection that could take a request.
#[derive(Clone, Copy, Debug)]
struct Idle {
    slot: usize,
    since_ns: u64,
}

/// One thread's connections.
pub(super) struct Client<'a, W> {
    pub(super) wire: W,
    pub(super) meter: Meter<'a>,
    pub(super) conns: Vec<Conn>,
    pub(super) now_ns: u64,
    config: ClientConfig<'a>,
    /// A ring of `pipeline` stamps for each connection.
    stamps: Vec<Stamp>,
    idle: VecDeque<Idle>,
    to_connect: VecDeque<usize>,
    connecting: usize,
    pub(super) pace: Option<Pace>,
    known: Known,
    next_timer_ns: u64,
    in_flight: u64,
    left: u64,
    /// Since when nothing but failures happened; 0 = not so.
    failing_since_ns: u64,
    gave_up: bool,
}

/// What is left when a thread ends.
#[derive(Debug, Default)]
pub(super) struct Remains {
    /// Requests by the schedule; equal to those begun without one.
    pub(super) target: u64,
    /// Requests that were given to a connection.
    pub(super) begun: u64,
    /// Requests sent whose reply had not come.
    pub(super) in_flight: u64,
    /// The server gave nothing but failures, and no time would have ended the run.
    pub(super) gave_up: bool,
    /// Sockets, open until the results were read.
    pub(super) sockets: Vec<Socket>,
}

impl<'a, W: Wire> Client<'a, W> {
    pub(super) fn new(wire: W, meter: Meter<'a>, config: ClientConfig<'a>) -> Self {
        let ClientConfig { connections, pipeline, requests: left, .. } = config;
        Self {
            wire,
            meter,
            conns: (0..connections).map(|_| Conn::new(config.message.bodiless)).collect(),
            now_ns: 0,
            config,
            stamps: vec![Stamp::default(); connections * pipeline],
            idle: VecDeque::with_capacity(connections * pipeline),
            to_connect: VecDeque::with_capacity(connections),
            connecting: 0,
            pace: None,
            known: Known::new(),
            next_timer_ns: 0,
            in_flight: 0,
            left,
            failing_since_ns: 0,
            gave_up: false,
        }
    }

    /// Begins at this instant; with a schedule in an open loop.
    pub(super) fn start(&mut self, start_ns: u64, end_ns: u64, pace: Option<Pace>) {
        self.config.end_ns = end_ns;
        self.now_ns = start_ns.max(self.wire.now_ns());
        self.pace = pace;
        for slot in 0..self.conns.len() {
            self.make_ready(slot);
        }
    }

    /// Whether the loop is to end.
    pub(super) fn is_over(&self) -> bool {
        self.config.shared.is_stopped()
            || self.now_ns >= self.config.end_ns
            || (self.left == 0 && self.in_flight == 0)
            || self.gave_up
    }

    /// What is due: timers, connections, requests. Returns for how long the engine may wait; 0 = look and come back.
    pub(super) fn turn(&mut self) -> u64 {
        if self.now_ns >= self.next_timer_ns {
            self.timers();
        }
        self.connect_more();
        self.dispatch();
        let until = self.next_timer_ns.min(self.config.end_ns);
        let until = match &self.pace {
            Some(pace) if self.left > 0 && (pace.spin_only || !self.idle.is_empty()) => {
                pace.nap_until(self.now_ns, self.config.end_ns).unwrap_or(0).min(until)
            }
            _ => until,
        };
        until.saturating_sub(self.now_ns)
    }

    /// Does what is due until the engine has something to wait or look for, and says how long; `None` = it is over.
    #[inline]
    pub(super) fn next_wait_ns(&mut self) -> Option<u64> {
        while !self.is_over() {
            let wait_ns = self.turn();
            if wait_ns > 0 || self.in_flight > 0 || self.connecting > 0 {
                return Some(wait_ns);
            }
            // Only the clock can change something: a poll would be a useless call.
            std::hint::spin_loop();
            self.now_ns = self.wire.now_ns();
        }
        None
    }

    /// Puts a closed connection where it will be used next.
    fn make_ready(&mut self, slot: usize) {
        self.conns[slot].since_ns = u64::MAX;
        if self.config.keepalive || self.pace.is_none() {
            self.to_connect.push_back(slot);
        } else {
            self.wait_for_request(slot);
        }
    }

    fn wait_for_request(&mut self, slot: usize) {
        self.conns[slot].idle += 1;
        self.idle.push_back(Idle { slot, since_ns: self.now_ns });
    }

    fn connect_more(&mut self) {
        while self.connecting < MAX_CONNECTING && !self.is_over() {
            let Some(slot) = self.to_connect.pop_front() else { return };
            let has_request = self.conns[slot].outstanding > 0;
            if !has_request && self.left == 0 {
                continue;
            }
            if !has_request && !self.config.keepalive && self.pace.is_none() {
                // The request begins with its connection.
                self.push(slot, self.now_ns);
            }
            self.connect(slot);
        }
    }

    fn connect(&mut self, slot: usize) {
        let conn = &mut self.conns[slot];
        conn.generation = conn.generation.wrapping_add(1);
        conn.phase = Phase::Connecting;
        conn.since_ns = self.now_ns;
        self.connecting += 1;
        // Writability tells, also where it was connected at once.
        if let Err(errno) = self.wire.open(slot, conn.generation) {
            self.fail(slot, Kind::Connect, Some(errno));
        }
    }

    /// The socket of a connecting slot has become writable, or broke.
    pub(super) fn connected(&mut self, slot: usize) {
        self.now_ns = self.wire.now_ns();
        if let Err(errno) = self.wire.outcome(slot) {
            return self.fail(slot, Kind::Connect, Some(errno));
        }
        let conn = &mut self.conns[slot];
        self.connecting -= 1;
        conn.phase = Phase::Open;
        self.meter.connect.record(self.now_ns - conn.since_ns);
        self.meter.live.opened.add(1);
        conn.unsent = conn.outstanding * self.config.message.len;
        if conn.again {
            self.meter.live.resent.add(conn.outstanding as u64);
        } else if conn.outstanding > 0 {
            self.meter.sent(conn.outstanding as u64, self.now_ns);
        }
        conn.again = false;
        for nth in 0..conn.outstanding {
            let at = slot * self.config.pipeline + (conn.oldest + nth) % self.config.pipeline;
            self.stamps[at].sent_ns = self.now_ns;
        }
        if self.config.keepalive {
            self.free(slot, self.config.pipeline - self.conns[slot].outstanding);
        }
        self.flush(slot);
    }

    /// A connection can take this many more requests.
    fn free(&mut self, slot: usize, requests: usize) {
        for _ in 0..requests {
            if self.pace.is_some() {
                self.wait_for_request(slot);
            } else if self.left > 0 && self.now_ns < self.config.end_ns {
                self.add(slot, self.now_ns);
            }
        }
    }

    /// One more request for an open connection.
    #[inline]
    fn add(&mut self, slot: usize, intended_ns: u64) {
        self.push(slot, intended_ns);
        self.conns[slot].unsent += self.config.message.len;
        self.meter.sent(1, self.now_ns);
    }

    #[inline]
    fn push(&mut self, slot: usize, intended_ns: u64) {
        let conn = &mut self.conns[slot];
        let at =
            slot * self.config.pipeline + (conn.oldest + conn.outstanding) % self.config.pipeline;
        self.stamps[at] = Stamp { intended_ns, sent_ns: self.now_ns };
        conn.outstanding += 1;
        self.in_flight += 1;
        self.left -= 1;
    }

    /// Requests that are due go to connections that are free.
    fn dispatch(&mut self) {
        while let Some(pace) = &mut self.pace
            && self.left > 0
            && pace.next_ns <= self.now_ns.min(self.config.end_ns - 1)
            && let Some(idle) = self.idle.pop_front()
        {
            let intended_ns = pace.next_ns;
            pace.advance();
            self.conns[idle.slot].idle -= 1;
            self.meter.lateness.record(self.now_ns.saturating_sub(intended_ns.max(idle.since_ns)));
            if self.config.keepalive {
                self.add(idle.slot, intended_ns);
                self.flush(idle.slot);
            } else {
                self.push(idle.slot, intended_ns);
                self.connect(idle.slot);
            }
            self.now_ns = self.wire.now_ns();
        }
    }

    /// Hands unsent bytes to the kernel.
    #[inline]
    pub(super) fn flush(&mut self, slot: usize) {
        loop {
            let conn = &mut self.conns[slot];
            if conn.unsent == 0 || conn.sending {
                return;
            }
            let range = conn.at..conn.at + conn.unsent;
            match self.wire.send(slot, conn.generation, self.config.message, range) {
                Sent::Bytes(bytes) => self.sent(slot, bytes),
                Sent::Later => {
                    conn.sending = true;
                    return;
                }
                Sent::Full => return,
                Sent::Failed(errno) => return self.fail(slot, Kind::Write, Some(errno)),
            }
        }
    }

    /// The kernel took this many bytes.
    #[inline]
    pub(super) fn sent(&mut self, slot: usize, bytes: usize) {
        let conn = &mut self.conns[slot];
        conn.sending = false;
        conn.unsent -= bytes;
        conn.at = if conn.unsent == 0 { 0 } else { (conn.at + bytes) % self.config.message.len };
        self.meter.tally.sent_bytes.add(bytes as u64);
    }

    /// Bytes came.
    #[inline]
    pub(super) fn received(&mut self, slot: usize, bytes: &[u8]) {
        self.now_ns = self.wire.now_ns();
        self.meter.tally.received_bytes.add(bytes.len() as u64);
        let mut rest = bytes;
        let mut replies = 0;
        while !rest.is_empty() {
            let conn = &mut self.conns[slot];
            if conn.outstanding == 0 {
                return self.fail(slot, Kind::Malformed, None);
            }
            match conn.reader.feed(rest, &mut self.known) {
                Ok(None) => break,
                Ok(Some((used, reply))) => {
                    rest = &rest[used..];
                    replies += 1;
                    self.reply(slot, reply);
                    if reply.close || !self.config.keepalive {
                        return self.renew(slot);
                    }
                }
                Err(_) => return self.fail(slot, Kind::Malformed, None),
            }
        }
        if replies > 0 {
            self.free(slot, replies);
            if self.pace.is_some() {
                self.dispatch();
            } else {
                self.flush(slot);
            }
        }
    }

    #[inline]
    fn reply(&mut self, slot: usize, reply: Reply) {
        let conn = &mut self.conns[slot];
        let stamp = self.stamps[slot * self.config.pipeline + conn.oldest];
        conn.oldest = if conn.oldest + 1 < self.config.pipeline { conn.oldest + 1 } else { 0 };
        conn.outstanding -= 1;
        conn.failures = 0;
        self.failing_since_ns = 0;
        self.in_flight -= 1;
        self.meter.reply(stamp, reply, self.now_ns);
        self.meter.tally.last_ns.set(self.now_ns);
    }

    /// Timeouts, ends of pauses, samples.
    #[cold]
    fn timers(&mut self) {
        let now_ns = self.now_ns;
        let timeout_ns = self.config.timeout_ns;
        self.next_timer_ns = now_ns + (timeout_ns / 4).clamp(1_000_000, SAMPLE_NS);
        for slot in 0..self.conns.len() {
            let conn = &self.conns[slot];
            match conn.phase {
                Phase::Closed if conn.since_ns <= now_ns => self.make_ready(slot),
                Phase::Closed => self.next_timer_ns = self.next_timer_ns.min(conn.since_ns),
                Phase::Connecting if now_ns - conn.since_ns.min(now_ns) >= timeout_ns => {
                    self.fail(slot, Kind::Connect, Some(Errno::ETIMEDOUT));
                }
                Phase::Open if conn.outstanding > 0 => {
                    let stamp = self.stamps[slot * self.config.pipeline + conn.oldest];
                    if now_ns.saturating_sub(stamp.sent_ns) >= timeout_ns {
                        self.fail(slot, Kind::Timeout, None);
                    }
                }
                _ => {}
            }
        }
        self.meter.sample(now_ns);
        self.meter.usage.note_cpu(self.meter.tally);
        self.meter.tally.calls.set(self.wire.sockets().calls);
    }

    /// Ends: what was asked for and not answered.
    pub(super) fn remains(&mut self) -> Remains {
        self.meter.tally.calls.set(self.wire.sockets().calls);
        let begun = self.config.requests - self.left;
        let target = self.pace.map_or(begun, |pace| {
            pace.due_before(self.now_ns.min(self.config.end_ns)).min(self.config.requests)
        });
        let (in_flight, gave_up) = (self.in_flight, self.gave_up);
        Remains { target, begun, in_flight, gave_up, sockets: self.wire.sockets().take() }
    }
}
