//! The loops of an XDP receiver's threads.

use std::io;

use rxpath_bpf::xdp_receive::XdpReceive;

use crate::LoadError;
use crate::engine::xsk::{Arrivals, Frame, Received, Statistics, Xsk};
use crate::engine::{clock, frame};
use crate::pool::Start;
use crate::stall::Stalls;
use crate::udp::result::ThreadResult;
use crate::udp::serve::meter::Meter;
use crate::udp::serve::options::ServeOptions;
use crate::udp::serve::worker::{DRAIN_LIMIT_NS, Report};
use crate::udp::xdp::refused_by_host;
use crate::usage::UsageMeter;

/// Longest wait, after which the stop is looked at.
const WAIT_MS: i32 = 100;
/// Between two looks at the counters of a program that drops: the error of the first and the last instant.
const LOOK_NS: u64 = 2_000_000;

/// The reader's state.
struct Reader<'a> {
    sockets: Vec<(Xsk, Vec<Frame>)>,
    start: &'a Start<'a>,
    usage: UsageMeter,
    stalls: Stalls,
    /// Received and not looked at yet; its capacity is that of a batch.
    batch: Vec<Received>,
    report: Report,
}

/// Reads sockets until told to stop, then drains them.
pub(super) fn run(
    sockets: Vec<(Xsk, Vec<Frame>)>,
    options: &ServeOptions,
    start: &Start,
) -> Result<Report, LoadError> {
    let meter = Meter::new(options.work_ns, &options.sender_clocks);
    let mut reader = Reader {
        sockets,
        start,
        usage: UsageMeter::new(start.cpu),
        stalls: Stalls::new(options.stall),
        batch: Vec::with_capacity(options.batch),
        report: Report { meter, ..Report::default() },
    };
    reader.usage.restart();
    start.ready();
    reader.read_until_stopped().map_err(|e| LoadError::io("poll", e))?;
    let until = clock::now_ns() + DRAIN_LIMIT_NS;
    while reader.read() > 0 && clock::now_ns() < until {}
    reader.report()
}

impl Reader<'_> {
    fn read_until_stopped(&mut self) -> io::Result<()> {
        let mut arrivals = Arrivals::default();
        while !self.start.shared.is_stopped() {
            if self.read() == 0 {
                self.start.tally.calls.add(1);
                arrivals.wait(self.sockets.iter().map(|(xsk, _)| xsk), WAIT_MS)?;
            }
            self.stalls.sleep(self.start.shared);
        }
        Ok(())
    }

    /// Reads at most a batch of each socket; returns how many datagrams.
    #[inline]
    fn read(&mut self) -> u64 {
        let mut all = 0;
        let Report { meter, reads, .. } = &mut self.report;
        for (xsk, free) in &mut self.sockets {
            while self.batch.len() < self.batch.capacity()
                && let Some(received) = xsk.receive()
            {
                self.batch.push(received);
            }
            if self.batch.is_empty() {
                continue;
            }
            // Behind the last one: none was sent later.
            let now_ns = clock::now_ns();
            let (packets, mut bytes) = (self.batch.len() as u64, 0);
            for received in self.batch.drain(..) {
                let data = xsk.data(&received.frame);
                let whole = data.get(received.offset..received.offset + received.len);
                if let Some(payload) = whole.and_then(frame::payload) {
                    bytes += payload.len() as u64;
                    meter.datagram(payload, now_ns);
                } else {
                    // The program lets no such frame through.
                    meter.unnumbered += 1;
                }
                free.push(received.frame);
            }
            xsk.give_back();
            xsk.fill(free);
            meter.flush(now_ns);
            let tally = self.start.tally;
            tally.units.add(packets);
            tally.received_bytes.add(bytes);
            *reads += packets;
            self.usage.progress(tally, now_ns);
            all += packets;
        }
        all
    }

    fn report(self) -> Result<Report, LoadError> {
        let mut xdp = Statistics::default();
        for (xsk, _) in &self.sockets {
            let of_one = xsk.statistics().map_err(|e| LoadError::io("XDP_STATISTICS", e))?;
            xdp.rx_dropped += of_one.rx_dropped;
            xdp.rx_ring_full += of_one.rx_ring_full;
            xdp.fill_ring_empty += of_one.fill_ring_empty;
        }
        let longest_ns = self.stalls.longest_ns;
        let thread = ThreadResult::of_reader(self.usage, self.start.tally, longest_ns);
        Ok(Report { thread, xdp, ..self.report })
    }
}

/// Looks at the counters of a program that drops, until told to stop.
pub(super) fn watch(program: &XdpReceive, start: &Start) -> Result<Report, LoadError> {
    let mut usage = UsageMeter::new(start.cpu);
    usage.restart();
    start.ready();
    let (tally, mut is_last) = (start.tally, false);
    while !is_last {
        is_last = start.shared.is_stopped();
        let counts = program.counts();
        let counts = counts.map_err(|error| refused_by_host("--engine xdp-drop", error))?;
        if counts.dropped > tally.dropped.get() {
            tally.dropped.set(counts.dropped);
            usage.progress(tally, clock::now_ns());
        }
        if !is_last {
            clock::sleep_until(clock::now_ns() + LOOK_NS);
        }
    }
    let thread = ThreadResult::of_reader(usage, tally, 0);
    Ok(Report { thread, ..Report::default() })
}
