//! The interval lines of both programs as events of the run: the time series of the report.

use std::collections::BTreeMap;

use rxpath_core::Side;
use rxpath_load::udp::result::Interval;
use rxpath_record::event::{Event, What};

use crate::trial::conduct::Raw;

/// The samples of a trial, in the order of time per side.
pub fn events(trial: u32, raw: &Raw) -> Vec<Event> {
    let sides = [
        (Side::Tx, "offered_packets", &raw.load.lines),
        (Side::Rx, "delivered_packets", &raw.serve.lines),
    ];
    sides
        .iter()
        .flat_map(|(side, name, lines)| lines.iter().map(|line| event(trial, (*side, name), line)))
        .collect()
}

fn event(trial: u32, (side, name): (Side, &str), line: &Interval) -> Event {
    let packets =
        if side == Side::Tx { line.offered_packets.unwrap_or(line.packets) } else { line.packets };
    let mut values = BTreeMap::from([(name.to_owned(), packets as f64)]);
    let mut each = |metric: &str, entity: &str, list: &[u64]| {
        values.extend(
            list.iter().enumerate().map(|(i, n)| (format!("{metric}/{entity}{i}"), *n as f64)),
        );
    };
    each(name, "thread", &line.thread_packets);
    each(name, "socket", &line.socket_packets);
    each("rmem_bytes", "socket", &line.socket_rmem_bytes);
    each("drops_packets", "socket", &line.socket_drops_packets);
    if let Some(blocked) = line.blocked_s {
        values.insert("blocked_s".into(), blocked);
    }
    Event { t_ns: line.t_ns as i64, what: What::Sample { trial, side, values } }
}
