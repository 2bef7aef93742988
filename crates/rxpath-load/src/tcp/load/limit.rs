//! Which side limited a client's run, with the evidence.

use crate::limit::{BUSY_RATIO, Limit, Who, any_busy, busy_text};
use crate::tcp::connection::TcpSummary;
use crate::tcp::result::{ServerReport, ServerThread, ThreadResult};

/// A sender that did this share of what was asked has kept its schedule.
pub(super) const KEPT_RATIO: f64 = 0.995;
/// Waiting for this share of the busy time is what limits.
const WAITED_RATIO: f64 = 0.3;

/// Losing this share of the segments keeps a congestion window down.
const LOSS_RATIO: f64 = 0.001;

/// What is known of one side's threads.
pub(super) struct Side<'a> {
    pub(super) threads: &'a [ThreadResult],
    pub(super) duration_s: f64,
    pub(super) server: Option<&'a ServerReport>,
}

impl Side<'_> {
    fn client_busy(&self) -> bool {
        any_busy(self.threads, self.duration_s)
    }

    fn server_busy(&self) -> bool {
        let threads = self.server.map_or(&[][..], |server| &server.threads[..]);
        threads.iter().any(|thread| thread.busy_ratio >= BUSY_RATIO)
    }

    fn client_text(&self) -> String {
        format!("client {}", busy_text(self.threads, self.duration_s))
    }

    fn server_text(&self) -> String {
        let Some(server) = self.server else { return "the server could not be asked".into() };
        let one = |thread: &ServerThread| {
            let place = thread.cpu.map_or("thread".into(), |cpu| format!("CPU {cpu}"));
            format!("{place} {:.0} % busy", 100.0 * thread.busy_ratio)
        };
        let mut texts: Vec<String> = server.threads.iter().take(4).map(one).collect();
        if server.threads.len() > 4 {
            texts.push(format!("{} more threads", server.threads.len() - 4));
        }
        format!("server {}", texts.join(", "))
    }

    fn both_text(&self) -> String {
        format!("{}, {}", self.client_text(), self.server_text())
    }
}

/// Of a stream whose sender's ends of the connections say `tcp`; `to_server`: the client is the sender.
pub(super) fn of_stream(side: &Side, tcp: Option<&TcpSummary>, to_server: bool) -> Limit {
    let (sender_busy, receiver_busy) = if to_server {
        (side.client_busy(), side.server_busy())
    } else {
        (side.server_busy(), side.client_busy())
    };
    let waited = tcp.and_then(TcpSummary::rwnd_limited_ratio).unwrap_or(0.0);
    if waited >= WAITED_RATIO {
        let why =
            if receiver_busy { "" } else { ": the receiver reads late, or its buffer is small" };
        let evidence = format!(
            "the sender was limited by the receive window {:.0} % of the busy time (tcpi_rwnd_limited){why}; {}",
            100.0 * waited,
            side.both_text()
        );
        return Limit { who: Who::Receiver, evidence };
    }
    let waited = tcp.and_then(TcpSummary::sndbuf_limited_ratio).unwrap_or(0.0);
    if waited >= WAITED_RATIO && !sender_busy {
        let evidence = format!(
            "the send buffer was smaller than what the path could take {:.0} % of the busy time \
             (tcpi_sndbuf_limited): raise --sndbuf or net.ipv4.tcp_wmem; {}",
            100.0 * waited,
            side.both_text()
        );
        return Limit { who: Who::SendBuffer, evidence };
    }
    let who = match (sender_busy, receiver_busy) {
        (true, false) => Who::Sender,
        (false, true) => Who::Receiver,
        (true, true) => {
            let evidence = format!(
                "both sides are busy, and the sender's CPU runs both kernel paths; {}",
                side.both_text()
            );
            return Limit { who: Who::Sender, evidence };
        }
        (false, false) => return of_path(side, tcp),
    };
    Limit { who, evidence: side.both_text() }
}

/// Neither side had its CPU or its buffers used up.
fn of_path(side: &Side, tcp: Option<&TcpSummary>) -> Limit {
    let Some(tcp) = tcp else {
        return Limit { who: Who::NotHere, evidence: side.both_text() };
    };
    let window = |tcp: &TcpSummary| {
        let (cwnd, rtt) = tcp.cwnd_packets.zip(tcp.rtt_us)?;
        Some(format!("congestion window {cwnd:.0} packets, round-trip time {rtt:.0} us"))
    };
    let window = window(tcp).unwrap_or_else(|| "congestion window unknown".into());
    if let Some(lost) = tcp.retransmits_total.filter(|lost| is_lossy(*lost, tcp)) {
        let evidence = format!("{lost} segments retransmitted, {window}; {}", side.both_text());
        return Limit { who: Who::Network, evidence };
    }
    let busy = tcp.busy_s.unwrap_or(0.0) / tcp.connections_count.max(1) as f64;
    if side.duration_s > 0.0 && busy / side.duration_s >= WAITED_RATIO {
        let evidence = format!("{window}, almost no loss; {}", side.both_text());
        return Limit { who: Who::Network, evidence };
    }
    let evidence =
        format!("neither side used up its CPU, its window or its buffer; {}", side.both_text());
    Limit { who: Who::NotHere, evidence }
}

