//! The line per second of UDP workloads.

use std::net::SocketAddr;

use rxpath_core::number::si;
use rxpath_load::udp::result::Interval;
use rxpath_load::udp::wire::{frame_bytes, line_bytes};

use crate::output::rates::{CounterDelta, Rows, grouped, rows};

/// The heading of the rate of a receiver, which counts drops too.
pub const DELIVERED: &str = "delivered/s";

/// What the columns count, below their headings.
const UNITS: &str = "            datagrams     payload    payload  headers+FCS4   +gap 20 B\n";

/// Rows of datagrams, whose rate has this heading: `sent/s`, or [`DELIVERED`].
pub fn udp_rows(rate: &'static str, addr: SocketAddr, split: bool) -> Rows<Interval> {
    let columns = move |between: &CounterDelta<'_, Interval>| {
        let (packets, bytes) = (between.delta(|c| c.packets), between.delta(|c| c.bytes));
        let payload = if packets > 0 { bytes as f64 / packets as f64 } else { 0.0 };
        let bps = |per_packet: f64| si(between.per_s(|c| c.packets) * per_packet * 8.0);
        let mut columns = vec![
            (rate, 13, between.rate(|c| c.packets)),
            ("MiB/s", 9, between.mib_per_s(|c| c.bytes)),
            ("Mb/s", 9, format!("{:.2}", between.per_s(|c| c.bytes) * 8.0 / 1e6)),
            ("Eth frame b/s", 12, bps(frame_bytes(payload, addr))),
            ("Eth line b/s", 12, bps(line_bytes(payload, addr))),
        ];
        if rate == DELIVERED {
            let drops = between.delta(|c| c.socket_drops_packets.iter().sum());
            let are_counted = !between.now.socket_drops_packets.is_empty();
            let drops = if are_counted { grouped(drops) } else { String::new() };
            columns.push(("drops/tick", 11, drops));
        }
        columns
    };
    rows::<Interval>(UNITS, columns, split, |between| {
        between.parts("thread", |counters| &counters.thread_packets)
            + &between.parts("socket", |counters| &counters.socket_packets)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_difference_of_two_readings() {
        let mut row = udp_rows("sent/s", "10.0.0.1:1".parse().unwrap(), true);
        let start = rxpath_load::engine::clock::now_ns();
        let at = |s: u64, packets: u64| Interval {
            t_ns: start + s * 1_000_000_000,
            packets,
            bytes: packets * 32,
            thread_packets: vec![packets],
            ..Interval::default()
        };
        let first = row(&at(1, 1000)).unwrap();
        assert!(first.contains("sent/s"), "{first}");
        let second = row(&at(3, 5000)).unwrap();
        assert!(second.contains(" 2,000 "), "{second}");
        // 2,000/s of 78 and 98 bytes.
        assert!(second.contains("1.25M") && second.contains("1.57M"), "{second}");
        assert!(row(&at(3, 5000)).is_none());
    }
}
