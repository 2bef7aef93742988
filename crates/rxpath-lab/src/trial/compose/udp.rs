//! A trial of UDP: its ledger in datagrams and what its own programs say.

use rxpath_core::number::grouped;
use rxpath_core::{PathSide, Warning};
use rxpath_live::counted::conntrack;
use rxpath_record::evidence::WindowEvidence;
use rxpath_record::ledger::{Balance, Figure, Ledger, LedgerInput, ReceiverSaid};

use super::datagrams::{ledger_input, path};
use super::delay;
use super::receivers::{self, Whole};
use super::{Composed, TrialSources, known, per_unit, programs};
use crate::output::Metrics;
use crate::scenario::spec::Variant;
use crate::trial::evidence::gather;
use crate::trial::measurements::Measurements;
use crate::trial::waiting;
use crate::trial::window::Span;

/// Ledger and evidence of a UDP trial.
pub(super) fn compose(trial: TrialSources<'_>) -> Composed {
    let TrialSources { variant, testbed, raw } = trial;
    let (sent, served) = (raw.load.result.udp_load(), raw.serve.result.udp_serve());
    let moved = raw.counters[1].since(&raw.counters[0]);
    let mut input = ledger_input(variant, path(testbed, raw), (sent, served), &moved);
    input.sender.queued_packets = waiting::datagrams(raw.queued_bytes, variant);
    if input.receiver.by_kernel {
        foreign_drops(&mut input.receiver, raw);
    }
    input.reasoned = receivers::reasoned(variant, &raw.observed.reasons);
    let ledger = Ledger::from_counters(&input, &moved);
    let [offered_pps, delivered_pps] = rates(&input, &ledger, raw);
    let known = WindowEvidence {
        target_pps: sent.and_then(|load| load.target_pps),
        segments_per_send: sent.map(|load| load.segments_per_send),
        offered_pps,
        delivered_pps,
        conntrack: raw.conntrack.map(|[before, after]| conntrack(&before, &after)),
        probed: raw.probed.clone(),
        ledger: ledger.clone(),
        ..known(trial)
    };
    let by_receiver = served.map(|serve| (serve, raw.serve.lines.as_slice()));
    let evidence = gather(&raw.window, programs(trial), by_receiver, known);
    let blocked = sent.is_some_and(|load| load.blocked_s > 0.0);
    let (hosts, pairs) = (testbed.pairs(), receivers::pairs(testbed, raw));
    let whole = Whole { trial, pairs: &hosts, moved: &moved, ledger: &ledger, evidence: &evidence };
    let receivers = receivers::each(whole, &pairs);
    let duplicates = served.map_or(0, |serve| serve.sequence.duplicate_packets);
    let text = format!("{} datagrams came twice", grouped(duplicates));
    let twice = (duplicates > 0).then(|| Warning::new("duplicates", text));
    let mut warnings: Vec<Warning> = twice.into_iter().collect();
    warnings.extend(served.and_then(|served| delay::refused(served, raw.delay_error)));
    warnings.extend(unread_at_close(variant, &ledger));
    warnings.extend(ledger.inexact.iter().map(|bounds| {
        let cure = "measure with programs that count datagrams themselves: `rxpath load udp`, `rxpath serve udp`";
        Warning::new("ledger-bounds", bounds.to_string()).cure(cure)
    }));
    let pair_rates = Vec::new();
    Composed { ledger, evidence, receivers, pairs, pair_rates, moved, blocked, warnings }
}

/// Offered and delivered datagrams per second of the window. Where the counters of a foreign program's socket count
/// aggregates, what IP saw stands for them.
fn rates(input: &LedgerInput, ledger: &Ledger, raw: &Measurements) -> [f64; 2] {
    let [load, serve] = [&raw.load, &raw.serve].map(|side| raw.span(side).unwrap_or_default());
    let rate = |span: &Span, own: u64, by_ip: bool| {
        span.per_second(span.arrived.filter(|_| by_ip).unwrap_or(own))
    };
    let has_bounds = ledger.inexact.iter().any(|it| it.figure == Figure::Delivered);
    let sent = input.sender.by_kernel && ledger.offered_packets != input.sender.offered_packets;
    let read =
        input.receiver.by_kernel && ledger.delivered_packets != input.receiver.delivered_packets;
    [rate(&load, load.attempted, sent), rate(&serve, serve.done, read && !has_bounds)]
}

