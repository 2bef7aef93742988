//! A trial over TCP: its ledger in segments, its evidence, and the metrics of streams and of requests with replies.

use std::collections::BTreeMap;

use rxpath_core::{Side, Warning};
use rxpath_record::counters::Moved;
use rxpath_record::evidence::Evidence;
use rxpath_record::ledger::{Ledger, SegmentInput, segments_between};
use rxpath_stats::quantile::needed_values;

use super::receivers::Whole;
use super::{Composed, Spans, known, per_unit, programs, served};
use crate::scenario::spec::{Protocol, Variant};
use crate::testbed::Testbed;
use crate::trial::evidence::gather;
use crate::trial::result::WorkloadResult;
use crate::trial::runner::Measurements;

/// Quantiles of a trial, with the share of its times above them.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.1), ("p99", 0.01), ("p999", 0.001)];
/// The times of a client.
const TIMES: [&str; 2] = ["service_time", "response_time"];

/// Ledger and evidence of a trial over TCP.
pub(super) fn compose(
    variant: &Variant,
    testbed: &dyn Testbed,
    raw: &Measurements,
    spans: &Spans,
) -> Composed {
    let moved = raw.counters[1].since(&raw.counters[0]);
    let input = SegmentInput {
        path: super::path(testbed, &raw.hooks),
        mtu_bytes: variant.lab.mtu_bytes,
        nobody_listens: variant.serve.own().is_some_and(|own| own.absent),
    };
    let ledger = Ledger::of_segments(&input, &moved);
    let [offered_pps, delivered_pps] = rates(&input, raw);
    let known = Evidence {
        offered_pps,
        delivered_pps,
        polling_sides: polling(variant),
        ledger: ledger.clone(),
        ..known(testbed, raw, spans)
    };
    let evidence = gather(&raw.window, programs(raw, spans).seen(), None, known);
    let warnings = retransmitted(&moved).filter(|ratio| *ratio > MANY).map(|ratio| {
        let text = format!("{:.1} % of the segments were sent again", ratio * 100.0);
        Warning::new("retransmissions", text).because("segments were lost, or thought lost")
    });
    let pairs = testbed.pairs();
    let whole = Whole {
        variant,
        testbed,
        raw,
        spans,
        pairs: &pairs,
        moved: &moved,
        ledger: &ledger,
        evidence: &evidence,
    };
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

/// Share of retransmissions above which a trial is about losses, whatever it was meant to be about.
const MANY: f64 = 0.01;

/// Whether the receiver's side set the pace: always, unless a schedule did.
fn closed(variant: &Variant) -> bool {
    let options = variant.load.own().map(|own| &own.options);
    options.is_none_or(|options| options.rate.is_none() && options.bitrate.is_none())
}

/// Sides whose threads never sleep: a client with a schedule spins towards its next request.
pub(super) fn polling(variant: &Variant) -> Vec<Side> {
    let load = variant.load.own().map(|own| &own.options);
    let spins = load.is_some_and(|it| it.rate.is_some() && it.pacing.as_deref() != Some("sleep"));
    let serve = variant.serve.own().map(|own| &own.options);
    let polls = serve.is_some_and(|it| it.busy_poll.is_some() || it.epoll_timeout == Some(0));
    let sides = [(Side::Tx, spins), (Side::Rx, polls)];
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
pub(super) fn per_second_of_the_client(raw: &Measurements, spans: &Spans) -> Option<f64> {
    let sides = [(&raw.load, &spans.load), (&raw.serve, &spans.serve)];
    let own = sides.into_iter().find(|(side, span)| side.own_lines && span.seconds() > 0.0);
    own.map(|(_, span)| span.per_second(span.done))
}

/// A client's times as `service_time_p50_us` and so on, without quantiles that rest on too few. They are of the whole
/// trial.
pub(super) fn times(result: &WorkloadResult, all: &mut BTreeMap<String, f64>) {
    for (name, found) in TIMES.into_iter().zip(result.times()) {
        let Some(found) = found else { continue };
        all.insert(format!("{name}_mean_us"), found.mean);
        all.insert(format!("{name}_max_us"), found.max);
        let values = [found.p50, found.p90, found.p99, found.p999];
        for ((quantile, above), value) in QUANTILES.into_iter().zip(values) {
            if found.samples_count as f64 >= needed_values(above) {
                all.insert(format!("{name}_{quantile}_us"), value);
            }
        }
    }
}

/// Which quantiles [`times`] leaves out.
pub(super) fn left_out(result: &WorkloadResult) -> Option<Warning> {
    let found = result.times().into_iter().flatten().next()?;
    let (quantile, above) = QUANTILES
        .into_iter()
        .find(|(_, above)| (found.samples_count as f64) < needed_values(*above))?;
    let needed = needed_values(above);
    let text = format!(
        "{quantile} of the times and higher quantiles are left out: {} requests were timed, {needed:.0} are needed",
        found.samples_count
    );
    let cure = "measure longer (trials.measure), or compare a lower quantile";
    Some(Warning::new("few-requests", text).because("too few requests lie above them").cure(cure))
}

/// What a foreign client calls the time from request to reply, and what it is here.
const FOREIGN: [(&str, &str); 3] = [
    ("load.latency_p50_us", "service_time_p50_us"),
    ("load.latency_p99_us", "service_time_p99_us"),
    ("load.latency_mean_us", "service_time_mean_us"),
];

/// Adds a foreign client's times under our names.
pub(super) fn foreign_times(all: &mut BTreeMap<String, f64>) {
    for (theirs, ours) in FOREIGN {
        if let Some(value) = all.get(theirs).copied() {
            all.entry(ours.into()).or_insert(value);
        }
    }
}

pub(super) fn metrics(
    variant: &Variant,
    evidence: &Evidence,
    raw: &Measurements,
    spans: &Spans,
    all: &mut BTreeMap<String, f64>,
) {
    if variant.protocol() == Protocol::TcpStream {
        stream(evidence, raw, spans, all);
    } else {
        transactions(evidence, raw, spans, all);
    }
    if let Some(ratio) = retransmitted(&raw.window.moved) {
        all.insert("retransmitted_ratio".into(), ratio);
    }
}

fn stream(evidence: &Evidence, raw: &Measurements, spans: &Spans, all: &mut BTreeMap<String, f64>) {
    let is_told = raw.serve.own_lines && spans.serve.seconds() > 0.0;
    let own = is_told.then(|| spans.serve.per_second(spans.serve.done) * 8.0);
    let theirs = ["serve.delivered_bps", "load.delivered_bps"];
    let Some(bps) = own.or(theirs.iter().find_map(|name| all.get(*name).copied())) else { return };
    all.insert("delivered_bps".into(), bps);
    let names = ["sender_cpu_ns_per_kib", "receiver_cpu_ns_per_kib"];
    per_unit(names, evidence, (1e9, bps / 8.0 / 1024.0), all);
}

fn transactions(
    evidence: &Evidence,
    raw: &Measurements,
    spans: &Spans,
    all: &mut BTreeMap<String, f64>,
) {
    times(&raw.load.result, all);
    foreign_times(all);
    let foreign = all.get("load.mean_tps").copied();
    let Some(tps) = per_second_of_the_client(raw, spans).or(foreign) else { return };
    all.insert("achieved_tps".into(), tps);
    let names = ["client_cpu_us_per_transaction", "server_cpu_us_per_transaction"];
    per_unit(names, evidence, (1e6, tps), all);
}

#[cfg(test)]
mod tests {
    use rxpath_load::quantiles::Quantiles;
    use rxpath_load::tcp::result::TransactionsResult;

    use super::*;
    use crate::scenario::{HostShape, parse, resolve};

    #[test]
    fn a_quantile_needs_ten_times_above_it() {
        let timed = |count: u64| {
            let quantiles = Quantiles { samples_count: count, p99: 9.0, ..Quantiles::default() };
            let result = WorkloadResult::Transactions(TransactionsResult {
                service_time_us: Some(quantiles),
                ..TransactionsResult::default()
            });
            let mut all = BTreeMap::new();
            times(&result, &mut all);
            let names = ["p50", "p90", "p99", "p999"].into_iter();
            let there = names.filter(|name| all.contains_key(&format!("service_time_{name}_us")));
            (there.collect::<Vec<_>>(), left_out(&result).map(|warning| warning.text))
        };
        assert_eq!(timed(10_000), (vec!["p50", "p90", "p99", "p999"], None));
        let (there, said) = timed(9_999);
        assert_eq!(there, ["p50", "p90", "p99"]);
        assert!(said.unwrap().starts_with("p999 of the times"), "it says which");
        assert_eq!(timed(999).0, ["p50", "p90"]);
        assert!(timed(3).1.unwrap().contains("3 requests were timed, 20 are needed"));
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
        assert_eq!(sides("epoll_timeout = 0\n"), [Side::Rx]);
        assert_eq!(sides("busy_poll = \"50us\"\n[load]\nrate = \"1k\"\n"), [Side::Tx, Side::Rx]);
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