/// Whether loss is more than the odd segment.
fn is_lossy(lost: u64, tcp: &TcpSummary) -> bool {
    let sent = tcp.acked_bytes.zip(tcp.mss_bytes).map(|(bytes, mss)| bytes as f64 / mss.max(1.0));
    lost as f64 > LOSS_RATIO * sent.unwrap_or(0.0) && lost > 0
}

/// Of transactions; `kept`: share of the schedule that was met.
pub(super) fn of_transactions(side: &Side, kept: Option<f64>, p50_us: Option<f64>) -> Limit {
    let busy = side.both_text();
    if let Some(kept) = kept
        && kept >= KEPT_RATIO
    {
        return Limit {
            who: Who::Schedule,
            evidence: format!("{:.1} % of the schedule kept; {busy}", 100.0 * kept),
        };
    }
    let who = match (side.client_busy(), side.server_busy()) {
        (true, false) => Who::Sender,
        (false, true) => Who::Server,
        (true, true) => {
            return Limit { who: Who::Sender, evidence: format!("both sides are busy; {busy}") };
        }
        (false, false) => {
            let wait = p50_us.map(|us| format!(" (p50 {us:.1} us)")).unwrap_or_default();
            let evidence = format!(
                "each connection waits for its response{wait}, and no CPU is fully used; {busy}"
            );
            return Limit { who: Who::NotHere, evidence };
        }
    };
    Limit { who, evidence: busy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::ThreadUsage;

    fn threads(busy_s: f64) -> [ThreadResult; 1] {
        [ThreadResult {
            usage: ThreadUsage {
                seen_cpus: vec![0],
                cpu_system_s: busy_s,
                ..ThreadUsage::default()
            },
            ..ThreadResult::default()
        }]
    }

    fn server(busy_ratio: f64) -> ServerReport {
        ServerReport {
            threads: vec![ServerThread { cpu: Some(1), busy_ratio }],
            ..ServerReport::default()
        }
    }

    fn tcp(rwnd_s: f64, sndbuf_s: f64, retransmits: u64) -> TcpSummary {
        TcpSummary {
            connections_count: 1,
            busy_s: Some(10.0),
            rwnd_limited_s: Some(rwnd_s),
            sndbuf_limited_s: Some(sndbuf_s),
            retransmits_total: Some(retransmits),
            cwnd_packets: Some(20.0),
            rtt_us: Some(100.0),
            ..TcpSummary::default()
        }
    }

    fn judge(client_s: f64, server_busy: f64, tcp: &TcpSummary, to_server: bool) -> Limit {
        let (threads, server) = (threads(client_s), server(server_busy));
        let side = Side { threads: &threads, duration_s: 10.0, server: Some(&server) };
        of_stream(&side, Some(tcp), to_server)
    }

    #[test]
    fn each_kind_of_evidence_names_its_side() {
        let limit = judge(2.0, 0.2, &tcp(8.3, 0.0, 0), true);
        assert_eq!(limit.who, Who::Receiver);
        assert!(limit.evidence.contains("83 % of the busy time (tcpi_rwnd_limited)"), "{limit}");
        assert!(limit.evidence.contains("server CPU 1 20 % busy"), "{limit}");
        assert_eq!(judge(2.0, 0.2, &tcp(0.0, 9.0, 0), true).who, Who::SendBuffer);
        assert_eq!(judge(9.9, 0.2, &tcp(0.0, 9.0, 0), true).who, Who::Sender);
        assert_eq!(judge(9.9, 0.2, &tcp(0.0, 0.0, 0), true).who, Who::Sender);
        assert_eq!(judge(9.9, 0.2, &tcp(0.0, 0.0, 0), false).who, Who::Receiver);
        assert_eq!(judge(2.0, 0.99, &tcp(0.0, 0.0, 0), true).who, Who::Receiver);
        let lossy = judge(2.0, 0.2, &tcp(0.0, 0.0, 77), true);
        assert!(lossy.who == Who::Network && lossy.evidence.contains("77 segments"), "{lossy}");
        assert_eq!(judge(2.0, 0.2, &tcp(0.0, 0.0, 0), true).who, Who::Network);
    }

    #[test]
    fn transactions_are_limited_by_a_cpu_the_schedule_or_the_wait() {
        let judge = |client_s, server_busy, kept| {
            let (threads, server) = (threads(client_s), server(server_busy));
            let side = Side { threads: &threads, duration_s: 10.0, server: Some(&server) };
            of_transactions(&side, kept, Some(25.0)).who
        };
        assert_eq!(judge(9.9, 0.3, Some(0.999)), Who::Schedule);
        assert_eq!(judge(9.9, 0.3, Some(0.9)), Who::Sender);
        assert_eq!(judge(3.0, 0.97, None), Who::Server);
        assert_eq!(judge(3.0, 0.3, None), Who::NotHere);
    }
}
