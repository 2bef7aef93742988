//! The load: connections that ask again and again, and what came back.
//!
//! A closed loop asks when the reply before is there, and so asks a slow server less. An open loop (`rate_rps`) asks by
//! an absolute schedule; its response times begin at the intended instant, so that the waiting that a stalled
//! server causes is in them (no coordinated omission).

mod client;
mod conn;
mod epoll;
mod finish;
mod message;
mod meter;
mod open;
pub mod options;
mod ports;
pub mod result;
mod signs;
#[cfg(test)]
mod simulation;
mod sockets;
mod target;
mod uring;
pub mod url;
mod wire;
mod worker;

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::thread::CpuTime;
use crate::engine::{clock, thread};
use crate::http::load::meter::{Desk, Kind};
use crate::http::load::options::{LoadOptions, LoadSettings};
use crate::http::load::result::{Interval, LoadResult};
use crate::quantiles::{Quantiles, merged};
use crate::workload::{Finished, Worker, Workload, wake_until_done};

/// A load generator.
#[derive(Debug)]
pub struct Load {
    options: Arc<LoadOptions>,
    settings: LoadSettings,
    warnings: Vec<Warning>,
    desk: Arc<Desk>,
    workers: Vec<Worker<worker::Report>>,
    cpu_before: CpuTime,
    /// When the last thread left its loop.
    ended_ns: Option<u64>,
    /// The times at the reading before, per thread.
    read_before: Mutex<Vec<Vec<u64>>>,
    /// Open until the results were read.
    sockets: Vec<OwnedFd>,
}

impl Load {
    /// Finds the server, makes room for the connections and starts the threads, which wait for [`Workload::start`].
    ///
    /// The connections themselves are opened by the threads when they start.
    pub fn open(options: LoadOptions) -> Result<Self, LoadError> {
        open::open(options)
    }
}

impl Workload for Load {
    type Settings = LoadSettings;
    type Result = LoadResult;
    type Interval = Interval;
    const NAME: &'static str = "load-http";

    fn settings(&self) -> &LoadSettings {
        &self.settings
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn tids(&self) -> Vec<i32> {
        self.desk.shared.tallies.iter().map(|tally| tally.tid.load(Relaxed)).collect()
    }

    fn start(&mut self, t_ns: u64) {
        self.cpu_before = thread::process_cpu_time();
        self.desk.shared.start_ns.store(t_ns.max(1), SeqCst);
    }

    /// **Caveat** the percentiles are those since the last call.
    fn interval(&self) -> Interval {
        let shared = &self.desk.shared;
        let mut before = self.read_before.lock().unwrap_or_else(PoisonError::into_inner);
        before.resize_with(self.desk.boards.len(), Vec::new);
        let times: Vec<_> = self
            .desk
            .boards
            .iter()
            .zip(before.iter_mut())
            .map(|(board, before)| {
                let (times, now) = board.response.since(before);
                *before = now;
                times
            })
            .collect();
        Interval {
            t_ns: clock::now_ns(),
            requests_total: shared.sum(|tally| &tally.packets),
            sent_requests_total: shared.sum(|tally| &tally.offered),
            errors_total: Kind::ALL.iter().map(|kind| self.desk.errors(*kind)).sum(),
            received_bytes: shared.sum(|tally| &tally.bytes),
            thread_requests_total: shared.tallies.iter().map(|t| t.packets.get()).collect(),
            thread_cpus: shared.tallies.iter().map(|t| t.cpu.load(Relaxed)).collect(),
            response_time_us: Quantiles::of(&merged(&times)),
        }
    }

    fn done(&self) -> u64 {
        self.desk.shared.sum(|tally| &tally.packets)
    }

    fn first_ns(&self) -> Option<u64> {
        self.desk.shared.first_ns()
    }

    /// The end of the loop, up to which replies were waited for.
    fn last_ns(&self) -> Option<u64> {
        self.ended_ns.or_else(|| self.desk.shared.last_ns())
    }

    fn stop(&self) {
        self.desk.shared.stop.store(true, SeqCst);
    }

    fn is_done(&self) -> bool {
        self.desk.shared.all_done()
    }

    fn finish(&mut self) -> Result<Finished<LoadResult>, LoadError> {
        self.stop();
        wake_until_done(&self.desk.shared);
        finish::finish(self)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop();
        wake_until_done(&self.desk.shared);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}
