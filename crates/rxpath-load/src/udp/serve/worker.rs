//! The receive loop of one thread.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::LoadError;
use crate::engine::batch::RecvBatch;
use crate::engine::socket::Socket;
use crate::engine::xsk::Statistics;
use crate::engine::{clock, thread};
use crate::pool::Start;
use crate::stall::Stalls;
use crate::tally::Tally;
use crate::udp::result::ThreadResult;
use crate::udp::serve::meter::Meter;
use crate::udp::serve::options::ServeOptions;
use crate::udp::serve::truesize::Truesize;
use crate::usage::UsageMeter;

/// Draining ends here even when datagrams keep coming: senders that do not stop must not hold us.
pub(super) const DRAIN_LIMIT_NS: u64 = 2_000_000_000;

/// What a worker needs.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) socket: Arc<Socket>,
    /// No other thread reads this socket.
    pub(super) alone: bool,
    pub(super) buffer_bytes: usize,
    pub(super) options: ServeOptions,
}

/// What a worker saw.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) thread: ThreadResult,
    pub(super) meter: Meter,
    pub(super) truncated: u64,
    pub(super) reads: u64,
    pub(super) truesize: Option<u64>,
    /// Counters of its AF_XDP sockets.
    pub(super) xdp: Statistics,
}

/// Runs until told to stop, then drains.
pub(super) fn run(plan: &Plan, start: &Start) -> Result<Report, LoadError> {
    let mut reader = Reader::new(plan, start);
    if plan.options.nap_ns.is_some() {
        thread::set_exact_timers();
    }
    reader.usage.restart();
    start.ready();
    let ended = reader.read_until_stopped().and_then(|()| reader.drain());
    ended.map_err(|e| LoadError::io("recvmmsg", e))?;
    Ok(reader.report())
}

/// After this many naps without a datagram the traffic has stopped: wait for it without taking CPU time.
const IDLE_NAPS: u32 = 100;

/// The loop's state.
struct Reader<'a> {
    plan: &'a Plan,
    start: &'a Start<'a>,
    tally: &'a Tally,
    usage: UsageMeter,
    batch: RecvBatch,
    ancillary: bool,
    truesize: Truesize,
    stalls: Stalls,
    report: Report,
    /// Naps in a row without a datagram.
    idle_naps: u32,
}

impl<'a> Reader<'a> {
    fn new(plan: &'a Plan, start: &'a Start<'a>) -> Self {
        let ancillary = plan.options.gro || plan.options.stamps;
        let meter = Meter::new(plan.options.work_ns, &plan.options.sender_clocks);
        Self {
            plan,
            start,
            tally: start.tally,
            usage: UsageMeter::new(start.cpu),
            batch: RecvBatch::new(plan.options.batch, plan.buffer_bytes, ancillary),
            ancillary,
            truesize: Truesize::new(plan.alone),
            stalls: Stalls::new(plan.options.stall),
            report: Report { meter, ..Report::default() },
            idle_naps: 0,
        }
    }

    fn read_until_stopped(&mut self) -> io::Result<()> {
        while !self.start.shared.is_stopped() {
            let nap_ns = self.plan.options.nap_ns;
            let got = if self.truesize.learning() {
                self.receive_learning()
            } else {
                self.receive(nap_ns.is_none() || self.idle_naps > IDLE_NAPS)
            };
            self.idle_naps = if got.is_ok() { 0 } else { self.idle_naps.saturating_add(1) };
            let emptied = !matches!(got, Ok(n) if n >= self.plan.options.batch);
            match got {
                Ok(n) => self.take(n),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
            if let (Some(nap_ns), true) = (nap_ns, emptied) {
                self.nap(nap_ns);
            }
            self.stalls.sleep(self.start.shared);
        }
        Ok(())
    }

    /// Reads what is queued, up to EAGAIN.
    fn drain(&mut self) -> io::Result<()> {
        let until = clock::now_ns() + DRAIN_LIMIT_NS;
        while clock::now_ns() < until {
            match self.receive(false) {
                Ok(n) => self.take(n),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self, block: bool) -> io::Result<usize> {
        if self.plan.options.batch == 1 {
            self.batch.receive_one(&self.plan.socket, block)
        } else {
            self.batch.receive(&self.plan.socket, block)
        }
    }

    /// The same, and reads the socket's memory before and after.
    #[cold]
    fn receive_learning(&mut self) -> io::Result<usize> {
        if !self.plan.socket.wait(libc::POLLIN, 100)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let before = self.plan.socket.meminfo()?.rmem;
        let got = self.receive(false)?;
        self.truesize.saw(before.into(), got, self.plan.socket.meminfo()?.rmem.into());
        Ok(got)
    }

    /// Counts a batch.
    #[inline]
    fn take(&mut self, n: usize) {
        let now_ns = clock::now_ns();
        let (packets, bytes) = if self.ancillary {
            self.take_aggregates(n, now_ns)
        } else {
            self.take_plain(n, now_ns)
        };
        self.report.meter.flush(now_ns);
        self.report.reads += n as u64;
        let tally = self.tally;
        tally.units.add(packets);
        tally.received_bytes.add(bytes);
        tally.calls.add(1);
        self.usage.progress(tally, now_ns);
    }

    #[inline]
    fn take_plain(&mut self, n: usize, now_ns: u64) -> (u64, u64) {
        let mut bytes = 0;
        for i in 0..n {
            let (len, data) = (self.batch.len(i), self.batch.data(i));
            bytes += len as u64;
            self.report.truncated += u64::from(data.len() < len);
            self.report.meter.datagram(data, now_ns);
        }
        (n as u64, bytes)
    }

    /// The same for reads that may hold many datagrams or carry a stamp.
    fn take_aggregates(&mut self, n: usize, now_ns: u64) -> (u64, u64) {
        let realtime_ns = if self.plan.options.stamps { clock::realtime_ns() } else { 0 };
        let (mut packets, mut bytes) = (0, 0);
        let Report { meter, truncated, .. } = &mut self.report;
        for i in 0..n {
            let found = self.batch.ancillary(i);
            let (len, data) = (self.batch.len(i), self.batch.data(i));
            bytes += len as u64;
            *truncated += u64::from(data.len() < len);
            let mut segments = 1;
            if found.segment_bytes == 0 || len <= found.segment_bytes {
                meter.datagram(data, now_ns);
            } else {
                segments = len.div_ceil(found.segment_bytes) as u64;
                for payload in data.chunks(found.segment_bytes) {
                    meter.datagram(payload, now_ns);
                }
            }
            packets += segments;
            if found.stamp_ns > 0 {
                meter.wait.record_n(realtime_ns.saturating_sub(found.stamp_ns), segments);
            }
        }
        (packets, bytes)
    }

    /// Lets datagrams gather: a wake-up for each costs the CPU that runs the softirq more than the datagram
    /// does (`try_to_wake_up` and an interrupt to the other CPU), and this thread a switch.
    fn nap(&mut self, nap_ns: u64) {
        let now = clock::now_ns();
        clock::sleep_until(now + nap_ns);
        self.stalls.longest_ns = self.stalls.longest_ns.max(clock::now_ns() - now);
    }

    fn report(self) -> Report {
        let thread = ThreadResult::of_reader(self.usage, self.tally, self.stalls.longest_ns);
        Report { thread, truesize: self.truesize.bytes(), ..self.report }
    }
}

/// Errors after which reading goes on: a signal, nothing there, an ICMP error's echo.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::ConnectionRefused
    )
}
