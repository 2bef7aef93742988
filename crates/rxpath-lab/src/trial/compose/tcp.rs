//! A trial over TCP: its ledger in segments, its evidence, and the metrics of streams and of requests with replies.

use rxpath_core::{PathSide, Warning};
use rxpath_load::pace::Pacing;
use rxpath_record::counters::Moved;
use rxpath_record::evidence::WindowEvidence;
use rxpath_record::ledger::{Ledger, OwnSegments, SegmentInput, segments_between};

use super::receivers::Whole;
use super::times::{foreign_times, times};
use super::{Composed, TrialSources, known, per_unit, programs, served};
use crate::output::Metrics;
use crate::scenario::spec::Variant;
use crate::trial::evidence::gather;
use crate::trial::measurements::Measurements;

/// Ledger and evidence of a trial over TCP.
pub(super) fn compose(trial: TrialSources<'_>) -> Composed {
    let TrialSources { variant, testbed, raw } = trial;
    let moved = raw.counters[1].since(&raw.counters[0]);
    let input = SegmentInput {
        path: super::path(testbed, &raw.hooks),
        mtu_bytes: variant.lab.mtu_bytes,
        nobody_listens: variant.serve.own().is_some_and(|own| own.absent),
        own: own_segments(raw),
    };
    let ledger = Ledger::of_segments(&input, &moved);
    let [offered_pps, delivered_pps] = rates(&input, raw);
    let known = WindowEvidence {
        offered_pps,
        delivered_pps,
        polling_sides: polling(variant),
        ledger: ledger.clone(),
        ..known(trial)
    };
    let evidence = gather(&raw.window, programs(trial), None, known);
    let warnings = retransmitted(&moved).filter(|ratio| *ratio > MANY).map(|ratio| {
        let text = format!("{:.1} % of the segments were sent again", ratio * 100.0);
        Warning::new("retransmissions", text).because("segments were lost, or thought lost")
    });
    let pairs = testbed.pairs();
    let whole = Whole { trial, pairs: &pairs, moved: &moved, ledger: &ledger, evidence: &evidence };
    let receivers = served::each(whole, &input);
    Composed {
        ledger,
        evidence,
        receivers,
        pairs: Vec::new(),
        pair_rates: served::pairs(variant, testbed, raw),
        moved,
        blocked: closed(variant),
        warnings: warnings.into_iter().collect(),
    }
}

/// What the sockets of the workload's own programs counted; a side that did not read them adds nothing.
fn own_segments(raw: &Measurements) -> Option<OwnSegments> {
    let [load, server] = [&raw.load, &raw.serve].map(served::own_sockets);
    let is_known = load.is_some() || server.is_some();
    is_known.then(|| OwnSegments { tx: load.unwrap_or_default(), rx: server.unwrap_or_default() })
}

/// Share of retransmissions above which a trial is about losses, whatever it was meant to be about.
const MANY: f64 = 0.01;

/// Whether the receiver's side set the pace: always, unless a schedule did.
fn closed(variant: &Variant) -> bool {
    let options = variant.load.own().map(|own| &own.options);
    options.is_none_or(|options| options.rate.is_none() && options.bitrate.is_none())
}

/// Sides whose threads never sleep: a client with a schedule spins towards its next request.
fn polling(variant: &Variant) -> Vec<PathSide> {
    let load = variant.load.own().map(|own| &own.options);
    let spins = load.is_some_and(|it| it.rate.is_some() && it.pacing != Some(Pacing::Sleep));
    let serve = variant.serve.own().map(|own| &own.options);
    let polls = serve.is_some_and(|it| it.busy_poll.is_some() || it.epoll_timeout == Some(0));
    let sides = [(PathSide::Tx, spins), (PathSide::Rx, polls)];
    sides.into_iter().filter_map(|(side, never_sleeps)| never_sleeps.then_some(side)).collect()
}

/// Segments per second of the window from the load's side to the server's: sent, and seen by its IP.
fn rates(input: &SegmentInput, raw: &Measurements) -> [f64; 2] {
    let seconds = raw.window.between.seconds();
    if seconds <= 0.0 {
        return [0.0; 2];
    }
    segments_between(input, &raw.window.moved).map(|segments| segments.max(0) as f64 / seconds)
}

/// Retransmitted segments of both sides as a share of those sent first.
fn retransmitted(moved: &Moved) -> Option<f64> {
    let both = |counter: &str| {
        ["tx", "rx"].iter().map(|side| moved.get(&format!("{side}/Tcp.{counter}"))).sum::<i64>()
    };
    let sent = both("OutSegs");
    (sent > 0).then(|| both("RetransSegs") as f64 / sent as f64)
}

/// What the client's own lines say, or the server's where the client prints none.
pub(super) fn per_second_of_the_client(raw: &Measurements) -> Option<f64> {
    let own = [&raw.load, &raw.serve].into_iter().filter(|side| side.own_lines);
    let told = own.filter_map(|side| raw.span(side)).find(|span| span.seconds() > 0.0);
    told.map(|span| span.per_second(span.done))
}

pub(super) fn metrics(trial: TrialSources<'_>, evidence: &WindowEvidence, all: &mut Metrics) {
    let TrialSources { variant, raw, .. } = trial;
    if variant.protocol().is_answered() {
        transactions(evidence, raw, all);
    } else {
        stream(evidence, raw, all);
    }
    if let Some(ratio) = retransmitted(&raw.window.moved) {
        all.insert("retransmitted_ratio".into(), ratio);
    }
}

