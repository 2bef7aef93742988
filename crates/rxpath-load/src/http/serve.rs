//! The serving side: threads that answer every request with the same prepared reply.
//!
//! What is said on a connection is decided without sockets (`dialogue`, `reply`); two engines move the bytes.

mod by_epoll;
mod by_uring;
mod connection;
mod count;
pub mod dialogue;
mod finish;
mod open;
pub mod options;
pub mod reply;
pub mod result;
mod worker_state;

use std::sync::Arc;

use rxpath_core::{Fact, Warning};

use crate::engine::socket::Socket;
use crate::http::serve::options::{ServeOptions, ServeSettings};
use crate::http::serve::result::{Interval, ServeResult};
use crate::pool::Pool;
use crate::slab::Slab;
use crate::workload::{WorkloadHandle, from_fields};

/// A server.
#[derive(Debug)]
pub struct Serve {
    options: Arc<ServeOptions>,
    settings: ServeSettings,
    warnings: Vec<Warning>,
    listeners: Vec<Arc<Socket>>,
    pool: Pool<worker_state::Report>,
    /// Holds the connections open after the end.
    open: Vec<Slab<connection::Conn>>,
    polled_before: Fact<u64>,
}

impl WorkloadHandle for Serve {
    from_fields!("serve-http", ServeSettings, ServeResult);

    fn start(&mut self, _t_ns: u64) {}

    fn interval(&self) -> Interval {
        let shared = &self.pool.shared;
        Interval {
            t_ns: crate::engine::clock::now_ns(),
            requests_total: shared.sum(|tally| &tally.units),
            received_bytes: shared.sum(|tally| &tally.received_bytes),
            sent_bytes: shared.sum(|tally| &tally.sent_bytes),
            accepted_total: shared.sum(|tally| &tally.accepted),
            open_count: shared.sum(|tally| &tally.connections),
            refused_total: shared.sum(|tally| &tally.refused),
            thread_requests_total: shared.each(|tally| &tally.units),
            thread_cpus: shared.cpus(),
        }
    }
}
