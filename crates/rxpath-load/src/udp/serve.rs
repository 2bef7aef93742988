//! The receiving side: threads that read one or several sockets and count what came.

mod finish;
mod meter;
mod open;
pub mod options;
mod truesize;
mod worker;
mod xdp;

use std::sync::Arc;

use rxpath_core::Warning;

use crate::engine::socket::Socket;
use crate::pool::Pool;
use crate::udp::result::{Interval, ServeResult};
use crate::udp::serve::options::{ServeEngine, ServeOptions, ServeSettings};
use crate::workload::{WorkloadHandle, from_fields};

pub use meter::dry_loop_ns;

/// A receiver.
#[derive(Debug)]
pub struct Serve {
    options: ServeOptions,
    settings: ServeSettings,
    warnings: Vec<Warning>,
    sockets: Vec<Arc<Socket>>,
    /// Without sockets of the kernel's UDP: the XDP program.
    taken: Option<xdp::Taken>,
    pool: Pool<worker::Report>,
}

impl Serve {
    /// Index of the socket that worker `index` reads.
    fn socket_of(&self, index: usize) -> usize {
        index % self.sockets.len().max(1)
    }
}

impl WorkloadHandle for Serve {
    from_fields!("serve-udp", ServeSettings, ServeResult);

    fn start(&mut self, _t_ns: u64) {}

    fn interval(&self) -> Interval {
        let shared = &self.pool.shared;
        let mut sockets = vec![0; self.sockets.len()];
        for (index, tally) in shared.tallies.iter().enumerate() {
            if let Some(sum) = sockets.get_mut(self.socket_of(index)) {
                *sum += tally.units.get();
            }
        }
        let memory: Vec<_> =
            self.sockets.iter().map(|socket| socket.meminfo().unwrap_or_default()).collect();
        Interval {
            t_ns: crate::engine::clock::now_ns(),
            packets: shared.sum(|tally| &tally.units),
            bytes: shared.sum(|tally| &tally.received_bytes),
            thread_packets: shared.each(|tally| &tally.units),
            socket_packets: sockets,
            socket_rmem_bytes: memory.iter().map(|m| u64::from(m.rmem)).collect(),
            socket_drops_packets: memory.iter().map(|m| u64::from(m.drops)).collect(),
            dropped_in_xdp_packets: (self.settings.engine == ServeEngine::XdpDrop)
                .then(|| shared.sum(|tally| &tally.dropped)),
            thread_cpus: shared.cpus(),
            ..Interval::default()
        }
    }

    fn seen(&self) -> u64 {
        self.done() + self.shared().sum(|tally| &tally.dropped)
    }
}
