//! The send loop of one thread.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use crate::LoadError;
use crate::engine::{clock, thread};
use crate::pace::{Pace, wait_for_start};
use crate::pool::Start;
use crate::tally::Tally;
use crate::udp::header::Stamp;
use crate::udp::load::fill::Layout;
use crate::udp::load::options::LoadOptions;
use crate::udp::load::transmit::Transmit;
use crate::udp::result::{FramesLedger, ThreadResult, XdpLedger};
use crate::usage::UsageMeter;
use rxpath_stats::Histogram;

/// How long beyond its end a sender waits for room.
const PATIENCE_NS: u64 = 2_000_000_000;

/// What a worker needs.
pub(super) struct Plan<F> {
    pub(super) flows: Vec<F>,
    /// Stream number and next sequence number of each flow.
    pub(super) streams: Vec<(u32, u64)>,
    pub(super) options: LoadOptions,
    /// Messages to send, at most.
    pub(super) messages: u64,
}

/// What a worker saw.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) thread: ThreadResult,
    pub(super) target: u64,
    pub(super) refused: u64,
    pub(super) hidden: u64,
    pub(super) errors: BTreeMap<i32, u64>,
    pub(super) lateness: Histogram,
    /// What the device did with frames.
    pub(super) frames: Option<FramesLedger>,
    /// What AF_XDP sockets said.
    pub(super) xdp: Option<XdpLedger>,
    /// Stream number and attempted datagrams of each flow, which is its next sequence number; none where the kernel sends
    /// by itself.
    pub(super) streams: Vec<(u32, u64)>,
}

/// Runs until the count, the time or an order ends it.
pub(super) fn run<T: Transmit>(plan: Plan<T::Flow>, start: &Start) -> Result<Report, LoadError> {
    thread::set_exact_timers();
    let mut sender = Sender::<T>::new(plan, start)?;
    // CPU time counts from just before the last sleep, which takes none. Set-up is not in it. Up to 100 us of spinning are.
    start.ready();
    if let Some(start_ns) = wait_for_start(start.shared, || sender.usage.restart()) {
        sender.send_until_stopped(start_ns)?;
    }
    let (uncounted, xdp) = sender.engine.finish();
    sender.settle(uncounted);
    Ok(sender.report(xdp))
}

/// The loop's state.
struct Sender<'a, T> {
    options: LoadOptions,
    layout: Layout,
    messages: u64,
    engine: T,
    start: &'a Start<'a>,
    tally: &'a Tally,
    usage: UsageMeter,
    /// The schedule of a start at 0; `None` in a flood.
    pace: Option<Pace>,
    clock: u16,
    sent_messages: u64,
    target_messages: Option<u64>,
    report: Report,
    /// Instant from which on nobody waits for room: a device that takes nothing must not hold the sender's end up.
    give_up_ns: u64,
}

impl<'a, T: Transmit> Sender<'a, T> {
    fn new(plan: Plan<T::Flow>, start: &'a Start<'a>) -> Result<Self, LoadError> {
        let Plan { flows, streams, options, messages } = plan;
        let layout = Layout { size: options.size, segments: options.segments() };
        let share = |rate_pps| start.share(rate_pps, layout.segments);
        let pace = options.rate_pps.map(|rate| Pace::new(0, share(rate), options.pacing));
        let mut engine = T::new(flows, &options)?;
        layout.prepare(&mut engine, options.batch);
        Ok(Self {
            clock: options.clock(),
            options,
            layout,
            messages,
            engine,
            start,
            tally: start.tally,
            usage: UsageMeter::new(start.cpu),
            pace,
            sent_messages: 0,
            target_messages: None,
            report: Report { streams, ..Report::default() },
            give_up_ns: u64::MAX,
        })
    }

    fn send_until_stopped(&mut self, start_ns: u64) -> Result<(), LoadError> {
        let options = &self.options;
        let end_ns = options.duration_ns.map_or(u64::MAX, |span| start_ns.saturating_add(span));
        self.give_up_ns = end_ns.saturating_add(PATIENCE_NS);
        let mut pace = self.pace.map(|pace| pace.starting_at(start_ns));
        let mut now_ns = clock::now_ns();
        let mut flow = 0;
        while now_ns < end_ns && self.sent_messages < self.messages {
            if self.start.shared.is_stopped() {
                break;
            }
            let room = (self.messages - self.sent_messages).min(self.options.batch as u64);
            let due = match &mut pace {
                Some(pace) => self.due(pace, room, now_ns.min(end_ns - 1)),
                None => room,
            };
            if due == 0 {
                if let Some(pace) = &pace {
                    pace.wait(now_ns, end_ns);
                }
                now_ns = clock::now_ns();
                continue;
            }
            self.send(flow, due as usize, now_ns)?;
            flow = if flow + 1 < self.report.streams.len() { flow + 1 } else { 0 };
            now_ns = self.tally.last_ns.get();
        }
        self.target_messages = pace.map(|pace| {
            let all_sent = self.sent_messages == self.messages;
            let due = pace.due_before(clock::now_ns().min(end_ns));
            if all_sent { self.sent_messages } else { due.min(self.messages) }
        });
        Ok(())
    }

    /// Sends that are due by now, at most `room`; notes how late each is.
    #[inline]
    fn due(&mut self, pace: &mut Pace, room: u64, now_ns: u64) -> u64 {
        let mut due = 0;
        while due < room && pace.next_ns <= now_ns {
            let late_ns = now_ns - pace.next_ns;
            self.report.lateness.record_n(late_ns, self.layout.segments as u64);
            pace.advance();
            due += 1;
        }
        due
    }

