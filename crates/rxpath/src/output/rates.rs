//! The line per second of a running workload.

use std::net::SocketAddr;

pub use rxpath_core::units::grouped;
use rxpath_core::units::si;
use rxpath_load::udp::result::Interval;
use rxpath_load::udp::wire::{frame_bytes, line_bytes};

/// Prints rates from cumulative counters.
#[derive(Debug)]
pub struct Rates {
    verb: &'static str,
    addr: SocketAddr,
    split: bool,
    start_ns: u64,
    before: Option<Interval>,
    rows: u32,
}

/// Rows between two headings.
const PAGE: u32 = 20;

impl Rates {
    /// For counters of this kind.
    pub fn new(verb: &'static str, addr: SocketAddr, split: bool) -> Self {
        let start_ns = rxpath_load::engine::clock::now_ns();
        Self { verb, addr, split, start_ns, before: None, rows: 0 }
    }

    /// The row between the previous reading and this one; `None` if no time passed.
    pub fn row(&mut self, now: &Interval) -> Option<String> {
        let zero = Interval { t_ns: self.start_ns, ..Interval::default() };
        let before = self.before.take().unwrap_or(zero);
        let span_s = now.t_ns.saturating_sub(before.t_ns) as f64 / 1e9;
        self.before = Some(now.clone());
        if span_s <= 0.0 {
            return None;
        }
        let mut text = String::new();
        if self.rows.is_multiple_of(PAGE) {
            text += &heading(self.verb);
        }
        self.rows += 1;
        let packets = (now.packets - before.packets) as f64;
        let bytes = (now.bytes - before.bytes) as f64;
        let payload = if packets > 0.0 { bytes / packets } else { 0.0 };
        let per_s = |per_packet: f64| packets * per_packet * 8.0 / span_s;
        text += &format!(
            "{:>8.1}  {:>13}  {:>9.2}  {:>9.2}  {:>12}  {:>12}",
            (now.t_ns - self.start_ns) as f64 / 1e9,
            grouped((packets / span_s).round() as u64),
            bytes / span_s / 1_048_576.0,
            bytes * 8.0 / span_s / 1e6,
            si(per_s(frame_bytes(payload, self.addr))),
            si(per_s(line_bytes(payload, self.addr))),
        );
        let drops: u64 = sum(&now.socket_drops_packets) - sum(&before.socket_drops_packets);
        if !now.socket_drops_packets.is_empty() {
            text += &format!("  {:>11}", grouped(drops));
        }
        text.push('\n');
        if self.split {
            text += &parts("thread", &now.thread_packets, &before.thread_packets, span_s);
            text += &parts("socket", &now.socket_packets, &before.socket_packets, span_s);
        }
        Some(text)
    }
}

fn sum(values: &[u64]) -> u64 {
    values.iter().sum()
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

fn parts(name: &str, now: &[u64], before: &[u64], span_s: f64) -> String {
    let mut text = String::new();
    for (index, packets) in now.iter().enumerate() {
        let delta = packets - before.get(index).copied().unwrap_or(0);
        text += &format!("{name:>14} {index}: {:>9}/s\n", grouped((delta as f64 / span_s) as u64));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_difference_of_two_readings() {
        let mut rates = Rates::new("sent", "10.0.0.1:1".parse().unwrap(), true);
        let start = rates.start_ns;
        let at = |s: u64, packets: u64| Interval {
            t_ns: start + s * 1_000_000_000,
            packets,
            bytes: packets * 32,
            thread_packets: vec![packets],
            ..Interval::default()
        };
        let first = rates.row(&at(1, 1000)).unwrap();
        assert!(first.contains("sent/s") && first.contains(" 1,000 "), "{first}");
        let second = rates.row(&at(3, 5000)).unwrap();
        assert!(second.contains(" 2,000 "), "{second}");
        // 2,000/s of 78 and 98 bytes.
        assert!(second.contains("1.25M") && second.contains("1.57M"), "{second}");
        assert!(rates.row(&at(3, 5000)).is_none());
    }
}
