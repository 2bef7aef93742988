//! What a probe itself costs: time of its programs, CPU of its reader, kernel memory of its maps.
//!
//! The kernel measures the run time of programs on request (`BPF_ENABLE_STATS`, kernel/bpf/syscall.c). Measuring costs
//! time itself: two clock readings for each run. So it is enabled for a part of the window only, and the result is
//! scaled to the window; the result says which part was measured.

mod counted;

use std::time::{Duration, Instant};

use rxpath_core::Fact;
use rxpath_core::measured::{ProbeCost, ProgramCost};
use rxpath_host::HostError;

use crate::object::Loaded;

pub(crate) use counted::COSTS;
pub use counted::{CountedCost, ENTRY_NS, FEW, timed_of};

/// Reads the run time of programs while it lives.
#[derive(Debug)]
pub struct CostMeter {
    /// Each program's id and name.
    programs: Vec<(u32, String)>,
    begun: Instant,
    before: Vec<ProgramCost>,
    stats: Fact<RunTimes>,
}

impl CostMeter {
    /// Asks the kernel to measure; where it refuses, the cost will say so.
    pub fn start(mut programs: Vec<(u32, String)>) -> Self {
        programs.sort_unstable();
        let stats = rxpath_host::error::fact(RunTimes::measured());
        Self { before: read(&programs), programs, stats, begun: Instant::now() }
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
    pub fn start(objects: &[&Loaded], window: Duration) -> Self {
        let meters = objects.iter().map(|object| object.meter()).collect();
        let part = (window / 10).min(Duration::from_millis(500));
        Self { begun: Instant::now(), part, meters, cost: ProbeCost::default() }
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

/// While one lives the kernel measures how long BPF programs run. It patches its code for the first, which takes up to 0.2 s
/// where programs run often.
#[derive(Debug)]
pub struct RunTimes {
    _stats: std::os::fd::OwnedFd,
}

impl RunTimes {
    /// Asks the kernel to measure.
    pub fn measured() -> Result<Self, HostError> {
        enable_stats().map(|stats| Self { _stats: stats })
    }
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
    Err(HostError::unsupported("measure the run time of BPF programs", "a build with BPF"))
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