/// The metrics that only datagrams have.
pub(super) fn metrics(evidence: &WindowEvidence, raw: &Measurements, all: &mut Metrics) {
    if let Some(served) = raw.serve.result.udp_serve() {
        delay::metrics(served, raw.delay_error, all);
    }
    all.insert("delivered_pps".into(), evidence.delivered_pps);
    all.insert("offered_pps".into(), evidence.offered_pps);
    let ledger = &evidence.ledger;
    if ledger.offered_packets > 0 {
        let lost = 1.0 - ledger.delivered_packets as f64 / ledger.offered_packets as f64;
        all.insert("loss_ratio".into(), lost);
    }
    if let Some([least, most]) = ledger.loss_bounds() {
        all.insert("loss_least_ratio".into(), least);
        all.insert("loss_most_ratio".into(), most);
    }
    let names = ["sender_cpu_ns_per_packet", "receiver_cpu_ns_per_packet"];
    per_unit(names, evidence, (1e9, [evidence.offered_pps, evidence.delivered_pps]), all);
    if let Some(target) = evidence.target_pps.filter(|target| *target > 0.0) {
        all.insert("achieved_ratio".into(), evidence.offered_pps / target);
    }
    let threads = evidence.sender_threads.len().max(1) as f64;
    if evidence.window_s > 0.0 {
        all.insert("blocked_ratio".into(), evidence.sender_blocked_s / evidence.window_s / threads);
    }
}

/// What the sockets of foreign receivers dropped.
fn foreign_drops(receiver: &mut ReceiverSaid, raw: &Measurements) {
    let read: Option<Vec<Vec<u64>>> = raw.foreign_drops.iter().cloned().collect();
    receiver.socket_drops = read.filter(|all| !all.is_empty()).map(|all| all.concat());
    if receiver.socket_drops.is_none() {
        receiver.socket_drops = sampled_drops(raw);
        receiver.drops_are_sampled = receiver.socket_drops.is_some();
    }
}

/// The drops of a foreign receiver's sockets as they were sampled last: it closed them before the load had ended.
fn sampled_drops(raw: &Measurements) -> Option<Vec<u64>> {
    let series = raw.samples.iter().flat_map(|samples| &samples.series);
    let drops = series.filter(|one| one.side == PathSide::Rx && one.metric == "drops_packets");
    let last: Vec<u64> =
        drops.filter_map(|one| one.values.iter().rev().find_map(|it| *it)).collect();
    (!last.is_empty()).then_some(last)
}

/// What a foreign receiver leaves unread when it closes its socket is in no counter of the kernel.
fn unread_at_close(variant: &Variant, ledger: &Ledger) -> Option<Warning> {
    let Balance::Missing(_) = ledger.balance() else { return None };
    variant.serve.is_external().then(|| {
        let (left, name) = (ledger.unaccounted(), &variant.name);
        let text = format!("{left} datagrams of {name} are not accounted for");
        Warning::new("unread-at-close", text)
            .because(
                "the receiver is a foreign program that closed its socket with datagrams still in it, and \
                 udp_destroy_sock counts those nowhere",
            )
            .cure("receive with `rxpath serve udp`, which drains first")
    })
}

#[cfg(test)]
mod tests {
    use rxpath_record::ledger::Inexact;
    use rxpath_record::samples::{SampleSeries, TrialSamples};

    use super::*;

    #[test]
    fn drops_of_foreign_sockets_are_sampled_ones_where_one_receiver_had_closed_its_own() {
        let series = SampleSeries {
            side: PathSide::Rx,
            entity: "socket0".into(),
            metric: "drops_packets".into(),
            counter: true,
            values: vec![Some(3), Some(9), None],
        };
        let samples = Some(TrialSamples { series: vec![series], ..TrialSamples::default() });
        let mut raw = Measurements { samples, ..Measurements::default() };
        let of = |raw: &Measurements| {
            let mut receiver = ReceiverSaid::default();
            foreign_drops(&mut receiver, raw);
            (receiver.socket_drops, receiver.drops_are_sampled)
        };
        assert_eq!(of(&raw), (Some(vec![9]), true));
        raw.foreign_drops = vec![Some(vec![1]), None];
        assert_eq!(of(&raw), (Some(vec![9]), true), "one was closed");
        raw.foreign_drops = vec![Some(vec![1]), Some(vec![2, 3])];
        assert_eq!(of(&raw), (Some(vec![1, 2, 3]), false));
        assert_eq!(of(&Measurements::default()), (None, false));
    }

    #[test]
    fn the_loss_has_bounds_where_an_end_of_the_ledger_has_them() {
        let of = |inexact: Vec<Inexact>| {
            let (offered_packets, delivered_packets) = (1_000, 500);
            let ledger =
                Ledger { offered_packets, delivered_packets, inexact, ..Ledger::default() };
            let evidence = WindowEvidence { ledger, ..WindowEvidence::default() };
            let mut all = std::collections::BTreeMap::new();
            metrics(&evidence, &Measurements::default(), &mut all);
            ["loss_ratio", "loss_least_ratio", "loss_most_ratio"].map(|name| all.get(name).copied())
        };
        assert_eq!(of(Vec::new()), [Some(0.5), None, None]);
        let (figure, why) = (Figure::Delivered, String::new());
        let bounds = Inexact { figure, least_packets: 500, most_packets: Some(750), why };
        assert_eq!(of(vec![bounds]), [Some(0.5), Some(0.25), Some(0.5)]);
    }
}
