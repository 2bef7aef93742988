//! The cost of programs as they count it themselves (`bpf/cost.h`): without a privilege, at any time, and without slowing
//! third-party programs, unlike the kernel's measurement.

use rxpath_host::HostError;

use crate::bytes::Fields;
use crate::object::{Loaded, MapSpec, map};

/// Programs of an object that are counted, at most.
const ROWS: usize = 40;

/// The map of the objects whose programs are counted.
pub(crate) const COSTS: MapSpec = map("costs", 4, 3 * 8 * ROWS as u32);

/// One of so many runs is timed (`COST_TIMED`), unless all are.
pub const FEW: u32 = 64;

/// Runs a second, of all programs and CPUs, below which each is timed, and above which few are. A timed run reads the clock
/// twice, which takes some 50 ns: 0.05 % of a CPU at most.
const SELDOM_PER_S: f64 = 5_000.0;
const OFTEN_PER_S: f64 = 10_000.0;

/// CPU time of the clock reading that a timed run does not see: of two, it sees one. About that of a small virtual machine.
const CLOCK_NS: f64 = 25.0;

/// One of how many runs is timed, where one of so many was and programs run so often.
pub fn timed_of(now: u32, runs_per_s: f64) -> u32 {
    let most = if now == 1 { OFTEN_PER_S } else { SELDOM_PER_S };
    if runs_per_s < most { 1 } else { FEW }
}

/// CPU time from the event to the program and back, for each run: no program can measure it, nor does `BPF_PROG_TEST_RUN`, which
/// calls the program directly and gives no time (`bpf_prog_test_run_raw_tp`, net/bpf/test_run.c). 60 ns by an empty program on a
/// small virtual machine (`bench/observe.sh`).
pub const ENTRY_NS: f64 = 60.0;

/// A program on all CPUs (`struct cost_row`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    runs: u64,
    timed_runs: u64,
    timed_ns: u64,
}

/// What an object's programs cost so far. It never falls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountedCost {
    /// Runs.
    pub runs: u64,
    /// CPU time in the programs, from the runs that were timed.
    pub run_ns: f64,
    rows: Vec<Row>,
}

impl CountedCost {
    /// Adds what the programs did since the last call.
    ///
    /// **Errors** when the object does not count its programs, or cannot be read.
    pub fn update(&mut self, loaded: &Loaded) -> Result<(), HostError> {
        let cpus = loaded.values(COSTS.name, 0)?;
        self.add(cpus.iter().map(Vec::as_slice));
        Ok(())
    }

    fn add<'a>(&mut self, cpus: impl Iterator<Item = &'a [u8]>) {
        let mut now = vec![Row::default(); ROWS];
        for cpu in cpus {
            let mut fields = Fields::of(cpu);
            for row in &mut now {
                row.runs += fields.u64();
                row.timed_runs += fields.u64();
                row.timed_ns += fields.u64();
            }
        }
        self.rows.resize(ROWS, Row::default());
        for (before, now) in self.rows.iter().zip(&now) {
            let runs = now.runs.saturating_sub(before.runs);
            let timed = now.timed_runs.saturating_sub(before.timed_runs);
            let ns = now.timed_ns.saturating_sub(before.timed_ns);
            self.run_ns += timed as f64 * CLOCK_NS;
            // Of a few runs perhaps none was timed: then the mean of all times so far.
            let (ns, timed) = if timed > 0 { (ns, timed) } else { (now.timed_ns, now.timed_runs) };
            self.run_ns += runs as f64 * ns as f64 / timed.max(1) as f64;
            self.runs += runs;
        }
        self.rows = now;
    }

    /// CPU time with the entry of each run.
    pub fn whole_ns(&self) -> f64 {
        self.run_ns + self.entry_ns()
    }

    /// CPU time of the entries of all runs, estimated.
    pub fn entry_ns(&self) -> f64 {
        self.runs as f64 * ENTRY_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CPU on which the first two programs ran.
    fn cpu(rows: [[u64; 3]; 2]) -> Vec<u8> {
        let mut words: Vec<u64> = rows.into_iter().flatten().collect();
        words.resize(3 * ROWS, 0);
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    #[test]
    fn each_program_counts_by_the_runs_of_it_that_were_timed() {
        let mut cost = CountedCost::default();
        let cpus = [cpu([[640, 10, 1000], [1, 1, 700]]), cpu([[64, 1, 320], [0, 0, 0]])];
        cost.add(cpus.iter().map(Vec::as_slice));
        // 704 of 120 ns and one of 700; 12 were timed.
        let first = 704.0 * 120.0 + 700.0 + 12.0 * CLOCK_NS;
        assert!((cost.run_ns - first).abs() < 1e-6, "{cost:?}");
        assert_eq!(cost.runs, 705);
        let later = [cpu([[670, 10, 1000], [65, 2, 800]]), cpu([[64, 1, 320], [0, 0, 0]])];
        cost.add(later.iter().map(Vec::as_slice));
        // 30 that were not timed, by the mean of all; 64 of 100 ns.
        let more = 30.0 * 120.0 + 64.0 * 100.0 + CLOCK_NS;
        assert!((cost.run_ns - (first + more)).abs() < 1e-6, "{cost:?}");
        assert!((cost.whole_ns() - cost.run_ns - 799.0 * ENTRY_NS).abs() < 1e-6);
        let before = cost.run_ns;
        cost.add(later.iter().map(Vec::as_slice));
        assert!((cost.run_ns - before).abs() < 1e-9, "nothing ran since");
    }

    #[test]
    fn all_runs_are_timed_while_they_are_few_and_a_rate_between_changes_nothing() {
        for (now, runs_per_s, right) in [
            (FEW, 4_000.0, 1),
            (1, 4_000.0, 1),
            (FEW, 7_000.0, FEW),
            (1, 7_000.0, 1),
            (1, 20_000.0, FEW),
            (FEW, 20_000.0, FEW),
        ] {
            assert_eq!(timed_of(now, runs_per_s), right, "{now} {runs_per_s}");
        }
    }
}
