//! Text for TCP workloads: the line per second, sockets and TCP_INFO.

use std::collections::BTreeMap;

use rxpath_core::Bytes;
use rxpath_core::number::si;
use rxpath_load::tcp::connection::{ConnectionResult, TcpSummary};
use rxpath_load::tcp::result::Interval;
use rxpath_load::tcp::socket::SocketSettings;

use crate::output::rates::{CounterDelta, RateColumn, Rows, grouped, rows};

/// Most connections in the text; `--json` has more.
const LISTED: usize = 8;

/// Rows of TCP workloads.
pub fn tcp_rows(split: bool) -> Rows<Interval> {
    rows("", columns, split, threads)
}

fn columns(between: &CounterDelta<'_, Interval>) -> Vec<RateColumn> {
    let bps = |of: fn(&Interval) -> u64| si(between.per_s(of) * 8.0) + "b/s";
    let tcp = between.now.tcp.unwrap_or_default();
    let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.0}"));
    vec![
        ("delivered", 11, bps(|c| c.delivered_bytes)),
        ("sent", 11, bps(|c| c.sent_bytes)),
        ("transact./s", 12, between.rate(|c| c.transactions_total)),
        ("conns", 6, between.now.connections_count.to_string()),
        ("rtt us", 9, number(tcp.rtt_us)),
        ("cwnd", 8, number(tcp.cwnd_packets)),
        ("retransm.", 10, tcp.retransmits_total.map_or("-".into(), grouped)),
    ]
}

fn threads(between: &CounterDelta<'_, Interval>) -> String {
    let thread = |index: usize| {
        let at = |values: &[u64]| values.get(index).copied().unwrap_or(0);
        format!(
            "{:>14} {index}: delivered {}b/s, sent {}b/s, {} transactions/s\n",
            "thread",
            si(between.per_s(|c| at(&c.thread_delivered_bytes)) * 8.0),
            si(between.per_s(|c| at(&c.thread_sent_bytes)) * 8.0),
            between.rate(|c| at(&c.thread_transactions_total)),
        )
    };
    (0..between.now.thread_delivered_bytes.len()).map(thread).collect()
}

/// `3 ECONNRESET, 1 EOF`.
pub fn kinds(map: &BTreeMap<String, u64>) -> String {
    let each = map.iter().map(|(name, count)| format!("{} {name}", grouped(*count)));
    each.collect::<Vec<_>>().join(", ")
}

/// Socket options as text.
pub fn socket_text(s: &SocketSettings) -> String {
    let buffer = |asked: Option<u64>, got: u64| match asked {
        Some(_) => Bytes(got).to_string(),
        None => format!("{} at first, tuned by the kernel", Bytes(got)),
    };
    let parts = [
        Some(s.congestion.clone()),
        Some(format!("receive buffer {}", buffer(s.rcvbuf_asked_bytes, s.rcvbuf_bytes))),
        Some(format!("send buffer {}", buffer(s.sndbuf_asked_bytes, s.sndbuf_bytes))),
        s.nodelay.then(|| "TCP_NODELAY".to_owned()),
        s.pacing_bps.map(|bps| format!("paced to {}b/s", si(bps as f64))),
        s.mss_asked_bytes.map(|mss| format!("segments of at most {mss} bytes")),
        s.notsent_lowat_bytes.map(|bytes| format!("at most {bytes} bytes not sent yet")),
        s.busy_poll.map(|poll| format!("busy poll {} us", poll.poll_us)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// `TCP_INFO` in a line.
pub fn tcp_text(tcp: &TcpSummary) -> String {
    let least = tcp.min_rtt_us.map(|us| format!(", least {us:.0}")).unwrap_or_default();
    let percent = |ratio: Option<f64>| ratio.map(|ratio| format!("{:.0} %", 100.0 * ratio));
    let parts = [
        tcp.rtt_us.map(|rtt| format!("round trip {rtt:.0} us{least}")),
        tcp.cwnd_packets.map(|cwnd| format!("window {cwnd:.0} packets")),
        tcp.retransmits_total.map(|again| format!("{again} sent again")),
        tcp.ooo_packets.filter(|ooo| *ooo > 0).map(|ooo| format!("{ooo} arrived out of order")),
        percent(tcp.rwnd_limited_ratio()).map(|it| format!("waited {it} for the peer's window")),
        percent(tcp.sndbuf_limited_ratio()).map(|it| format!("{it} for the send buffer")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
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
        let mut row = tcp_rows(true);
        let start = rxpath_load::engine::clock::now_ns();
        let at = |s: u64, bytes: u64| Interval {
            t_ns: start + s * 1_000_000_000,
            delivered_bytes: bytes,
            transactions_total: bytes / 100,
            thread_delivered_bytes: vec![bytes],
            ..Interval::default()
        };
        let first = row(&at(1, 1_000_000)).unwrap();
        assert!(first.contains("delivered"), "{first}");
        let second = row(&at(3, 3_000_000)).unwrap();
        assert!(second.contains("8Mb/s") && second.contains("10,000"), "{second}");
        assert!(second.contains("thread 0: delivered 8Mb/s"), "{second}");
        assert!(row(&at(3, 3_000_000)).is_none());
    }

    #[test]
    fn unknown_things_are_left_out() {
        assert_eq!(tcp_text(&TcpSummary::default()), "");
        let tcp =
            TcpSummary { rtt_us: Some(25.4), retransmits_total: Some(2), ..TcpSummary::default() };
        assert_eq!(tcp_text(&tcp), "round trip 25 us, 2 sent again");
    }
}
