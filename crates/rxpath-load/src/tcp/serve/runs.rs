//! The runs of a server's clients, and the connections that intervals read.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock};

use crate::engine::{clock, thread};
use crate::tally::Shared;
use crate::tcp::connection::TcpSummary;
use crate::tcp::open_connections::{OpenConnections, locked};
use crate::tcp::result::{Mismatch, ServerReport, ServerThread};

/// Runs that are remembered; the oldest goes when a further one comes.
const RUNS: usize = 256;
/// Wrong payloads that are reported one by one.
pub(super) const MISMATCHES: usize = 16;

/// What one client process did here so far.
#[derive(Debug, Default)]
pub(super) struct Run {
    id: u64,
    /// Instant and CPU time of every thread when the first byte came.
    begin: OnceLock<(u64, Vec<u64>)>,
    so_far: Mutex<SoFar>,
}

/// How many connections began, and what those that ended moved and said.
#[derive(Debug, Default)]
struct SoFar {
    report: ServerReport,
    first_ns: u64,
    last_ns: u64,
}

/// What a connection adds to its run, and to the server, at its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    pub(super) delivered_bytes: u64,
    pub(super) sent_bytes: u64,
    pub(super) transactions: u64,
    pub(super) mapped_bytes: u64,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

impl Run {
    /// A connection of the run begins.
    pub(super) fn joined(&self) {
        locked(&self.so_far).report.connections_total += 1;
    }

    /// A connection of the run ends.
    pub(super) fn add(&self, moved: Moved) {
        let mut so_far = locked(&self.so_far);
        let report = &mut so_far.report;
        report.delivered_bytes += moved.delivered_bytes;
        report.sent_bytes += moved.sent_bytes;
        report.transactions_total += moved.transactions;
        *report.mapped_bytes.get_or_insert_default() += moved.mapped_bytes;
        if moved.first_ns > 0 {
            // 0 means none, so the smallest is looked for among the others.
            let first_ns = if so_far.first_ns > 0 { so_far.first_ns } else { u64::MAX };
            so_far.first_ns = first_ns.min(moved.first_ns);
            so_far.last_ns = so_far.last_ns.max(moved.last_ns);
        }
    }

    /// What the socket of a lasting connection said at its end, and whether its payload was wrong.
    pub(super) fn end(&self, tcp: Option<TcpSummary>, wrong: Option<Mismatch>) {
        let mut so_far = locked(&self.so_far);
        let report = &mut so_far.report;
        report.tcp = TcpSummary::of(report.tcp.into_iter().chain(tcp));
        if report.mismatches.len() < MISMATCHES {
            report.mismatches.extend(wrong);
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) shared: Arc<Shared>,
    all: Mutex<Vec<Arc<Run>>>,
    /// Long-lived connections, which intervals read.
    pub(super) live: Arc<OpenConnections>,
}

impl Runs {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, all: Mutex::default(), live: Arc::default() }
    }

    /// The run of this number; a new one when it is not known.
    pub(super) fn run(&self, id: u64) -> Arc<Run> {
        let mut runs = locked(&self.all);
        if let Some(run) = runs.iter().rev().find(|run| run.id == id) {
            return Arc::clone(run);
        }
        if runs.len() >= RUNS {
            runs.remove(0);
        }
        let run = Arc::new(Run { id, ..Run::default() });
        runs.push(Arc::clone(&run));
        run
    }

    /// The first byte of the run may just have come.
    pub(super) fn begun(&self, run: &Run) {
        run.begin.get_or_init(|| {
            let cpu = self.shared.tids().into_iter().map(thread::cpu_clock_ns).collect();
            (clock::now_ns(), cpu)
        });
    }

    /// What the run did so far; connections that are still open count at their end.
    pub(super) fn report(&self, id: u64, maps: bool) -> ServerReport {
        let run = self.run(id);
        // Connections that end meanwhile wait for this lock: the clocks of the threads are read without it.
        let last_ns = locked(&run.so_far).last_ns;
        let threads = self.busy(&run, last_ns);
        let so_far = locked(&run.so_far);
        ServerReport {
            duration_s: so_far.last_ns.saturating_sub(so_far.first_ns) as f64 / 1e9,
            mapped_bytes: maps.then(|| so_far.report.mapped_bytes.unwrap_or(0)),
            threads,
            ..so_far.report.clone()
        }
    }

    fn busy(&self, run: &Run, last_ns: u64) -> Vec<ServerThread> {
        let Some((begin_ns, cpu_ns)) = run.begin.get() else { return Vec::new() };
        // The time between the run's end and the question is idle and belongs to nobody.
        let end_ns = last_ns.max(begin_ns + 1);
        let tallies = &self.shared.tallies;
        let threads = tallies.iter().zip(cpu_ns).map(|(tally, before)| {
            let used = thread::cpu_clock_ns(tally.tid.load(Relaxed)).saturating_sub(*before);
            let cpu = tally.cpu.load(Relaxed);
            ServerThread {
                cpu: (cpu != u32::MAX).then_some(cpu),
                busy_ratio: (used as f64 / (end_ns - begin_ns) as f64).min(1.0),
            }
        });
        threads.collect()
    }
}
