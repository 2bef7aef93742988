//! The line per second of UDP workloads.

use std::net::SocketAddr;

use rxpath_core::number::si;
use rxpath_load::udp::result::Interval;
use rxpath_load::udp::wire::{frame_bytes, line_bytes};

use crate::output::rates::{CounterDelta, Rows, grouped, rows};

/// Rows of datagrams that were `sent` or `delivered`.
pub fn udp_rows(verb: &'static str, addr: SocketAddr, split: bool) -> Rows<Interval> {
    rows(heading(verb), move |between| {
        let mut text = columns(between, addr);
        if split {
            text += &between.parts("thread", |counters| &counters.thread_packets);
            text += &between.parts("socket", |counters| &counters.socket_packets);
        }
        text
    })
}

fn columns(between: &CounterDelta<'_, Interval>, addr: SocketAddr) -> String {
    let (packets, bytes) = (between.delta(|c| c.packets), between.delta(|c| c.bytes));
    let payload = if packets > 0 { bytes as f64 / packets as f64 } else { 0.0 };
    let bps = |per_packet: f64| between.per_s(|c| c.packets) * per_packet * 8.0;
    let mut text = format!(
        "  {:>13}  {:>9.2}  {:>9.2}  {:>12}  {:>12}",
        between.rate(|c| c.packets),
        between.mib_per_s(|c| c.bytes),
        between.per_s(|c| c.bytes) * 8.0 / 1e6,
        si(bps(frame_bytes(payload, addr))),
        si(bps(line_bytes(payload, addr))),
    );
    if !between.now.socket_drops_packets.is_empty() {
        let drops = between.delta(|c| c.socket_drops_packets.iter().sum());
        text += &format!("  {:>11}", grouped(drops));
    }
    text + "\n"
}

fn heading(verb: &str) -> String {
    let drops = if verb == "delivered" { "   drops/tick" } else { "" };
    format!(
        "{:>8}  {:>13}  {:>9}  {:>9}  {:>12}  {:>12}{drops}\n",
        "s",
        format!("{verb}/s"),
        "MiB/s",
        "Mb/s",
        "Eth frame b/s",
        "Eth line b/s"
    ) + "            datagrams     payload    payload  headers+FCS4   +gap 20 B\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_difference_of_two_readings() {
        let mut row = udp_rows("sent", "10.0.0.1:1".parse().unwrap(), true);
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
