//! What an endpoint costs its host while a window is measured: its own CPU time with the CPUs, and the bytes over its pipe.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use rxpath_core::CpuList;
use rxpath_host::Root;
use rxpath_host::read::procfs::{schedstat, task};
use rxpath_record::hosts::ControlCost;

use super::outlet::Outlet;
use crate::clock::monotonic_ns;

/// Time between two scans of the threads. A scan reads a file per thread, and its cost is part of the result.
const EACH: Duration = Duration::from_secs(1);

/// An endpoint in a window.
pub struct EndpointCost {
    from: Option<CostMark>,
    cpus: UsedCpus,
}

impl EndpointCost {
    /// The window begins. `cpus` was read just before, outside the window.
    pub fn begin(cpus: UsedCpus, outlet: &Outlet) -> Self {
        Self { cpus, from: CostMark::take(outlet) }
    }

    /// Scans the threads, if the last scan is old enough.
    pub fn note(&mut self) {
        if self.cpus.looked.elapsed() >= EACH {
            self.cpus.look();
        }
    }

    /// What it has cost; nothing if the kernel does not report the CPU time.
    pub fn end(mut self, outlet: &Outlet) -> Option<ControlCost> {
        let (from, to) = self.from.zip(CostMark::take(outlet))?;
        self.cpus.look();
        Some(ControlCost {
            span_ns: to.t_ns - from.t_ns,
            cpu_ns: to.cpu.saturating_sub(from.cpu).as_nanos() as u64,
            control_bytes: to.bytes - from.bytes,
            cpus: CpuList(self.cpus.cpus.into_iter().collect()),
        })
    }
}

/// The endpoint at an instant.
struct CostMark {
    t_ns: u64,
    cpu: Duration,
    bytes: u64,
}

impl CostMark {
    fn take(outlet: &Outlet) -> Option<Self> {
        let cpu = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).ok()?;
        Some(Self { t_ns: monotonic_ns(), cpu: cpu.into(), bytes: outlet.bytes() })
    }
}

/// The CPUs on which threads of this process ran.
///
/// **Source** `/proc/PID/task/TID/schedstat`: whether a thread ran; of those that did, `processor` of `stat`.
pub struct UsedCpus {
    /// The CPU time of each thread at the last scan.
    ran_ns: BTreeMap<i32, u64>,
    cpus: BTreeSet<u32>,
    looked: Instant,
}

impl UsedCpus {
    /// Where threads ran before does not count.
    pub fn begin() -> Self {
        let mut own =
            Self { ran_ns: BTreeMap::new(), cpus: BTreeSet::new(), looked: Instant::now() };
        own.look();
        own.cpus.clear();
        own
    }

    fn look(&mut self) {
        let pid = std::process::id().cast_signed();
        self.looked = Instant::now();
        for tid in task::threads(&Root::host(), pid).unwrap_or_default() {
            self.look_at(pid, tid);
        }
    }

    fn look_at(&mut self, pid: i32, tid: i32) {
        let root = Root::host();
        let Ok(now) = schedstat::read(&root, pid, tid) else { return };
        if self.ran_ns.insert(tid, now.run_ns) != Some(now.run_ns) {
            self.cpus.extend(task::read(&root, pid, Some(tid)).map(|thread| thread.processor).ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use rxpath_host::read::thread;
    use rxpath_host::write::sched;

    use super::*;
    use crate::endpoint::said::Said;
    use crate::meter::PINNING;

    #[test]
    fn lines_in_both_directions_and_work_in_between_are_counted() {
        let outlet = Outlet::new(Box::new(std::io::sink()));
        outlet.say(Said::Tick);
        let meter = EndpointCost::begin(UsedCpus::begin(), &outlet);
        let from = meter.from.as_ref().unwrap().cpu;
        outlet.say(Said::Tick);
        outlet.count_read(100);
        // A program's line is kept in a window, and written behind it.
        outlet.hold();
        outlet.say(Said::Out { program: 1, line: "x".repeat(1_000) });
        let deadline_ns = monotonic_ns() + 60_000_000_000;
        let is_done = || CostMark::take(&outlet).unwrap().cpu >= from + Duration::from_millis(5);
        while !is_done() {
            assert!(monotonic_ns() < deadline_ns, "this thread got no CPU time");
        }
        let cost = meter.end(&outlet).unwrap();
        assert_eq!(cost.control_bytes, 100 + "\"tick\"\n".len() as u64);
        assert!(cost.cpu_ns >= 5_000_000 && cost.span_ns > 0, "{cost:?}");
    }

    #[test]
    fn the_cpu_of_a_thread_counts_once_it_runs() {
        let _alone = PINNING.lock();
        let (wake, woken) = channel::<()>();
        let (say, said) = channel();
        let cpu = *thread::allowed_cpus().unwrap().0.last().unwrap();
        let pinned = std::thread::spawn(move || {
            sched::pin(cpu).unwrap();
            say.send(nix::unistd::gettid().as_raw()).unwrap();
            woken.recv().unwrap();
            say.send(0).unwrap();
            woken.recv().unwrap_err();
        });
        let tid = said.recv().unwrap();
        let mut used = UsedCpus::begin();
        let before = used.ran_ns[&tid];
        assert!(used.cpus.is_empty());
        wake.send(()).unwrap();
        assert_eq!(said.recv().unwrap(), 0);
        // The kernel counts its time when it has left its CPU.
        let deadline = Instant::now() + Duration::from_secs(60);
        while used.ran_ns[&tid] == before {
            assert!(Instant::now() < deadline, "the thread ran");
            std::thread::yield_now();
            // Other threads of this process run on other CPUs.
            used.look_at(std::process::id().cast_signed(), tid);
        }
        assert_eq!(used.cpus, BTreeSet::from([cpu]));
        drop(wake);
        pinned.join().unwrap();
    }
}