    /// Sends `messages` messages of one flow, all of them unless told to stop.
    #[inline]
    fn send(&mut self, flow: usize, messages: usize, now_ns: u64) -> Result<(), LoadError> {
        let layout = self.layout;
        let (stream, sequence) = self.report.streams[flow];
        let stamp = Stamp::new(stream, self.clock, now_ns);
        layout.fill(&mut self.engine, messages, stamp, sequence);
        self.engine.address(flow, messages);
        self.tally.begin(now_ns);
        let tried = self.push(flow, messages)?;
        self.report.streams[flow].1 += (tried * layout.segments) as u64;
        self.sent_messages += tried as u64;
        self.usage.progress(self.tally, clock::now_ns());
        Ok(())
    }

    /// Hands messages to the kernel until all were taken or refused; returns how many.
    #[inline]
    fn push(&mut self, flow: usize, messages: usize) -> Result<usize, LoadError> {
        let (mut from, mut short) = (0, false);
        while from < messages {
            self.tally.calls.add(1);
            match self.engine.send(flow, from, messages) {
                Ok(n) => {
                    self.report.hidden += u64::from(short);
                    from += n;
                    short = T::HIDES_ERRORS && from < messages;
                    self.count(n, 0);
                }
                Err(error) => {
                    short = false;
                    if !self.after_error(flow, &error)? {
                        from += 1;
                    }
                    if self.start.shared.is_stopped() || clock::now_ns() > self.give_up_ns {
                        break;
                    }
                }
            }
        }
        Ok(from)
    }

    #[inline]
    fn count(&self, sent: usize, failed: usize) {
        let layout = self.layout;
        let packets = (sent * layout.segments) as u64;
        self.tally.offered.add(packets + (failed * layout.segments) as u64);
        self.tally.units.add(packets);
        self.tally.sent_bytes.add(packets * layout.size as u64);
    }

    /// What an error means: true = try the same message again, false = it is lost and counted.
    #[cold]
    fn after_error(&mut self, flow: usize, error: &io::Error) -> Result<bool, LoadError> {
        match error.kind() {
            ErrorKind::WouldBlock => return self.wait_for_room(flow).map(|()| true),
            ErrorKind::Interrupted => return Ok(true),
            // The answer to an earlier datagram; this one was not tried.
            ErrorKind::ConnectionRefused => {
                self.report.refused += 1;
                return Ok(true);
            }
            _ => {}
        }
        let Some(number) = error.raw_os_error() else {
            // An engine's own words: it cannot go on.
            return Err(LoadError::io("send", io::Error::other(error.to_string())));
        };
        if [libc::EINVAL, libc::EMSGSIZE, libc::EBADF, libc::EFAULT, libc::EOPNOTSUPP]
            .contains(&number)
        {
            return Err(LoadError::io("send", io::Error::from_raw_os_error(number)));
        }
        *self.report.errors.entry(number).or_default() += self.layout.segments as u64;
        self.count(0, 1);
        Ok(false)
    }

    /// Waits for room in the send buffer and notes for how long.
    fn wait_for_room(&mut self, flow: usize) -> Result<(), LoadError> {
        let start = clock::now_ns();
        while !self.start.shared.is_stopped()
            && clock::now_ns() < self.give_up_ns
            && !self.engine.wait_for_room(flow).map_err(|e| LoadError::io("poll", e))?
        {}
        self.tally.blocked_ns.add(clock::now_ns() - start);
        Ok(())
    }

    /// Counts what the kernel took and no send has counted, or takes from the count what it never took.
    fn settle(&mut self, uncounted: i64) {
        let size = self.layout.size as u64;
        self.count(uncounted.max(0) as usize, 0);
        let never = uncounted.min(0).unsigned_abs();
        if never > 0 {
            self.tally.units.set(self.tally.units.get() - never);
            self.tally.sent_bytes.set(self.tally.sent_bytes.get() - never * size);
            *self.report.errors.entry(libc::ETIMEDOUT).or_default() += never;
        }
    }

    fn report(self, xdp: Option<XdpLedger>) -> Report {
        let tally = self.tally;
        let segments = self.layout.segments as u64;
        let target = self.target_messages.map(|messages| messages * segments);
        Report {
            thread: ThreadResult {
                usage: self.usage.end(tally).0,
                packets: tally.units.get(),
                calls_count: tally.calls.get(),
                blocked_s: tally.blocked_ns.get() as f64 / 1e9,
                longest_away_us: 0.0,
            },
            target: target.unwrap_or(tally.offered.get()),
            xdp,
            ..self.report
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::resource::{UsageWho, getrusage};

    use super::*;
    use crate::pool::{Pool, Threads};
    use crate::udp::load::transmit::socket::UdpSockets;
    use crate::values::defaults;

    /// Page faults of this thread that needed no disk.
    fn page_faults() -> i64 {
        getrusage(UsageWho::RUSAGE_THREAD).unwrap().minor_page_faults()
    }

    #[test]
    fn noting_how_late_a_send_is_waits_for_no_page() {
        let mut pool = Pool::new("test", &Threads::default());
        let work = |start: &Start| -> Result<i64, LoadError> {
            let mut options: LoadOptions = defaults("127.0.0.1:9").unwrap();
            options.rate_pps = Some(1_000);
            let plan = Plan { flows: Vec::new(), streams: Vec::new(), options, messages: 0 };
            let mut sender = Sender::<UdpSockets>::new(plan, start)?;
            start.ready();
            sender.report.lateness.record_n(1, 1);
            let before = page_faults();
            // Each is in a page of its own.
            for bits in 11..35 {
                sender.report.lateness.record_n(1 << bits, 1);
            }
            Ok(page_faults() - before)
        };
        pool.start(work).unwrap();
        let faults = pool.join().unwrap().remove(0);
        assert!(faults < 12, "{faults} page faults");
    }
}
