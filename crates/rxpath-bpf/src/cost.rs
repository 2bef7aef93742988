//! What a probe itself costs: time of its programs, CPU of its reader, kernel memory of its maps.
//!
//! The kernel measures the run time of programs on request (`BPF_ENABLE_STATS`, kernel/bpf/syscall.c). Measuring costs
//! time itself: two clock readings for each run. So it is enabled for a part of the window only, and the result is
//! scaled to the window; the result says which part was measured.

mod counted;

use std::time::{Duration, Instant};

use rxpath_core::Fact;
use rxpath_host::HostError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::object::Loaded;

pub(crate) use counted::COSTS;
pub use counted::{CountedCost, ENTRY_NS, FEW, timed_of};

/// The cost of a probe over its window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeCost {
    /// Time in the programs over the window, all CPUs together. Scaled from the measured part.
    pub run_time_s: f64,
    /// Runs of the programs over the window. Scaled from the measured part.
    pub runs_count: u64,
    /// Mean time of a run, without the entry of the call (some 10 ns, which cannot be measured here).
    pub ns_per_run: f64,
    /// How much of the window was measured.
    pub measured_s: f64,
    /// CPU time of the thread that reads.
    pub reader_cpu_s: f64,
    /// Kernel memory of the maps.
    pub map_bytes: u64,
    /// Events, slices or entries that did not fit in the maps.
    pub lost_count: u64,
    /// Runs that the kernel skipped because the program was already running on that CPU.
    pub missed_runs_count: u64,
    /// Each program.
    pub programs: Vec<ProgramCost>,
    /// Why run times are not known, where they are not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gap: Option<String>,
}

/// One program's share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramCost {
    /// Its name.
    pub program: String,
    /// Runs in the measured part.
    pub runs_count: u64,
    /// Time in the measured part.
    pub run_time_ns: u64,
    /// Runs left out since it was loaded.
    pub missed_runs_count: u64,
}

/// Reads the run time of programs while it lives.
#[derive(Debug)]
pub struct CostMeter {
    /// Each program's id and name.
    programs: Vec<(u32, String)>,
    begun: Instant,
    before: Vec<ProgramCost>,
    // The kernel counts as long as this is open.
    stats: Fact<std::os::fd::OwnedFd>,
}

impl CostMeter {
    /// Asks the kernel to measure; where it refuses, the cost will say so.
    pub fn start(mut programs: Vec<(u32, String)>) -> Result<Self, HostError> {
        programs.sort_unstable();
        let stats = rxpath_host::error::fact(enable_stats());
        Ok(Self { before: read(&programs), programs, stats, begun: Instant::now() })
    }

    /// Stops measuring. The cost is of the measured part until [`ProbeCost::over`] scales it.
    pub fn stop(self) -> ProbeCost {
        let measured = self.begun.elapsed();
        let after = read(&self.programs);
        let gap = self.stats.gap();
        drop(self.stats);
        let programs: Vec<ProgramCost> = after
            .into_iter()
            .zip(&self.before)
            .map(|(now, before)| ProgramCost {
                runs_count: now.runs_count.saturating_sub(before.runs_count),
                run_time_ns: now.run_time_ns.saturating_sub(before.run_time_ns),
                ..now
            })
            .collect();
        let runs: u64 = programs.iter().map(|p| p.runs_count).sum();
        let ns: u64 = programs.iter().map(|p| p.run_time_ns).sum();
        ProbeCost {
            run_time_s: ns as f64 / 1e9,
            runs_count: runs,
            ns_per_run: if runs > 0 { ns as f64 / runs as f64 } else { 0.0 },
            measured_s: measured.as_secs_f64(),
            missed_runs_count: programs.iter().map(|p| p.missed_runs_count).sum(),
            programs,
            gap,
            ..ProbeCost::default()
        }
    }
}

impl ProbeCost {
    /// Scales run times and runs, those of each program by what `factor` says of its name; never down.
    #[must_use]
    pub fn scaled(mut self, factor: impl Fn(&str) -> f64) -> Self {
        let (mut ns, mut runs) = (0.0, 0.0);
        for program in &self.programs {
            let factor = factor(&program.program).max(1.0);
            ns += program.run_time_ns as f64 * factor;
            runs += program.runs_count as f64 * factor;
        }
        (self.run_time_s, self.runs_count) = (ns / 1e9, runs as u64);
        self
    }

    /// Scales the run times to a window of this length, and adds what the reader and the maps cost.
    #[must_use]
    pub fn over(self, window: Duration, loaded: &Loaded, reader_cpu: Duration) -> Self {
        let factor = window.as_secs_f64() / self.measured_s.max(1e-9);
        let mut scaled = self.scaled(|_| factor);
        scaled.map_bytes += loaded.map_bytes();
        scaled.reader_cpu_s = reader_cpu.as_secs_f64();
        scaled
    }

