//! The sending side: threads that offer datagrams by schedule or as fast as possible.

mod check;
mod fill;
mod finish;
mod live_frames;
mod open;
pub mod options;
mod transmit;
mod worker;

use rxpath_core::Warning;

use crate::engine::clock;
use crate::pool::Pool;
use crate::udp::load::options::{LoadOptions, LoadSettings};
use crate::udp::result::{Interval, LoadResult};
use crate::workload::{WorkloadHandle, from_fields};

pub use fill::dry_loop_ns;

/// A sender.
#[derive(Debug)]
pub struct Load {
    options: LoadOptions,
    settings: LoadSettings,
    warnings: Vec<Warning>,
    pool: Pool<worker::Report>,
}

impl WorkloadHandle for Load {
    from_fields!("load-udp", LoadSettings, LoadResult);

    fn interval(&self) -> Interval {
        let shared = &self.pool.shared;
        Interval {
            t_ns: clock::now_ns(),
            offered_packets: Some(shared.sum(|tally| &tally.offered)),
            packets: shared.sum(|tally| &tally.units),
            bytes: shared.sum(|tally| &tally.sent_bytes),
            thread_packets: shared.each(|tally| &tally.units),
            blocked_s: Some(shared.sum(|tally| &tally.blocked_ns) as f64 / 1e9),
            thread_cpus: shared.cpus(),
            ..Interval::default()
        }
    }
}
