//! Text for TCP workloads: the line per second, sockets and TCP_INFO.

use std::collections::BTreeMap;

use rxpath_core::Bytes;
use rxpath_core::units::si;
use rxpath_load::tcp::connection::{ConnectionResult, TcpSummary};
use rxpath_load::tcp::result::Interval;
use rxpath_load::tcp::socket::SocketSettings;

use rxpath_core::units::grouped;

/// Rows between two headings.
const PAGE: u32 = 20;
/// Most connections in the text; `--json` has more.
const LISTED: usize = 8;

/// Prints rates from cumulative counters.
#[derive(Debug)]
pub struct TcpRates {
    split: bool,
    start_ns: u64,
    before: Interval,
    rows: u32,
}

impl TcpRates {
    /// Begins now.
    pub fn new(split: bool) -> Self {
        let start_ns = rxpath_load::engine::clock::now_ns();
        let before = Interval { t_ns: start_ns, ..Interval::default() };
        Self { split, start_ns, before, rows: 0 }
    }

    /// The row between the previous reading and this one; `None` if no time passed.
    pub fn row(&mut self, now: &Interval) -> Option<String> {
        let before = std::mem::replace(&mut self.before, now.clone());
        let span_s = now.t_ns.saturating_sub(before.t_ns) as f64 / 1e9;
        if span_s <= 0.0 {
            return None;
        }
        let mut text = String::new();
        if self.rows.is_multiple_of(PAGE) {
            text += &format!(
                "{:>8}  {:>11}  {:>11}  {:>12}  {:>6}  {:>9}  {:>8}  {:>10}\n",
                "s", "delivered", "sent", "transact./s", "conns", "rtt us", "cwnd", "retransm."
            );
        }
        self.rows += 1;
        let bps = |now: u64, before: u64| si((now - before) as f64 * 8.0 / span_s) + "b/s";
        let tps = (now.transactions_total - before.transactions_total) as f64 / span_s;
        let tcp = now.tcp.unwrap_or_default();
        let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.0}"));
        let again = tcp.retransmits_total.map_or("-".into(), grouped);
        text += &format!(
            "{:>8.1}  {:>11}  {:>11}  {:>12}  {:>6}  {:>9}  {:>8}  {:>10}\n",
            (now.t_ns - self.start_ns) as f64 / 1e9,
            bps(now.delivered_bytes, before.delivered_bytes),
            bps(now.sent_bytes, before.sent_bytes),
            grouped(tps.round() as u64),
            now.connections_count,
            number(tcp.rtt_us),
            number(tcp.cwnd_packets),
            again,
        );
        if self.split {
            text += &threads(now, &before, span_s);
        }
        Some(text)
    }
}

fn threads(now: &Interval, before: &Interval, span_s: f64) -> String {
    let mut text = String::new();
    let delta = |now: &[u64], before: &[u64], index: usize| {
        now.get(index).copied().unwrap_or(0) - before.get(index).copied().unwrap_or(0)
    };
    for index in 0..now.thread_delivered_bytes.len() {
        let bytes = delta(&now.thread_delivered_bytes, &before.thread_delivered_bytes, index);
        let sent = delta(&now.thread_sent_bytes, &before.thread_sent_bytes, index);
        let transactions =
            delta(&now.thread_transactions_total, &before.thread_transactions_total, index);
        text += &format!(
            "{:>14} {index}: delivered {}b/s, sent {}b/s, {} transactions/s\n",
            "thread",
            si(bytes as f64 * 8.0 / span_s),
            si(sent as f64 * 8.0 / span_s),
            grouped((transactions as f64 / span_s).round() as u64),
        );
    }
    text
}

