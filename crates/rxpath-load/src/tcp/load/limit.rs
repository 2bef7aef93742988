//! Which side limited a client's run, with the evidence.

use rxpath_core::number::grouped;

use crate::limit::{BUSY_RATIO, Limit, Who, any_busy, busy_text, first_four};
use crate::schedule::KEPT_RATIO;
use crate::tcp::connection::TcpSummary;
use crate::tcp::result::{ServerReport, ServerThread, ThreadResult};

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

    fn both_text(&self) -> String {
        let client = busy_text(self.threads, self.duration_s);
        let Some(server) = self.server else {
            return format!("client {client}, the server could not be asked");
        };
        let one = |thread: &ServerThread| {
            let place = thread.cpu.map_or("thread".into(), |cpu| format!("CPU {cpu}"));
            format!("{place} {:.0} % busy", 100.0 * thread.busy_ratio)
        };
        format!("client {client}, server {}", first_four(&server.threads, one))
    }
}

/// Of a stream whose sender's ends of the connections say `tcp`; `to_server`: the client is the sender.
pub(super) fn of_stream(side: &Side, tcp: Option<&TcpSummary>, to_server: bool) -> Limit {
    let busy = |here: bool| if here { side.client_busy() } else { side.server_busy() };
    let (sender_busy, receiver_busy) = (busy(to_server), busy(!to_server));
    let both = side.both_text();
    let waited = tcp.and_then(TcpSummary::rwnd_limited_ratio).unwrap_or(0.0);
    if waited >= WAITED_RATIO {
        let why =
            if receiver_busy { "" } else { ": the receiver reads late, or its buffer is small" };
        let evidence = format!(
            "the sender was limited by the receive window {:.0} % of the busy time (tcpi_rwnd_limited){why}; {both}",
            100.0 * waited
        );
        return Limit::new(Who::Receiver, evidence);
    }
    let waited = tcp.and_then(TcpSummary::sndbuf_limited_ratio).unwrap_or(0.0);
    if waited >= WAITED_RATIO && !sender_busy {
        let evidence = format!(
            "the send buffer was smaller than what the path could take {:.0} % of the busy time \
             (tcpi_sndbuf_limited): raise --sndbuf or net.ipv4.tcp_wmem; {both}",
            100.0 * waited
        );
        return Limit::new(Who::SendBuffer, evidence);
    }
    match (sender_busy, receiver_busy) {
        (true, false) => Limit::new(Who::Sender, both),
        (false, true) => Limit::new(Who::Receiver, both),
        (true, true) => {
            let why = "both sides are busy, and the sender's CPU runs both kernel paths";
            Limit::new(Who::Sender, format!("{why}; {both}"))
        }
        (false, false) => of_path(side.duration_s, tcp, &both),
    }
}

/// Neither side had its CPU or its buffers used up; `both`: how busy the two were.
fn of_path(duration_s: f64, tcp: Option<&TcpSummary>, both: &str) -> Limit {
    let Some(tcp) = tcp else { return Limit::new(Who::NotHere, both) };
    let window = match tcp.cwnd_packets.zip(tcp.rtt_us) {
        Some((cwnd, rtt)) => {
            format!("congestion window {cwnd:.0} packets, round-trip time {rtt:.0} us")
        }
        None => "congestion window unknown".into(),
    };
    if let Some(lost) = tcp.retransmits_total.filter(|lost| is_lossy(*lost, tcp)) {
        let evidence = format!("{} segments retransmitted, {window}; {both}", grouped(lost));
        return Limit::new(Who::Network, evidence);
    }
    let busy = tcp.busy_s.unwrap_or(0.0) / tcp.connections_count.max(1) as f64;
    if duration_s > 0.0 && busy / duration_s >= WAITED_RATIO {
        return Limit::new(Who::Network, format!("{window}, almost no loss; {both}"));
    }
    let why = "neither side used up its CPU, its window or its buffer";
    Limit::new(Who::NotHere, format!("{why}; {both}"))
}

/// Whether loss is more than the odd segment.
fn is_lossy(lost: u64, tcp: &TcpSummary) -> bool {
    let sent = tcp.acked_bytes.zip(tcp.mss_bytes).map(|(bytes, mss)| bytes as f64 / mss.max(1.0));
    lost as f64 > LOSS_RATIO * sent.unwrap_or(0.0) && lost > 0
}

/// Of transactions; `kept`: share of the schedule that was met.
pub(super) fn of_transactions(side: &Side, kept: Option<f64>, p50_us: Option<f64>) -> Limit {
    let busy = side.both_text();
    if let Some(kept) = kept.filter(|kept| *kept >= KEPT_RATIO) {
        let evidence = format!("{:.1} % of the schedule kept; {busy}", 100.0 * kept);
        return Limit::new(Who::Schedule, evidence);
    }
    match (side.client_busy(), side.server_busy()) {
        (true, false) => Limit::new(Who::Sender, busy),
        (false, true) => Limit::new(Who::Server, busy),
        (true, true) => Limit::new(Who::Sender, format!("both sides are busy; {busy}")),
        (false, false) => {
            let wait = p50_us.map(|us| format!(" (p50 {us:.1} us)")).unwrap_or_default();
            let why = format!("each connection waits for its response{wait}");
            Limit::new(Who::NotHere, format!("{why}, and no CPU is fully used; {busy}"))
        }
    }
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
