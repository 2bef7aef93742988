//! The interval lines of both programs as events of the run: the time series of the report.

use std::collections::BTreeMap;

use rxpath_core::PathSide;
use rxpath_record::event::{RunEvent, What};

use crate::scenario::spec::Protocol;
use crate::trial::line::Line;
use crate::trial::measurements::Measurements;

/// The samples of a trial, in the order of time per side, as [`Protocol::series`].
pub fn events(trial: u32, protocol: Protocol, raw: &Measurements) -> Vec<RunEvent> {
    let [load, serve] = protocol.series();
    let sent = raw.load.lines.iter().map(|line| event(trial, (PathSide::Tx, load), line));
    let received = raw.serve.lines.iter().map(|line| event(trial, (PathSide::Rx, serve), line));
    sent.chain(received).collect()
}

fn event(trial: u32, (side, name): (PathSide, &str), line: &Line) -> RunEvent {
    let done = if side == PathSide::Tx { line.attempted.unwrap_or(line.done) } else { line.done };
    let mut values = BTreeMap::from([(name.to_owned(), done as f64)]);
    let mut each = |metric: &str, entity: &str, list: &[u64]| {
        values.extend(
            list.iter().enumerate().map(|(i, n)| (format!("{metric}/{entity}{i}"), *n as f64)),
        );
    };
    each(name, "thread", &line.thread_done);
    each(name, "socket", &line.socket_done);
    each("rmem_bytes", "socket", &line.socket_rmem_bytes);
    each("drops_packets", "socket", &line.socket_drops_packets);
    values.extend(line.blocked_s.map(|blocked| ("blocked_s".to_owned(), blocked)));
    RunEvent { t_ns: line.t_ns as i64, what: What::Sample { trial, side, values } }
}
