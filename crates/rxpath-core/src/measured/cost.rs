//! What a probe itself cost.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cost of a probe over its window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

/// One program's share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
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
    pub fn over(self, window: Duration, map_bytes: u64, reader_cpu: Duration) -> Self {
        let factor = window.as_secs_f64() / self.measured_s.max(1e-9);
        let mut scaled = self.scaled(|_| factor);
        scaled.map_bytes += map_bytes;
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
