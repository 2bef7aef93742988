//! Several senders and receivers: who sent how many datagrams to whom, what each receiver lost, and which of them limits
//! the trial.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rxpath_core::PathSide;
use rxpath_live::counted::packets_by_cpu;
use rxpath_live::live::reasoned::of_routing;
use rxpath_load::udp::load::options::LoadSettings;
use rxpath_load::udp::result::{LoadResult, ServeResult};
use rxpath_record::counters::Moved;
use rxpath_record::evidence::{CpuDistribution, WindowEvidence};
use rxpath_record::hosts::{HostTrial, PairPackets};
use rxpath_record::ledger::{DropReason, Ledger, Reasoned};
use rxpath_record::verdict::{DiagnosisVerdict, Stage};
use serde::Deserialize;

use super::datagrams::{ledger_input, path};
use super::{TrialSources, known, programs};
use crate::hosts::pairs::HostPairs;
use crate::output::Metrics;
use crate::scenario::spec::Variant;
use crate::testbed::Testbed;
use crate::trial::evidence::{SideSeen, gather};
use crate::trial::measurements::Measurements;
use crate::trial::result::WorkloadResult;

/// What one of several receivers showed.
pub(super) struct Alone {
    /// Its name.
    pub name: String,
    /// Its ledger.
    pub ledger: Ledger,
    /// The input of its diagnosis.
    pub evidence: WindowEvidence,
    /// How far it came over TCP or HTTP.
    pub reached: Option<Reached>,
}

/// How far one of several receivers came over TCP or HTTP.
#[derive(Default)]
pub(super) struct Reached {
    /// What it did, by the names of the trial's metrics.
    pub metrics: Metrics,
    /// Its rate as a share of its target; without a target, of the highest rate of a receiver.
    pub ratio: f64,
    /// 99th percentile of the times of its clients; 0 of none.
    pub p99_us: f64,
}

/// A trial of which the parts of its receivers are taken.
#[derive(Clone, Copy)]
pub(super) struct Whole<'a> {
    pub trial: TrialSources<'a>,
    /// Who sends to whom.
    pub pairs: &'a HostPairs,
    /// The counters over the whole trial.
    pub moved: &'a Moved,
    /// Of all receivers.
    pub ledger: &'a Ledger,
    /// Of all receivers.
    pub evidence: &'a WindowEvidence,
}

/// What each sender sent to each of its receivers, where there are several of either.
pub(super) fn pairs(testbed: &dyn Testbed, raw: &Measurements) -> Vec<PairPackets> {
    let pairs = testbed.pairs();
    if pairs.count() < 2 {
        return Vec::new();
    }
    let [senders, receivers] = [PathSide::Tx, PathSide::Rx].map(|side| testbed.hosts(side));
    let [loads, serves] = [&raw.load, &raw.serve].map(|side| side.programs().collect::<Vec<_>>());
    let pair = |(sender, receiver): (usize, usize)| {
        let load = loads.get(sender)?.result.udp_load()?;
        let serve = serves.get(receiver).or(serves.first());
        let of_it = pairs.senders_of(receiver).len();
        Some(PairPackets {
            sender: senders.get(sender)?.clone(),
            receiver: receivers.get(receiver)?.clone(),
            offered_packets: offered(load, |address| {
                testbed.receiver_at(address) == Some(receiver)
            }),
            delivered_packets: serve.and_then(|it| delivered(&it.result, sender, of_it)),
        })
    };
    pairs.each().filter_map(pair).collect()
}

/// What a sender offered to the addresses of one of its receivers; with one address it has one receiver.
fn offered(load: &LoadResult, is_it: impl Fn(std::net::IpAddr) -> bool) -> u64 {
    if load.destinations.is_empty() {
        return load.offered_packets;
    }
    let own = load.destinations.iter().filter(|destination| is_it(destination.to.ip()));
    own.map(|destination| destination.offered_packets).sum()
}

