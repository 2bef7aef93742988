//! Time taken from a thread that wants its CPU all the time: a loop that reads the clock and adds up the gaps.
//!
//! What interrupts and softirqs cost is booked on whoever they interrupt, by ticks, and mostly wrong; parts of an
//! interrupt lie outside every tracepoint. A loop that does nothing but look at the clock misses exactly the time that
//! it did not get. Gaps are counted from 300 ns on: below is the loop itself.
//!
//! **Cost** one CPU for as long as it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rxpath_host::counter::Width;
use rxpath_host::procfs::softnet;
use rxpath_host::{HostError, Root, thread};
use rxpath_load::engine::clock;

/// Shorter gaps are the loop's own.
const GAP_NS: u64 = 300;
/// Readings of the clock between two looks at the order to stop.
const TURNS: u32 = 64;

/// A running meter.
#[derive(Debug)]
pub struct Meter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Reading, HostError>>,
}

/// What it saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Time that it ran.
    pub span_ns: u64,
    /// Of it, the time that it did not get.
    pub stolen_ns: u64,
    /// Gaps.
    pub gaps_count: u64,
    /// Packets that went through the CPU's receive softirq meanwhile.
    pub packets: u64,
    /// Interrupts by which RPS woke the CPU meanwhile; `None` where the kernel does not tell.
    pub rps_interrupts_count: Option<u64>,
    /// One reading of the clock, in ns.
    pub clock_ns: f64,
}

impl Reading {
    /// Share of the time that was taken.
    pub fn stolen_ratio(&self) -> f64 {
        self.stolen_ns as f64 / self.span_ns.max(1) as f64
    }

    /// Per second.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.span_ns.max(1) as f64
    }
}

impl Meter {
    /// Starts it on `cpu`.
    pub fn start(cpu: u32) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let order = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("rxpath-meter".into())
            .spawn(move || measure(cpu, &order))?;
        Ok(Self { stop, thread })
    }

    /// Stops it and gives what it saw; `None` when its thread could not run to its end.
    pub fn finish(self) -> Result<Option<Reading>, HostError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().ok().transpose()
    }
}

fn measure(cpu: u32, stop: &AtomicBool) -> Result<Reading, HostError> {
    thread::pin(cpu)?;
    // Against threads only; softirqs and interrupts come anyway. Without the right to, the gaps may hold other threads.
    let _ = thread::set_nice(thread::current_tid(), -20);
    let root = Root::host();
    let before = line(&root, cpu)?;
    let begun = clock::now_ns();
    let (mut last, mut stolen_ns, mut gaps_count, mut turns) = (begun, 0, 0, 0_u64);
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..TURNS {
            let now = clock::now_ns();
            if now - last > GAP_NS {
                stolen_ns += now - last;
                gaps_count += 1;
            }
            last = now;
        }
        turns += u64::from(TURNS);
    }
    let after = line(&root, cpu)?;
    let span_ns = last - begun;
    // A 32-bit counter cannot go around twice in the time that a meter runs.
    let wide = |now: u32, then: u32| Width::U32.step(then.into(), now.into()).moved().unwrap_or(0);
    Ok(Reading {
        span_ns,
        stolen_ns,
        gaps_count,
        packets: wide(after.processed, before.processed),
        rps_interrupts_count: after
            .received_rps
            .zip(before.received_rps)
            .map(|(now, then)| wide(now, then)),
        clock_ns: (span_ns - stolen_ns) as f64 / turns.max(1) as f64,
    })
}

fn line(root: &Root, cpu: u32) -> Result<softnet::CpuLine, HostError> {
    let lines = softnet::read(root)?;
    let line = lines.into_iter().find(|(of, _)| *of == cpu).map(|(_, line)| line);
    line.ok_or_else(|| HostError::Missing { path: softnet::PATH.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_sees_its_own_time_and_no_more() {
        let cpu = thread::allowed_cpus().unwrap().0[0];
        let meter = Meter::start(cpu).unwrap();
        // Some work of this thread's own; where there is one CPU it takes it from the meter.
        let until = clock::now_ns() + 20_000_000;
        while clock::now_ns() < until {}
        let got = meter.finish().unwrap().unwrap();
        assert!(got.stolen_ns <= got.span_ns, "{got:?}");
        assert!(got.span_ns == 0 || got.clock_ns > 0.0, "{got:?}");
    }
}
