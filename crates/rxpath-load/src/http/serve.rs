//! The serving side: threads that answer every request with the same prepared reply.
//!
//! What is said on a connection is decided without sockets (`dialogue`, `reply`); two engines move the bytes.

mod by_epoll;
mod by_uring;
mod chunks;
mod count;
pub mod dialogue;
mod finish;
mod open;
pub mod options;
pub mod reply;
pub mod result;
mod table;
mod worker;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use rxpath_core::{Fact, Warning};

use crate::LoadError;
use crate::engine::socket::Socket;
use crate::engine::thread::CpuTime;
use crate::http::serve::count::Live;
use crate::http::serve::options::{ServeOptions, ServeSettings};
use crate::http::serve::result::{Interval, ServeResult};
use crate::tally::Shared;
use crate::workload::{Finished, Worker, Workload, wake_until_done};

/// A server.
#[derive(Debug)]
pub struct Serve {
    options: Arc<ServeOptions>,
    settings: ServeSettings,
    warnings: Vec<Warning>,
    listeners: Vec<Arc<Socket>>,
    shared: Arc<Shared>,
    live: Arc<Vec<Live>>,
    workers: Vec<Worker<worker::Report>>,
    /// Connections that outlive their threads: sockets close when the workload is dropped.
    kept: Vec<table::Table>,
    cpu_before: CpuTime,
    polled_before: Fact<u64>,
}

impl Serve {
    /// Opens the listeners and starts the threads; from here on requests are answered.
    pub fn open(options: ServeOptions) -> Result<Self, LoadError> {
        open::open(options)
    }

    /// The address that the listeners are bound to (with the port that the kernel chose for port 0).
    pub fn local(&self) -> std::net::SocketAddr {
        self.settings.addr
    }
}

impl Workload for Serve {
    type Settings = ServeSettings;
    type Result = ServeResult;
    type Interval = Interval;
    const NAME: &'static str = "serve-http";

    fn settings(&self) -> &ServeSettings {
        &self.settings
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn tids(&self) -> Vec<i32> {
        self.shared.tallies.iter().map(|tally| tally.tid.load(Relaxed)).collect()
    }

    /// Does nothing: a server answers from its opening on.
    fn start(&mut self, _t_ns: u64) {}

    fn interval(&self) -> Interval {
        let tallies = &self.shared.tallies;
        let live = |of: fn(&Live) -> u64| self.live.iter().map(of).sum();
        Interval {
            t_ns: crate::engine::clock::now_ns(),
            requests_total: self.shared.sum(|tally| &tally.packets),
            received_bytes: live(|live| live.received_bytes.get()),
            sent_bytes: self.shared.sum(|tally| &tally.bytes),
            accepted_total: live(|live| live.accepted.get()),
            open_count: live(|live| live.open.get()),
            refused_total: live(|live| live.refused.get()),
            thread_requests_total: tallies.iter().map(|tally| tally.packets.get()).collect(),
            thread_cpus: tallies.iter().map(|tally| tally.cpu.load(Relaxed)).collect(),
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

    fn finish(&mut self) -> Result<Finished<ServeResult>, LoadError> {
        self.stop();
        wake_until_done(&self.shared);
        finish::finish(self)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        self.stop();
        wake_until_done(&self.shared);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}
