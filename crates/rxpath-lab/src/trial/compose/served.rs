//! Several senders and receivers of TCP and HTTP: what each pair of them got done, and how far each receiver came.

use rxpath_core::PathSide;
use rxpath_record::counters::Moved;
use rxpath_record::hosts::PairRate;
use rxpath_record::ledger::{OwnSegments, SegmentInput, SocketSegments, segments_between};
use rxpath_stats::quantile::needed_values;

use super::TrialSources;
use super::receivers::{Alone, Reached, Whole, evidence};
use super::times::times;
use crate::hosts::pairs::HostPairs;
use crate::output::Metrics;
use crate::scenario::spec::{Protocol, Variant};
use crate::testbed::Testbed;
use crate::trial::measurements::Measurements;
use crate::trial::several;
use crate::trial::side::SideMeasurements;
use crate::trial::window::Span;

/// The latency of a receiver: that of its schedule, else that of its replies.
const P99: [&str; 2] = ["response_time_p99_us", "service_time_p99_us"];

/// What each sender got done with each of its receivers, where there are several of either.
pub(super) fn pairs(variant: &Variant, testbed: &dyn Testbed, raw: &Measurements) -> Vec<PairRate> {
    let pairs = testbed.pairs();
    let [senders, receivers] = [PathSide::Tx, PathSide::Rx].map(|side| testbed.hosts(side));
    let row = |(from, to): (usize, usize)| {
        let row = pair(variant.protocol(), client(&raw.load, &pairs, (from, to))?, raw)?;
        let (sender, receiver) = (senders.get(from)?.clone(), receivers.get(to)?.clone());
        Some(PairRate { sender, receiver, ..row })
    };
    pairs.each().filter_map(row).collect()
}

/// What a sender's program for one of its receivers left; nothing where there is one of both.
fn client<'a>(
    load: &'a SideMeasurements,
    pairs: &HostPairs,
    (sender, receiver): (usize, usize),
) -> Option<&'a SideMeasurements> {
    let (_, own) = load.parts.get(sender)?;
    let at = pairs.place(sender, receiver)?;
    if own.parts.is_empty() {
        return (at == 0).then_some(own);
    }
    own.parts.get(at).map(|(_, part)| part)
}

/// What a client of ours got done; its names are not filled in.
fn pair(protocol: Protocol, client: &SideMeasurements, raw: &Measurements) -> Option<PairRate> {
    let (done_total, errors_count) = client.result.done()?;
    let span = raw.span(client).unwrap_or_default();
    let [service, response] = client.result.times();
    let times = response.or(service);
    let timed_count = times.map_or(0, |times| times.samples_count);
    let are_enough = timed_count as f64 >= needed_values(0.01);
    Some(PairRate {
        metric: protocol.main_metric().into(),
        value: rate(protocol, &span),
        done_total,
        errors_count,
        timed_count,
        p99_us: times.filter(|_| are_enough).map(|times| times.p99),
        ..PairRate::default()
    })
}

/// What was done per second of a span, in the unit of the protocol's metric.
fn rate(protocol: Protocol, span: &Span) -> f64 {
    let done = span.per_second(span.done);
    if protocol.is_answered() { done } else { done * 8.0 }
}

/// What each of several receivers showed; nothing where there is one, and where some have no counters of their own.
pub(super) fn each(whole: Whole<'_>, input: &SegmentInput) -> Vec<Alone> {
    let parts = whole.trial.raw.serve.parts.len();
    let all: Option<Vec<Alone>> =
        reached(whole).into_iter().zip(0..parts).map(|it| alone(whole, input, it)).collect();
    all.unwrap_or_default()
}

