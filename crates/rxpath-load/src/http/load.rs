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
pub mod result;
mod sockets;
mod target;
mod uring;
pub mod url;
mod warnings;
mod wire;
mod worker;

use std::sync::Arc;

use rxpath_core::Warning;
use rxpath_stats::Histogram;

use crate::engine::clock;
use crate::engine::socket::Socket;
use crate::http::load::meter::{Kind, LiveCounters, errors};
use crate::http::load::options::{LoadOptions, LoadSettings};
use crate::http::load::result::{Interval, LoadResult};
use crate::live::{LiveTimes, NewTimes};
use crate::pool::Pool;
use crate::quantiles::Quantiles;
use crate::workload::{WorkloadHandle, from_fields};

/// A load generator.
#[derive(Debug)]
pub struct Load {
    options: Arc<LoadOptions>,
    settings: LoadSettings,
    warnings: Vec<Warning>,
    live: Arc<Vec<LiveCounters>>,
    pool: Pool<worker::Report>,
    /// When the last thread left its loop.
    ended_ns: Option<u64>,
    /// Response times since the last interval, and since the last slice.
    new_in_interval: NewTimes,
    new_in_slice: NewTimes,
    /// Open until the results were read.
    sockets: Vec<Socket>,
}

impl Load {
    fn response_times(&self) -> impl Iterator<Item = &LiveTimes> {
        self.live.iter().map(|thread| &thread.response)
    }
}

impl WorkloadHandle for Load {
    from_fields!("load-http", LoadSettings, LoadResult);

    /// **Caveat** the percentiles are those since the last call.
    fn interval(&self) -> Interval {
        let shared = &self.pool.shared;
        let times = self.new_in_interval.read(self.response_times());
        Interval {
            t_ns: clock::now_ns(),
            requests_total: shared.sum(|tally| &tally.units),
            sent_requests_total: shared.sum(|tally| &tally.offered),
            errors_total: Kind::ALL.iter().map(|kind| errors(&self.live, *kind)).sum(),
            received_bytes: shared.sum(|tally| &tally.received_bytes),
            thread_requests_total: shared.each(|tally| &tally.units),
            thread_cpus: shared.cpus(),
            response_time_us: Quantiles::of(&times),
        }
    }

    fn new_times(&self) -> Option<(&'static str, Histogram)> {
        Some(("response_time", self.new_in_slice.read(self.response_times())))
    }

    /// The end of the loop, up to which replies were waited for.
    fn last_ns(&self) -> Option<u64> {
        self.ended_ns.or_else(|| self.pool.shared.last_ns())
    }
}

#[cfg(test)]
mod tests;