    /// Both probes together.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        self.run_time_s += other.run_time_s;
        self.runs_count += other.runs_count;
        self.ns_per_run =
            if self.runs_count > 0 { self.run_time_s * 1e9 / self.runs_count as f64 } else { 0.0 };
        self.map_bytes += other.map_bytes;
        self.lost_count += other.lost_count;
        self.missed_runs_count += other.missed_runs_count;
        self.programs.extend(other.programs);
        self.gap = self.gap.or(other.gap);
        self
    }
}

/// Measures the first part of a window, and stops by itself: a tenth of it, at most half a second.
#[derive(Debug)]
pub struct PartMeter {
    begun: Instant,
    part: Duration,
    meters: Vec<CostMeter>,
    cost: ProbeCost,
}

impl PartMeter {
    /// Starts for these objects and a window of this length.
    pub fn start(objects: &[&Loaded], window: Duration) -> Result<Self, HostError> {
        let meters = objects.iter().map(|object| object.meter()).collect::<Result<_, _>>()?;
        let part = (window / 10).min(Duration::from_millis(500));
        Ok(Self { begun: Instant::now(), part, meters, cost: ProbeCost::default() })
    }

    /// Stops once the part has passed, and says whether it has; to be called now and then.
    pub fn note(&mut self) -> bool {
        let over = self.begun.elapsed() >= self.part;
        if over {
            self.stop();
        }
        over
    }

    /// The cost of the measured part; stops measuring.
    pub fn stop(&mut self) -> ProbeCost {
        for meter in self.meters.drain(..) {
            let cost = meter.stop();
            let measured_s = cost.measured_s;
            self.cost = std::mem::take(&mut self.cost).plus(cost);
            self.cost.measured_s = measured_s;
        }
        self.cost.clone()
    }
}

/// Ids of all BPF programs that are in the kernel now, of any owner; empty without the privilege to list them.
pub fn programs_in_kernel() -> Vec<u32> {
    #[cfg(feature = "bpf")]
    {
        libbpf_rs::query::ProgInfoIter::default().map(|program| program.id).collect()
    }
    #[cfg(not(feature = "bpf"))]
    {
        Vec::new()
    }
}

/// CPU time of the calling thread so far, up to this moment: getrusage(2) knows that of the last tick.
/// **Source** clock_gettime(2), `CLOCK_THREAD_CPUTIME_ID`.
pub fn own_cpu() -> Duration {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    nix::time::clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

#[cfg(feature = "bpf")]
fn enable_stats() -> Result<std::os::fd::OwnedFd, HostError> {
    use std::os::fd::FromRawFd;

    // SAFETY: takes a number, touches no memory of ours; the descriptor it gives has no other owner.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Err(HostError::kernel("measure the run time of BPF programs", -fd));
    }
    // SAFETY: just opened, see above.
    Ok(unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) })
}

#[cfg(not(feature = "bpf"))]
fn enable_stats() -> Result<std::os::fd::OwnedFd, HostError> {
    Err(HostError::Unsupported {
        what: "measure the run time of BPF programs".into(),
        needs: "a build with BPF".into(),
    })
}

/// Only these are asked: a host may run hundreds of others' programs. One that is gone is left out.
#[cfg(feature = "bpf")]
fn read(programs: &[(u32, String)]) -> Vec<ProgramCost> {
    programs.iter().filter_map(|(id, name)| read_one(*id, name)).collect()
}

/// **Source** kernel/bpf/syscall.c `bpf_prog_get_info_by_fd`.
#[cfg(feature = "bpf")]
fn read_one(id: u32, name: &str) -> Option<ProgramCost> {
    use std::os::fd::AsRawFd;

    let program = libbpf_rs::Program::fd_from_id(id).ok()?;
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut size = size_of_val(&info) as u32;
    let to = std::ptr::from_mut(&mut info).cast();
    // SAFETY: the kernel writes at most `size` bytes into `info`, which lives through the call; all of its pointers are
    // null, so that nothing else is written.
    if unsafe { libbpf_sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), to, &raw mut size) } != 0 {
        return None;
    }
    Some(ProgramCost {
        program: name.into(),
        runs_count: info.run_cnt,
        run_time_ns: info.run_time_ns,
        missed_runs_count: info.recursion_misses,
    })
}

#[cfg(not(feature = "bpf"))]
fn read(_programs: &[(u32, String)]) -> Vec<ProgramCost> {
    Vec::new()
}
