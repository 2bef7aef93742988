//! Time taken from a thread that wants its CPU all the time: a loop that reads the clock and adds up the gaps.
//!
//! What interrupts and softirqs cost is charged to the task that they interrupt, by ticks, and mostly wrong; parts of an
//! interrupt lie outside every tracepoint. A loop that does nothing but look at the clock misses exactly the time that
//! it did not get. Gaps are counted from 300 ns on: below is the loop itself. Gaps from half a millisecond on are set
//! aside, with their time: no pass at the loads of a calibration takes that long, and a hypervisor or another thread does.
//!
//! **Cost** one CPU for as long as it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rxpath_core::{CpuList, SchedClass};
use rxpath_host::read::counter::Width;
use rxpath_host::read::procfs::softnet;
use rxpath_host::read::thread;
use rxpath_host::write::sched;
use rxpath_host::{HostError, Root};
use rxpath_load::engine::clock;
use rxpath_stats::Histogram;

/// Shorter gaps are the loop's own.
const GAP_NS: u64 = 300;
/// Longer gaps have other causes: 64 packets of a poll take a fifth of it.
const FOREIGN_NS: u64 = 500_000;
/// Shorter gaps than this are no interrupt of a virtual machine and hardly one of bare metal.
const INTERRUPT_NS: u64 = 2_000;
/// Readings of the clock between two looks at the order to stop.
const TURNS: u32 = 64;

/// What the meter runs next to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Softirqs and interrupts, which take the CPU from every thread.
    Softirq,
    /// A kernel thread, which must get the CPU whenever it wants it: the meter takes what is left (`SCHED_IDLE`).
    Thread,
}

/// A running meter.
///
/// While it runs, this process's other threads are kept off its CPU: what they take would be counted. The meter has no
/// better nice value than they: under autogroups its weight would take its own process's share of other CPUs away
/// (kernel/sched/fair.c `calc_group_shares`).
#[derive(Debug)]
pub struct Meter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<MeterReading, HostError>>,
    moved: Vec<(i32, CpuList)>,
}

/// What it saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeterReading {
    /// Time that it ran, what was set aside not counted.
    pub span_ns: u64,
    /// Of it, the time that it did not get.
    pub stolen_ns: u64,
    /// Gaps.
    pub gaps_count: u64,
    /// Quartiles of the gaps that an interrupt or more can be: from 2 us on, what was set aside not among them.
    pub gap_quartiles_ns: [u64; 3],
    /// Packets that went through the CPU's receive softirq meanwhile.
    pub packets: u64,
    /// Interrupts by which RPS woke the CPU meanwhile; `None` where the kernel does not tell.
    pub rps_interrupts_count: Option<u64>,
    /// One reading of the clock, in ns.
    pub clock_ns: f64,
}

impl MeterReading {
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
    pub fn start(cpu: u32, beside: Beside) -> std::io::Result<Self> {
        let moved = keep_off(cpu);
        let stop = Arc::new(AtomicBool::new(false));
        let order = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("rxpath-meter".into())
            .spawn(move || measure(cpu, beside, &order))
            .inspect_err(|_| give_back(&moved))?;
        Ok(Self { stop, thread, moved })
    }

    /// Stops it and gives what it saw; `None` when its thread could not run to its end.
    pub fn finish(self) -> Result<Option<MeterReading>, HostError> {
        self.stop.store(true, Ordering::Relaxed);
        let reading = self.thread.join().ok().transpose();
        give_back(&self.moved);
        reading
    }
}

/// Keeps this process's threads off `cpu` and gives where each could run before; none where there is no other CPU.
fn keep_off(cpu: u32) -> Vec<(i32, CpuList)> {
    let tids = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let tids = tids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let one = |tid: i32| {
        let before = thread::affinity(tid).ok().filter(|cpus| cpus.0.contains(&cpu))?;
        let others = CpuList(before.0.iter().copied().filter(|other| *other != cpu).collect());
        if others.is_empty() {
            return None;
        }
        sched::set_affinity(tid, &others).ok()?;
        Some((tid, before))
    };
    tids.filter_map(one).collect()
}

fn give_back(moved: &[(i32, CpuList)]) {
    for (tid, before) in moved {
        // A thread that has ended meanwhile needs nothing.
        let _ = sched::set_affinity(*tid, before);
    }
}

fn measure(cpu: u32, beside: Beside, stop: &AtomicBool) -> Result<MeterReading, HostError> {
    sched::pin(cpu)?;
    if beside == Beside::Thread {
        sched::set_class(0, SchedClass::Idle)?;
    }
    let root = Root::host();
    let before = line(&root, cpu)?;
    let begun = clock::now_ns();
    let (mut last, mut stolen_ns, mut gaps_count, mut turns) = (begun, 0, 0, 0_u64);
    let mut aside_ns = 0;
    let mut gaps = Histogram::of_times();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..TURNS {
            let now = clock::now_ns();
            let gap = now - last;
            if gap > GAP_NS {
                let taken = if gap < FOREIGN_NS { &mut stolen_ns } else { &mut aside_ns };
                *taken += gap;
                if (INTERRUPT_NS..FOREIGN_NS).contains(&gap) {
                    gaps.record(gap);
                }
                gaps_count += 1;
            }
            last = now;
        }
        turns += u64::from(TURNS);
    }
    let after = line(&root, cpu)?;
    let span_ns = last - begun - aside_ns;
    // A 32-bit counter cannot go around twice in the time that a meter runs.
    let wide = |now: u32, then: u32| Width::U32.step(then.into(), now.into()).unwrap_or(0);
    Ok(MeterReading {
        span_ns,
        stolen_ns,
        gaps_count,
        gap_quartiles_ns: [0.25, 0.5, 0.75].map(|q| gaps.quantile_ns(q)),
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

/// Held by a test that pins a thread, and by that of the meter, which moves all threads of the process.
#[cfg(test)]
pub(crate) static PINNING: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_sees_its_own_time_and_no_more() {
        let _alone = PINNING.lock();
        let cpu = thread::allowed_cpus().unwrap().0[0];
        let allowed = thread::affinity(0).unwrap();
        let meter = Meter::start(cpu, Beside::Softirq).unwrap();
        let others = thread::affinity(0).unwrap();
        assert!(allowed.0.len() == 1 || !others.0.contains(&cpu), "{others}");
        // Some work of this thread's own; where there is one CPU it takes it from the meter.
        let until = clock::now_ns() + 20_000_000;
        while clock::now_ns() < until {}
        let got = meter.finish().unwrap().unwrap();
        assert_eq!(thread::affinity(0).unwrap(), allowed);
        assert!(got.stolen_ns <= got.span_ns, "{got:?}");
        assert!(got.span_ns == 0 || got.clock_ns > 0.0, "{got:?}");
    }
}