/// What a receiver read of one of so many senders that it has; `None` if it is another program, or datagrams are too short for
/// a number.
fn delivered(serve: &WorkloadResult, sender: usize, senders: usize) -> Option<u64> {
    let result: &ServeResult = match serve {
        WorkloadResult::None => return Some(0),
        other => other.udp_serve()?,
    };
    let sequence = &result.sequence;
    if senders < 2 {
        return Some(result.delivered_packets);
    }
    if (!sequence.checked && result.delivered_packets > 0) || sequence.untracked_packets > 0 {
        return None;
    }
    if sequence.senders.is_empty() {
        // Only sender 0 got through.
        let numbered = result.delivered_packets.saturating_sub(sequence.unnumbered_packets);
        return Some(if sender == 0 { numbered } else { 0 });
    }
    let own = sequence.senders.iter().filter(|one| usize::from(one.sender) == sender);
    Some(own.map(|one| one.packets).sum())
}

/// What each of several receivers showed; nothing where there is one, and where some have no counters of their own.
pub(super) fn each(whole: Whole<'_>, pairs: &[PairPackets]) -> Vec<Alone> {
    let parts = &whole.trial.raw.serve.parts;
    let all: Option<Vec<Alone>> = (0..parts.len()).map(|it| alone(whole, it, pairs)).collect();
    all.unwrap_or_default()
}

fn alone(whole: Whole<'_>, index: usize, pairs: &[PairPackets]) -> Option<Alone> {
    let TrialSources { variant, testbed, raw } = whole.trial;
    let (name, part) = raw.serve.parts.get(index)?;
    let moved = whole.moved.of_receiver(name)?;
    let offered = pairs.iter().filter(|pair| pair.receiver == *name);
    let offered: u64 = offered.map(|pair| pair.offered_packets).sum();
    let programs = (raw.load.result.udp_load(), part.result.udp_serve());
    let mut input = ledger_input(variant, path(testbed, raw), programs, &moved);
    input.sender.offered_packets = offered;
    input.sender.sent_packets = offered;
    input.sender.send_errors.clear();
    if input.receiver.by_kernel {
        input.receiver.socket_drops = raw.foreign_drops.get(index).cloned().flatten();
    }
    let watched = &raw.observed.by_receiver;
    let of_it = watched.get(index).filter(|_| watched.len() == raw.serve.parts.len());
    input.reasoned = of_it.and_then(|rows| reasoned(variant, rows));
    let ledger = whole.ledger.of_receiver(&input, &moved);
    let share = ledger.offered_packets as f64 / whole.ledger.offered_packets.max(1) as f64;
    let evidence =
        evidence(whole, (index, share), &ledger, |own, _, _| own.span.per_second(own.span.done))?;
    Some(Alone { name: name.clone(), ledger, evidence, reached: None })
}

/// What only the kernel's reasons show of the receiving side, where they were watched.
pub(super) fn reasoned(variant: &Variant, rows: &[DropReason]) -> Option<Vec<Reasoned>> {
    let of_side = rows.iter().filter(|row| row.side == PathSide::Rx.to_string());
    variant.observe.drops.then(|| of_routing(of_side))
}