fn alone(
    whole: Whole<'_>,
    input: &SegmentInput,
    (reached, index): (Reached, usize),
) -> Option<Alone> {
    let (name, receiver) = whole.trial.raw.serve.parts.get(index)?;
    let moved = whole.moved.of_receiver(name)?;
    let share = arrived(input, &moved) / arrived(input, whole.moved).max(1.0);
    let ledger = whole.ledger.of_receiving_host(&input_of(input, receiver), &moved, share);
    let evidence = evidence(whole, (index, share), &ledger, |_, moved, seconds| {
        if seconds > 0.0 { arrived(input, moved) / seconds } else { 0.0 }
    })?;
    Some(Alone { name: name.clone(), ledger, evidence, reached: Some(reached) })
}

/// The input of one receiver's ledger: of the workload's sockets it has the receiver's own.
fn input_of(all: &SegmentInput, receiver: &SideMeasurements) -> SegmentInput {
    let own = own_sockets(receiver).map(|rx| OwnSegments { rx, ..OwnSegments::default() });
    SegmentInput { own, ..all.clone() }
}

/// What the sockets of a program of the workload counted; `None` if it did not read them.
pub(super) fn own_sockets(program: &SideMeasurements) -> Option<SocketSegments> {
    let tcp = program.result.tcp()?;
    let (sent_packets, received_packets) = tcp.sent_packets.zip(tcp.received_packets)?;
    Some(SocketSegments { sent_packets, received_packets })
}

/// Segments that the receiver's IP saw.
fn arrived(input: &SegmentInput, moved: &Moved) -> f64 {
    let [_, arrived] = segments_between(input, moved);
    arrived.max(0) as f64
}

/// How far each receiver came.
fn reached(whole: Whole<'_>) -> Vec<Reached> {
    let TrialSources { variant, raw, .. } = whole.trial;
    let metric = variant.protocol().main_metric();
    let parts = 0..raw.serve.parts.len();
    let of_receiver = |index| metrics(variant.protocol(), raw, (whole.pairs, index));
    let all: Vec<_> = parts.map(of_receiver).collect();
    let highest =
        all.iter().filter_map(|(metrics, _)| metrics.get(metric).copied()).fold(0.0, f64::max);
    let one = |(metrics, target): (Metrics, Option<f64>)| {
        let target = target.filter(|target| *target > 0.0).unwrap_or(highest);
        // A receiver whose rate is not known, in a window with fewer than two of its lines, is not the one that limits.
        let rate = metrics.get(metric).copied().unwrap_or(target);
        let ratio = if target > 0.0 { (rate / target).min(1.0) } else { 0.0 };
        let p99_us = P99.iter().find_map(|name| metrics.get(*name).copied()).unwrap_or(0.0);
        Reached { metrics, ratio, p99_us }
    };
    all.into_iter().map(one).collect()
}

/// What one receiver did, by the names of the trial's metrics, and its target. Its rate is by its own lines, times and errors
/// are those of all its clients.
fn metrics(
    protocol: Protocol,
    raw: &Measurements,
    (pairs, receiver): (&HostPairs, usize),
) -> (Metrics, Option<f64>) {
    let senders = 0..raw.load.parts.len();
    let clients: Vec<&SideMeasurements> =
        senders.filter_map(|sender| client(&raw.load, pairs, (sender, receiver))).collect();
    let result = several::result_of(&clients);
    let mut all = Metrics::new();
    times(&result, &mut all);
    all.extend(result.done().map(|(_, errors)| ("errors_count".to_owned(), errors as f64)));
    let span = raw.serve.parts.get(receiver).and_then(|(_, part)| raw.span(part));
    all.extend(span.map(|span| (protocol.main_metric().to_owned(), rate(protocol, &span))));
    (all, result.rates().map(|it| it.target))
}

#[cfg(test)]
mod tests {
    use rxpath_load::http::load::result::LoadResult;
    use rxpath_load::tcp::connection::TcpSummary;
    use rxpath_load::tcp::result::ServeResult;
    use rxpath_record::evidence::WindowEvidence;
    use rxpath_record::ledger::Ledger;
    use rxpath_record::run::hlog;
    use rxpath_stats::Histogram;

