//! The server: threads that serve streams and transactions, as each connection's preamble says.

mod connection;
mod finish;
mod hub;
mod open;
pub mod options;
mod slots;
mod worker;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::thread::CpuTime;
use crate::tcp::lanes::Lanes;
use crate::tcp::result::{Interval, ServeResult};
use crate::tcp::serve::hub::Hub;
use crate::tcp::serve::options::{ServeOptions, ServeSettings};
use crate::workload::{Finished, Worker, Workload, wake_until_done};

pub(crate) use finish::mismatch;

/// A server.
#[derive(Debug)]
pub struct Serve {
    options: ServeOptions,
    settings: ServeSettings,
    warnings: Vec<Warning>,
    lanes: Arc<Lanes>,
    hub: Arc<Hub>,
    workers: Vec<Worker<worker::Report>>,
    /// Holds the connections open after the end.
    open: Vec<worker::Report>,
    cpu_before: CpuTime,
}

impl Serve {
    /// Opens the listeners and starts the threads; from here on connections are served.
    pub fn open(options: ServeOptions) -> Result<Self, LoadError> {
        open::open(options)
    }

    /// The address that it listens on (with the port that the kernel chose for port 0).
    pub fn local(&self) -> std::net::SocketAddr {
        self.settings.addr
    }
}

impl Workload for Serve {
    type Settings = ServeSettings;
    type Result = ServeResult;
    type Interval = Interval;
    const NAME: &'static str = "serve-tcp";

    fn settings(&self) -> &ServeSettings {
        &self.settings
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn tids(&self) -> Vec<i32> {
        self.lanes.tids()
    }

    /// Does nothing: a server serves from its opening on, so that no connection waits for an order.
    fn start(&mut self, _t_ns: u64) {}

    fn interval(&self) -> Interval {
        Interval { tcp: self.hub.sample(), ..self.lanes.interval() }
    }

    fn done(&self) -> u64 {
        self.lanes.sum(|lane| &lane.delivered_bytes) + self.lanes.sum(|lane| &lane.sent_bytes)
    }

    fn first_ns(&self) -> Option<u64> {
        self.lanes.shared.first_ns()
    }

    fn last_ns(&self) -> Option<u64> {
        self.lanes.shared.last_ns()
    }

    fn stop(&self) {
        self.lanes.shared.stop.store(true, SeqCst);
    }

    fn is_done(&self) -> bool {
        self.lanes.shared.all_done()
    }

    fn finish(&mut self) -> Result<Finished<ServeResult>, LoadError> {
        self.stop();
        wake_until_done(&self.lanes.shared);
        finish::finish(self)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        self.stop();
        wake_until_done(&self.lanes.shared);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}
