//! The receiving side: threads that read one or several sockets and count what came.

mod finish;
mod meter;
mod open;
pub mod options;
mod truesize;
mod worker;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use rxpath_core::Warning;

use crate::LoadError;
use crate::engine::socket::Socket;
use crate::engine::thread::CpuTime;
use crate::tally::Shared;
use crate::udp::result::{Interval, ServeResult};
use crate::udp::serve::options::{ServeOptions, ServeSettings};
use crate::workload::{Finished, Worker, Workload};

pub use meter::dry_loop_ns;

/// A receiver.
#[derive(Debug)]
pub struct Serve {
    options: ServeOptions,
    settings: ServeSettings,
    warnings: Vec<Warning>,
    sockets: Vec<Arc<Socket>>,
    shared: Arc<Shared>,
    workers: Vec<Worker<worker::Report>>,
    cpu_before: CpuTime,
}

impl Serve {
    /// Opens the sockets and starts the threads; from here on datagrams are read and counted.
    pub fn open(options: ServeOptions) -> Result<Self, LoadError> {
        open::open(options)
    }

    /// The address that the sockets are bound to (with the port that the kernel chose for port 0).
    pub fn local(&self) -> std::net::SocketAddr {
        self.settings.addr
    }

    /// Index of the socket that worker `index` reads.
    fn socket_of(&self, index: usize) -> usize {
        index % self.sockets.len()
    }
}

impl Workload for Serve {
    type Settings = ServeSettings;
    type Result = ServeResult;
    type Interval = Interval;
    const NAME: &'static str = "serve-udp";

    fn settings(&self) -> &ServeSettings {
        &self.settings
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn tids(&self) -> Vec<i32> {
        self.shared.tallies.iter().map(|tally| tally.tid.load(Relaxed)).collect()
    }

    /// Does nothing: a receiver reads from its opening on, so that no datagram waits for an order.
    fn start(&mut self, _t_ns: u64) {}

    fn interval(&self) -> Interval {
        let tallies = &self.shared.tallies;
        let mut sockets = vec![0; self.sockets.len()];
        for (index, tally) in tallies.iter().enumerate() {
            sockets[self.socket_of(index)] += tally.packets.get();
        }
        let memory: Vec<_> =
            self.sockets.iter().map(|socket| socket.meminfo().unwrap_or_default()).collect();
        Interval {
            t_ns: crate::engine::clock::now_ns(),
            packets: tallies.iter().map(|tally| tally.packets.get()).sum(),
            bytes: self.shared.sum(|tally| &tally.bytes),
            thread_packets: tallies.iter().map(|tally| tally.packets.get()).collect(),
            socket_packets: sockets,
            socket_rmem_bytes: memory.iter().map(|m| m.rmem_bytes).collect(),
            socket_drops_packets: memory.iter().map(|m| m.drops_packets).collect(),
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

    fn finish(&mut self) -> Result<Finished<ServeResult>, LoadError> {
        self.stop();
        crate::workload::wake_until_done(&self.shared);
        finish::finish(self)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        self.stop();
        crate::workload::wake_until_done(&self.shared);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}