/// `3 ECONNRESET, 1 EOF`.
pub fn kinds(map: &BTreeMap<String, u64>) -> String {
    map.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Socket options as text.
pub fn socket_text(s: &SocketSettings) -> String {
    let buffer = |asked: Option<u64>, got: u64| match asked {
        Some(_) => Bytes(got).to_string(),
        None => format!("{} at first, tuned by the kernel", Bytes(got)),
    };
    let mut text = format!(
        "{}; receive buffer {}; send buffer {}",
        s.congestion,
        buffer(s.rcvbuf_asked_bytes, s.rcvbuf_bytes),
        buffer(s.sndbuf_asked_bytes, s.sndbuf_bytes)
    );
    if s.nodelay {
        text += "; TCP_NODELAY";
    }
    if let Some(bps) = s.pacing_bps {
        text += &format!("; paced to {}b/s", si(bps as f64));
    }
    if let Some(mss) = s.mss_asked_bytes {
        text += &format!("; segments of at most {mss} bytes");
    }
    if let Some(bytes) = s.notsent_lowat_bytes {
        text += &format!("; at most {bytes} bytes not sent yet");
    }
    if let Some(poll) = s.busy_poll {
        text += &format!("; busy poll {} us", poll.poll_us);
    }
    text
}

/// `TCP_INFO` in a line.
pub fn tcp_text(tcp: &TcpSummary) -> String {
    let mut parts = Vec::new();
    if let Some(rtt) = tcp.rtt_us {
        let least = tcp.min_rtt_us.map(|us| format!(", least {us:.0}")).unwrap_or_default();
        parts.push(format!("round trip {rtt:.0} us{least}"));
    }
    if let Some(cwnd) = tcp.cwnd_packets {
        parts.push(format!("window {cwnd:.0} packets"));
    }
    if let Some(again) = tcp.retransmits_total {
        parts.push(format!("{again} sent again"));
    }
    if let Some(ooo) = tcp.ooo_packets.filter(|ooo| *ooo > 0) {
        parts.push(format!("{ooo} arrived out of order"));
    }
    if let Some(ratio) = tcp.rwnd_limited_ratio() {
        parts.push(format!("waited {:.0} % for the peer's window", 100.0 * ratio));
    }
    if let Some(ratio) = tcp.sndbuf_limited_ratio() {
        parts.push(format!("{:.0} % for the send buffer", 100.0 * ratio));
    }
    parts.join(", ")
}

/// The split over connections, if there are several.
pub fn connection_rows(connections: &[ConnectionResult]) -> String {
    if connections.len() < 2 {
        return String::new();
    }
    let mut text = String::new();
    for connection in connections.iter().take(LISTED) {
        let error = connection.error.as_deref().map(|e| format!(", lost: {e}")).unwrap_or_default();
        let done = if connection.transactions_total > 0 {
            format!("{} transactions", grouped(connection.transactions_total))
        } else {
            format!(
                "delivered {}, sent {}",
                Bytes(connection.delivered_bytes),
                Bytes(connection.sent_bytes)
            )
        };
        text += &format!("  {}: {done}{error}\n", connection.name);
    }
    if connections.len() > LISTED {
        text += &format!("  and {} more, see --json\n", connections.len() - LISTED);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_difference_of_two_readings() {
        let mut rates = TcpRates::new(true);
        let start = rates.start_ns;
        let at = |s: u64, bytes: u64| Interval {
            t_ns: start + s * 1_000_000_000,
            delivered_bytes: bytes,
            transactions_total: bytes / 100,
            thread_delivered_bytes: vec![bytes],
            ..Interval::default()
        };
        let first = rates.row(&at(1, 1_000_000)).unwrap();
        assert!(first.contains("delivered") && first.contains("8Mb/s"), "{first}");
        let second = rates.row(&at(3, 3_000_000)).unwrap();
        assert!(second.contains("8Mb/s") && second.contains("10,000"), "{second}");
        assert!(second.contains("thread 0: delivered 8Mb/s"), "{second}");
        assert!(rates.row(&at(3, 3_000_000)).is_none());
    }

    #[test]
    fn unknown_things_are_left_out() {
        assert_eq!(tcp_text(&TcpSummary::default()), "");
        let tcp =
            TcpSummary { rtt_us: Some(25.4), retransmits_total: Some(2), ..TcpSummary::default() };
        assert_eq!(tcp_text(&tcp), "round trip 25 us, 2 sent again");
    }
}