/// What one receiver, which has this share of the load, showed in the window. `delivered_pps` knows its program, its counters
/// and the seconds.
pub(super) fn evidence(
    whole: Whole<'_>,
    (index, share): (usize, f64),
    ledger: &Ledger,
    delivered_pps: impl FnOnce(&SideSeen<'_>, &Moved, f64) -> f64,
) -> Option<WindowEvidence> {
    let raw = whole.trial.raw;
    let (name, part) = raw.serve.parts.get(index)?;
    let [loads, mut serves] = programs(whole.trial);
    let own = serves.swap_remove(index);
    let senders = whole.pairs.senders_of(index);
    let window = raw.window.alone(index, &senders);
    let moved = raw.window.moved.of_receiver(name).unwrap_or_default();
    let known = known(whole.trial);
    let spread = known.spread.clone().map(|all| CpuDistribution {
        flows: senders.first().and_then(|sender| flows_of(whole, *sender)),
        packets: packets_by_cpu(&moved),
        ..all
    });
    let known = WindowEvidence {
        target_pps: whole.evidence.target_pps.map(|all| all * share),
        segments_per_send: whole.evidence.segments_per_send,
        polling_sides: whole.evidence.polling_sides.clone(),
        offered_pps: whole.evidence.offered_pps * share,
        delivered_pps: delivered_pps(&own, &moved, window.between.seconds()),
        spread,
        ledger: ledger.clone(),
        ..known
    };
    let datagrams = part.result.udp_serve().map(|serve| (serve, part.lines.as_slice()));
    let loads = (0..).zip(loads).filter(|(sender, _)| senders.contains(sender));
    Some(gather(&window, [loads.map(|(_, load)| load).collect(), vec![own]], datagrams, known))
}

/// Flows of a sender to each of its receivers, which its flows take in turn.
fn flows_of(whole: Whole<'_>, sender: usize) -> Option<u64> {
    let load = &whole.trial.raw.load;
    let settings = load.parts.get(sender).map_or(&load.settings, |(_, part)| &part.settings);
    let flows = LoadSettings::deserialize(settings).ok()?.flows_count as u64;
    Some(flows / whole.pairs.receivers_of(sender).len().max(1) as u64)
}

/// The receiver that limits the trial. Of datagrams: the one that lost the largest share. Over TCP, which waits where UDP
/// loses: the one that reached the smallest share of its target, in whole percents; of equal ones that with the highest
/// p99. Of equal ones that with the busiest thread.
pub(super) fn limiting(all: &[Alone]) -> Option<&Alone> {
    let lost = |one: &Alone| {
        let ledger = &one.ledger;
        let missing = ledger.offered_packets.saturating_sub(ledger.delivered_packets);
        missing as f64 / ledger.offered_packets.max(1) as f64
    };
    let busy = |one: &Alone| {
        one.evidence.receiver_threads.iter().map(|thread| thread.running_ratio).fold(0.0, f64::max)
    };
    let rank = |one: &Alone| match &one.reached {
        Some(reached) => [-(reached.ratio * 100.0).round(), reached.p99_us, busy(one)],
        None => [lost(one), 0.0, busy(one)],
    };
    all.iter().max_by(|a, b| {
        let both = rank(a).into_iter().zip(rank(b));
        both.map(|(a, b)| a.total_cmp(&b)).fold(Ordering::Equal, Ordering::then)
    })
}

/// The verdict on the receiver that limits the trial, which it names.
pub(super) fn verdict(all: &[Alone]) -> Option<DiagnosisVerdict> {
    let one = limiting(all)?;
    let verdict = rxpath_diagnose::diagnose(&one.evidence);
    if verdict.stage == Stage::Sender {
        // It names the sender, and no receiver is the limit.
        return Some(verdict);
    }
    Some(DiagnosisVerdict { sentence: format!("{}: {}", one.name, verdict.sentence), ..verdict })
}

/// Puts what each receiver showed into its host's part of the trial.
pub(super) fn put(all: &[Alone], hosts: &mut BTreeMap<String, HostTrial>) {
    for one in all {
        let Some(host) = hosts.get_mut(&one.name) else { continue };
        host.ledger = Some(one.ledger.clone());
        match &one.reached {
            Some(reached) => host.metrics.clone_from(&reached.metrics),
            None => host.delivered_pps = Some(one.evidence.delivered_pps),
        }
    }
}

#[cfg(test)]
mod tests {
    use rxpath_load::udp::result::{DestinationResult, SenderPackets, Sequence};
    use rxpath_record::evidence::ThreadUse;

    use super::*;

    #[test]
    fn what_was_offered_is_told_by_the_receiver_s_addresses() {
        let to = |text: &str, offered_packets| DestinationResult {
            to: text.parse().unwrap(),
            offered_packets,
        };
        let load = LoadResult {
            offered_packets: 60,
            destinations: vec![to("192.0.2.1:9", 10), to("192.0.2.2:9", 20), to("192.0.2.3:9", 30)],
            ..LoadResult::default()
        };
        // The second receiver has the last two addresses.
        let is_second = |address: std::net::IpAddr| address.to_string() != "192.0.2.1";
        assert_eq!(offered(&load, is_second), 50);
        let one = LoadResult { offered_packets: 7, ..LoadResult::default() };
        assert_eq!(offered(&one, |_| false), 7, "one destination is that of the one receiver");
    }

    #[test]
    fn what_was_read_is_told_by_sender_as_far_as_datagrams_say_it() {
        let serve = |checked, senders: &[(u16, u64)]| {
            let senders = senders
                .iter()
                .map(|(sender, packets)| SenderPackets { sender: *sender, packets: *packets });
            WorkloadResult::UdpServe(ServeResult {
                delivered_packets: 30,
                sequence: Sequence {
                    checked,
                    unnumbered_packets: 2,
                    senders: senders.collect(),
                    ..Sequence::default()
                },
                ..ServeResult::default()
            })
        };
        let several = serve(true, &[(0, 11), (2, 17)]);
        let of = |serve: &WorkloadResult| [0, 1, 2].map(|sender| delivered(serve, sender, 3));
        assert_eq!(of(&several), [Some(11), Some(0), Some(17)]);
        assert_eq!(of(&serve(true, &[])), [Some(28), Some(0), Some(0)], "sender 0 alone came");
        assert_eq!(of(&serve(false, &[])), [None; 3], "too short for a number");
        assert_eq!(delivered(&serve(false, &[]), 0, 1), Some(30), "one sender sent all");
        assert_eq!(of(&WorkloadResult::None), [Some(0); 3], "nobody listened");
    }

    #[test]
    fn the_receiver_that_lost_most_speaks_for_the_trial() {
        let of = |name: &str, delivered_packets, running_ratio| Alone {
            name: name.into(),
            ledger: Ledger { offered_packets: 100, delivered_packets, ..Ledger::default() },
            evidence: WindowEvidence {
                receiver_threads: vec![ThreadUse { running_ratio, ..ThreadUse::default() }],
                ..WindowEvidence::default()
            },
            reached: None,
        };
        let named = |all: &[Alone]| limiting(all).map(|one| one.name.clone());
        let all = [of("sut", 90, 0.9), of("sut2", 60, 0.1), of("sut3", 95, 1.0)];
        assert_eq!(named(&all).as_deref(), Some("sut2"));
        let all = [of("sut", 100, 0.9), of("sut2", 100, 0.1)];
        assert_eq!(named(&all).as_deref(), Some("sut"), "without losses the busiest");
        assert_eq!(named(&[]), None);
        let told = verdict(&all).unwrap().sentence;
        assert!(told.starts_with("sut: "), "{told}");
    }

    #[test]
    fn over_tcp_the_receiver_that_reached_least_speaks_for_the_trial() {
        let of = |name: &str, ratio, p99_us| Alone {
            name: name.into(),
            // Segments that were lost were sent again: they do not decide.
            ledger: Ledger { offered_packets: 100, delivered_packets: 90, ..Ledger::default() },
            evidence: WindowEvidence::default(),
            reached: Some(Reached { ratio, p99_us, ..Reached::default() }),
        };
        let named = |all: [Alone; 3]| limiting(&all).map(|one| one.name.clone()).unwrap();
        let all = [of("sut", 0.9, 100.0), of("sut2", 0.5, 10.0), of("sut3", 1.0, 200.0)];
        assert_eq!(named(all), "sut2");
        let all = [of("sut", 0.999, 100.0), of("sut2", 1.0, 300.0), of("sut3", 0.997, 200.0)];
        assert_eq!(named(all), "sut2", "all reached their target: the slowest");
    }
}