    use super::*;
    use crate::scenario::{HostShape, parse, resolve};
    use crate::testbed::local::LocalTestbed;
    use crate::testbed::window::Windowed;
    use crate::trial::line::Line;
    use crate::trial::result::WorkloadResult;
    use crate::trial::window;
    use rxpath_live::observe::Between;

    /// A program that did so much in each second of two.
    fn program(each_second: u64, result: WorkloadResult, times_ns: &[u64]) -> SideMeasurements {
        let mut times = Histogram::of_times();
        for ns in times_ns {
            times.record(*ns);
        }
        let line = |second: u64| Line {
            t_ns: second * 1_000_000_000,
            done: second * each_second,
            ..Line::default()
        };
        SideMeasurements {
            lines: (0..3).map(line).collect(),
            result,
            histograms: vec![("response_time".into(), hlog::encoded(&times).unwrap())],
            ..SideMeasurements::default()
        }
    }

    fn http(requests_total: u64, target_rps: Option<f64>) -> WorkloadResult {
        WorkloadResult::HttpLoad(LoadResult {
            requests_total,
            target_rps,
            errors_total: [("timeout".to_owned(), 2)].into(),
            ..LoadResult::default()
        })
    }

    /// Two senders, each with a program for each of two receivers; the second receiver is slow.
    fn measurements(target_rps: Option<f64>) -> Measurements {
        let pair = |rps: u64, ns: u64| {
            program(rps, http(2 * rps, target_rps), &vec![ns; 2 * rps as usize])
        };
        let sender = |name: &str| {
            let parts = [("sut", pair(500, 50_000)), ("sut2", pair(300, 9_000_000))];
            let parts = parts.map(|(to, it)| (format!("{name}->{to}"), it)).into();
            (name.to_owned(), SideMeasurements { parts, ..SideMeasurements::default() })
        };
        let server = |name: &str, rps| (name.to_owned(), program(rps, WorkloadResult::None, &[]));
        let side = |parts| SideMeasurements { parts, ..SideMeasurements::default() };
        let between = Between { window_ns: [0, 2_000_000_000], ..Between::default() };
        Measurements {
            load: side(vec![sender("gen1"), sender("gen2")]),
            serve: side(vec![server("sut", 1_000), server("sut2", 600)]),
            window: Windowed { between, ..Windowed::default() },
            ..Measurements::default()
        }
    }

    #[test]
    fn the_sockets_of_a_receiver_s_ledger_are_its_own() {
        let tcp = TcpSummary {
            sent_packets: Some(500),
            received_packets: Some(900),
            ..TcpSummary::default()
        };
        let result =
            WorkloadResult::TcpServe(ServeResult { tcp: Some(tcp), ..ServeResult::default() });
        let of_all = SocketSegments { sent_packets: 9_000, received_packets: 9_000 };
        let own = Some(OwnSegments { tx: of_all, rx: of_all });
        let all = SegmentInput { own, ..SegmentInput::default() };
        let rx = SocketSegments { sent_packets: 500, received_packets: 900 };
        let of_one = OwnSegments { rx, ..OwnSegments::default() };
        assert_eq!(input_of(&all, &program(1, result, &[])).own, Some(of_one));
        assert_eq!(input_of(&all, &program(1, http(2, None), &[])).own, None);
    }

    #[test]
    fn a_pair_is_what_the_sender_s_program_for_the_receiver_did() {
        let (raw, pairs) = (measurements(None), HostPairs::all(2, 2));
        let of = |from, to| pair(Protocol::Http, client(&raw.load, &pairs, (from, to))?, &raw);
        let slow = of(1, 1).unwrap();
        assert_eq!((slow.value, slow.done_total, slow.errors_count), (300.0, Some(600), 2));
        assert_eq!(slow.metric, "achieved_rps");
        assert_eq!(of(0, 2), None, "there are two receivers");
        let one = Measurements::default();
        assert!(client(&one.load, &pairs, (0, 0)).is_none(), "one of both is no matrix");
        let senders = SideMeasurements {
            parts: vec![("gen1".into(), program(7, http(14, None), &[]))],
            ..SideMeasurements::default()
        };
        let of = |to| client(&senders, &pairs, (0, to)).is_some();
        assert!(of(0) && !of(1));
    }