fn stream(evidence: &WindowEvidence, raw: &Measurements, all: &mut Metrics) {
    let told = raw.span(&raw.serve).filter(|span| raw.serve.own_lines && span.seconds() > 0.0);
    let own = told.map(|span| span.per_second(span.done) * 8.0);
    let theirs = ["serve.delivered_bps", "load.delivered_bps"];
    let Some(bps) = own.or(theirs.iter().find_map(|name| all.get(*name).copied())) else { return };
    all.insert("delivered_bps".into(), bps);
    let names = ["sender_cpu_ns_per_kib", "receiver_cpu_ns_per_kib"];
    per_unit(names, evidence, (1e9, [bps / 8.0 / 1024.0; 2]), all);
}

fn transactions(evidence: &WindowEvidence, raw: &Measurements, all: &mut Metrics) {
    let errors = raw.load.result.done().map(|(_, errors)| errors as f64);
    all.extend(errors.map(|errors| ("errors_count".to_owned(), errors)));
    times(&raw.load.result, all);
    foreign_times(all);
    let foreign = all.get("load.mean_tps").copied();
    let Some(tps) = per_second_of_the_client(raw).or(foreign) else { return };
    all.insert("achieved_tps".into(), tps);
    let names = ["client_cpu_us_per_transaction", "server_cpu_us_per_transaction"];
    per_unit(names, evidence, (1e6, [tps; 2]), all);
}

#[cfg(test)]
mod tests {
    use rxpath_load::tcp::connection::TcpSummary;
    use rxpath_load::tcp::result::{ServeResult, StreamResult, TransactionsResult};
    use rxpath_record::ledger::SocketSegments;

    use super::*;
    use crate::scenario::{HostShape, parse, resolve};
    use crate::trial::result::WorkloadResult;
    use crate::trial::side::SideMeasurements;

    #[test]
    fn segments_of_own_sockets_are_those_of_each_side_that_read_them() {
        let tcp = |sent, received| {
            let (sent_packets, received_packets) = (Some(sent), Some(received));
            Some(TcpSummary { sent_packets, received_packets, ..TcpSummary::default() })
        };
        let mut raw = Measurements::default();
        assert_eq!(own_segments(&raw), None);
        raw.serve.result =
            WorkloadResult::TcpServe(ServeResult { tcp: tcp(500, 900), ..ServeResult::default() });
        let server = SocketSegments { sent_packets: 500, received_packets: 900 };
        let alone = OwnSegments { rx: server, ..OwnSegments::default() };
        assert_eq!(own_segments(&raw), Some(alone));
        raw.load.result =
            WorkloadResult::Stream(StreamResult { tcp: tcp(950, 490), ..StreamResult::default() });
        let load = SocketSegments { sent_packets: 950, received_packets: 490 };
        assert_eq!(own_segments(&raw), Some(OwnSegments { tx: load, rx: server }));
    }

    #[test]
    fn sides_that_never_sleep_are_known() {
        let sides = |text: &str| {
            let text = format!("question = \"?\"\n[serve]\nprotocol = \"http\"\n{text}");
            let file = parse(&text, "t", "t").unwrap();
            polling(&resolve(&file, &[], &HostShape::flat(2)).unwrap().variants[0])
        };
        assert_eq!(sides(""), []);
        assert_eq!(sides("epoll_timeout = 1000\n[load]\nrate = \"1k\"\npacing = \"sleep\"\n"), []);
        assert_eq!(sides("epoll_timeout = 0\n"), [PathSide::Rx]);
        assert_eq!(
            sides("busy_poll = \"50us\"\n[load]\nrate = \"1k\"\n"),
            [PathSide::Tx, PathSide::Rx]
        );
    }

    #[test]
    fn transactions_that_failed_are_counted_without_a_rate_too() {
        let errors = [("receive ECONNRESET", 3), ("connect ETIMEDOUT", 2)];
        let result = WorkloadResult::Transactions(TransactionsResult {
            errors_total: errors.map(|(name, count)| (name.to_owned(), count)).into(),
            ..TransactionsResult::default()
        });
        let load = SideMeasurements { result, ..SideMeasurements::default() };
        let raw = Measurements { load, ..Measurements::default() };
        let mut all = Metrics::new();
        transactions(&WindowEvidence::default(), &raw, &mut all);
        assert_eq!(all, [("errors_count".to_owned(), 5.0)].into());
    }

    #[test]
    fn a_stream_with_a_bitrate_has_a_schedule_of_its_own() {
        let closed = |protocol: &str, load: &str| {
            let text =
                format!("question = \"?\"\n[serve]\nprotocol = \"{protocol}\"\n[load]\n{load}\n");
            let file = parse(&text, "t", "t").unwrap();
            closed(&resolve(&file, &[], &HostShape::flat(2)).unwrap().variants[0])
        };
        assert!(!closed("tcp-stream", "bitrate = \"100M\""));
        assert!(closed("tcp-stream", ""));
        assert!(!closed("tcp-rr", "rate = \"1k\""));
        assert!(closed("tcp-rr", ""));
    }
}
