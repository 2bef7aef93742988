//! The sending side: threads that offer datagrams by schedule or as fast as possible.

mod check;
mod fill;
mod finish;
mod open;
pub mod options;
mod worker;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::clock;
use crate::engine::thread::CpuTime;
use crate::tally::Shared;
use crate::udp::load::options::{LoadOptions, LoadSettings};
use crate::udp::result::{Interval, LoadResult};
use crate::workload::{Finished, Worker, Workload, wake_until_done};

pub use fill::dry_loop_ns;

/// A sender.
#[derive(Debug)]
pub struct Load {
    options: LoadOptions,
    settings: LoadSettings,
    warnings: Vec<Warning>,
    shared: Arc<Shared>,
    workers: Vec<Worker<worker::Report>>,
    cpu_before: CpuTime,
}

impl Load {
    /// Opens the sockets and starts the threads, which wait for [`Workload::start`].
    pub fn open(options: LoadOptions) -> Result<Self, LoadError> {
        open::open(options)
    }
}

impl Workload for Load {
    type Settings = LoadSettings;
    type Result = LoadResult;
    type Interval = Interval;
    const NAME: &'static str = "load-udp";

    fn settings(&self) -> &LoadSettings {
        &self.settings
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn tids(&self) -> Vec<i32> {
        self.shared.tallies.iter().map(|tally| tally.tid.load(Relaxed)).collect()
    }

    fn start(&mut self, t_ns: u64) {
        self.cpu_before = crate::engine::thread::process_cpu_time();
        self.shared.start_ns.store(t_ns.max(1), SeqCst);
    }

    fn interval(&self) -> Interval {
        let tallies = &self.shared.tallies;
        Interval {
            t_ns: clock::now_ns(),
            offered_packets: Some(self.shared.sum(|tally| &tally.offered)),
            packets: self.shared.sum(|tally| &tally.packets),
            bytes: self.shared.sum(|tally| &tally.bytes),
            thread_packets: tallies.iter().map(|tally| tally.packets.get()).collect(),
            blocked_s: Some(self.shared.sum(|tally| &tally.blocked_ns) as f64 / 1e9),
            thread_cpus: tallies.iter().map(|tally| tally.cpu.load(Relaxed)).collect(),
            ..Interval::default()
        }
    }

    fn done(&self) -> u64 {
        self.shared.sum(|tally| &tally.packets)
    }

    fn first_ns(&self) -> Option<u64> {
        self.shared.first_ns()
    }

    fn last_ns(&self) -> Option<u64> {
        self.shared.last_ns()
    }

    fn stop(&self) {
        self.shared.stop.store(true, SeqCst);
    }

    fn is_done(&self) -> bool {
        self.shared.all_done()
    }

    fn finish(&mut self) -> Result<Finished<LoadResult>, LoadError> {
        self.stop();
        wake_until_done(&self.shared);
        finish::finish(self)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop();
        wake_until_done(&self.shared);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}