    #[test]
    fn programs_of_a_sender_are_those_of_its_own_receivers() {
        let mut raw = measurements(None);
        // Each sender has one program, for the receiver that it is paired with.
        raw.load.parts[0].1.parts.truncate(1);
        raw.load.parts[1].1.parts.remove(0);
        let pairs = HostPairs::of(2, 2, |sender, receiver| sender == receiver);
        let done = |from, to| {
            let client = client(&raw.load, &pairs, (from, to))?;
            pair(Protocol::Http, client, &raw)?.done_total
        };
        assert_eq!([done(0, 0), done(0, 1)], [Some(1_000), None]);
        assert_eq!([done(1, 0), done(1, 1)], [None, Some(600)]);
        let (metrics, target) = metrics(Protocol::Http, &raw, (&pairs, 1));
        assert_eq!((metrics["errors_count"], target), (2.0, None), "of one client");
    }

    #[test]
    fn bytes_of_a_stream_are_bits_of_its_rate() {
        let program = program(1_000, WorkloadResult::None, &[]);
        let span = window::span(&program.lines, [0, u64::MAX]).unwrap();
        assert!((rate(Protocol::TcpStream, &span) - 8_000.0).abs() < 1e-9);
        assert!((rate(Protocol::TcpRr, &span) - 1_000.0).abs() < 1e-9);
    }

    #[test]
    fn a_receiver_s_times_are_those_of_all_its_clients() {
        let raw = measurements(None);
        let pairs = HostPairs::all(2, 2);
        let (fast, target) = metrics(Protocol::Http, &raw, (&pairs, 0));
        let (slow, _) = metrics(Protocol::Http, &raw, (&pairs, 1));
        assert_eq!((fast["achieved_rps"], slow["achieved_rps"], target), (1_000.0, 600.0, None));
        assert_eq!((fast["errors_count"], slow["errors_count"]), (4.0, 4.0));
        let p99 = |of: &Metrics| of["response_time_p99_us"];
        assert!(p99(&fast) < 60.0 && p99(&slow) > 8_000.0, "{fast:?} {slow:?}");
    }

    #[test]
    fn a_receiver_has_the_targets_of_all_its_clients() {
        let (raw, pairs) = (measurements(Some(500.0)), HostPairs::all(2, 2));
        assert_eq!(metrics(Protocol::Http, &raw, (&pairs, 1)).1, Some(1_000.0));
    }

    #[test]
    fn a_receiver_alone_knows_which_senders_are_other_machines() {
        let file = parse("question = \"q\"\n[load]\ncpu = 0\n[serve]\ncpu = 1", "t", "t").unwrap();
        let resolved = resolve(&file, &[], &HostShape::flat(4)).unwrap();
        let variant = &resolved.variants[0];
        let testbed = LocalTestbed::make(&variant.lab).unwrap();
        let mut raw = measurements(None);
        let [gen1, gen2] = ["gen1", "gen2"].map(|name| Some(name.to_owned()));
        raw.window.of_senders = vec![Between::default(), Between::default()];
        raw.window.apart = vec![vec![gen1.clone(), None], vec![gen1, gen2]];
        let (moved, ledger, pairs) = (Moved::default(), Ledger::default(), HostPairs::all(2, 2));
        let (all, testbed) = (WindowEvidence::default(), &testbed);
        let trial = TrialSources { variant, testbed, raw: &raw };
        let whole = Whole { trial, pairs: &pairs, moved: &moved, ledger: &ledger, evidence: &all };
        let machines = |receiver: usize| -> Vec<String> {
            let one = evidence(whole, (receiver, 0.5), &ledger, |_, _, _| 0.0).unwrap();
            one.sender_hosts.into_iter().map(|host| host.name).collect()
        };
        assert_eq!(machines(0), ["gen1"]);
        assert_eq!(machines(1), ["gen1", "gen2"]);
    }
}
