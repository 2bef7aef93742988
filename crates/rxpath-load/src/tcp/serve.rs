//! The server: threads that serve streams and transactions, as each connection's preamble says.

mod connection;
mod finish;
mod open;
pub mod options;
mod runs;
mod server;
mod worker;

use std::sync::Arc;

use rxpath_core::Warning;

use crate::pool::Pool;
use crate::tcp::result::{Interval, ServeResult};
use crate::tcp::serve::options::{ServeOptions, ServeSettings};
use crate::tcp::serve::server::ServerState;
use crate::workload::{WorkloadHandle, from_fields};

pub(crate) use finish::mismatch;

/// A server.
#[derive(Debug)]
pub struct Serve {
    options: ServeOptions,
    settings: ServeSettings,
    warnings: Vec<Warning>,
    server: Arc<ServerState>,
    pool: Pool<worker::Report>,
    /// Holds the connections open after the end.
    open: Vec<worker::Report>,
}

impl WorkloadHandle for Serve {
    from_fields!("serve-tcp", ServeSettings, ServeResult);

    fn start(&mut self, _t_ns: u64) {}

    fn interval(&self) -> Interval {
        Interval { tcp: self.server.runs.live.sample(), ..Interval::of(&self.pool.shared) }
    }

    fn done(&self) -> u64 {
        let shared = &self.pool.shared;
        shared.sum(|tally| &tally.received_bytes) + shared.sum(|tally| &tally.sent_bytes)
    }
}
