//! From what a trial left behind to the record of it: ledger, evidence, verdict, grade, metrics.

pub(super) mod datagrams;
mod delay;
mod grade;
mod http;
mod paused;
mod receivers;
mod served;
mod short;
mod tcp;
mod times;
mod udp;

use std::collections::BTreeMap;

use rxpath_core::{IntoMap, Warning};
use rxpath_live::counted::packets_by_cpu;
use rxpath_live::observe::Between;
use rxpath_load::udp::load::options::LoadSettings;
use rxpath_record::counters::Moved;
use rxpath_record::evidence::{CpuDistribution, WindowEvidence};
use rxpath_record::hosts::{PairPackets, PairRate};
use rxpath_record::ledger::{Ledger, Link, PathFacts, Place};
use rxpath_record::manifest::{LoopKind, Trial};
use serde::Deserialize;
use serde_json::{Value, json};

use self::grade::Grades;
use self::receivers::Alone;
pub(crate) use self::short::SENDER_LIMIT;
use super::evidence::SideSeen;
use super::measurements::Measurements;
use super::result::WorkloadResult;
use super::side::SideMeasurements;
use super::steadiness;
use super::stolen;
use crate::output::Metrics;
use crate::scenario::spec::{Protocol, Variant};
use crate::testbed::Testbed;
use crate::testbed::window::Windowed;

/// Which trial of the run it is.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Index in the order of running.
    pub trial: u32,
    /// Block.
    pub block: u32,
}

/// What a trial's evidence says of every receiver alike: where the softirq runs, how the load could be spread over CPUs
/// and how it was.
fn known(trial: TrialSources<'_>) -> WindowEvidence {
    let TrialSources { testbed, raw, .. } = trial;
    let (queues, rps_cpus) = testbed.queues().unzip();
    let settings = LoadSettings::deserialize(&raw.load.settings);
    let flows = settings.ok().map(|settings| settings.flows_count as u64);
    let packets = packets_by_cpu(&raw.window.moved);
    WindowEvidence {
        sender_blocked_s: raw.span(&raw.load).map_or(0.0, |span| span.blocked_s),
        softirq: testbed.softirq(),
        spread: Some(CpuDistribution { queues, rps_cpus, flows, packets }),
        backlog_limit_packets: testbed.backlog_limit_packets(),
        ..WindowEvidence::default()
    }
}

/// What the ledger must know about the way, with what the trial's programs put into it.
pub(super) fn path(testbed: &dyn Testbed, hooks: &[String]) -> PathFacts {
    let mut path = testbed.path();
    if !hooks.is_empty() {
        // A counter of theirs would have been read from its beginning only: the difference stands alone.
        path.ingress_rules = None;
        napi_may_run(&mut path);
    }
    path
}

/// A native XDP program turns a veth's NAPI on.
fn napi_may_run(path: &mut PathFacts) {
    if path.link == Link::VethPlain {
        path.link = Link::Veth;
    }
}

/// Hooks that the trial's programs attached, where something was lost in them.
fn hooked(raw: &Measurements, ledger: &Ledger) -> Option<Warning> {
    let lost = ledger.lost_at(Place::IngressHook);
    (lost > 0 && !raw.hooks.is_empty()).then(|| {
        let text = format!(
            "{lost} {} were lost in front of IP, where a program of the trial attached a hook",
            ledger.unit.word()
        );
        Warning::new("hook-attached", text).because(raw.hooks.join("; "))
    })
}

/// What the record of a trial is put together from.
#[derive(Clone, Copy)]
struct TrialSources<'a> {
    variant: &'a Variant,
    testbed: &'a dyn Testbed,
    raw: &'a Measurements,
}

/// What a protocol makes of a trial.
struct Composed {
    ledger: Ledger,
    /// Of all hosts together.
    evidence: WindowEvidence,
    /// What each of several receivers showed alone.
    receivers: Vec<Alone>,
    /// What each sender sent to each receiver, where there are several of either.
    pairs: Vec<PairPackets>,
    /// The same over TCP and HTTP.
    pair_rates: Vec<PairRate>,
    moved: Moved,
    /// Whether the sender was ever slowed by the path.
    blocked: bool,
    warnings: Vec<Warning>,
}

/// Puts the record of a trial together.
pub fn compose(
    number: Number,
    variant: &Variant,
    testbed: &dyn Testbed,
    raw: Measurements,
) -> Trial {
    let [from, to] = raw.window.between.window_ns;
    let silent = silent(variant, &raw);
    let trial = TrialSources { variant, testbed, raw: &raw };
    let composed = if variant.protocol().over_tcp() { tcp::compose } else { udp::compose };
    let mut made = composed(trial);
    made.ledger.reasons.clone_from(&raw.observed.reasons);
    let hooked = hooked(&raw, &made.ledger);
    let metrics = metrics(trial, &made.evidence);
    let Grades { grade, noise, mut hosts } = grade::of(variant, testbed, &raw);
    receivers::put(&made.receivers, &mut hosts);
    let mut warnings = raw.warnings;
    warnings.extend(made.warnings);
    warnings.extend(no_rates(silent));
    let paused = paused::frames(&made.moved);
    warnings.extend(paused::warning(paused));
    warnings.extend(grade::unsteady(&raw.window));
    warnings.extend(times::left_out(&raw.load.result));
    warnings.extend(short::of(testbed, &raw.load));
    warnings.extend(hooked);
    let counted = if raw.serve.lines.is_empty() { &raw.load.lines } else { &raw.serve.lines };
    warnings.extend(steadiness::drifted(counted, [from, to]));
    warnings.extend(affinity(&made.evidence, variant));
    let limiting = receivers::limiting(&made.receivers).map(|one| one.evidence.clone());
    let verdict = receivers::verdict(&made.receivers)
        .or_else(|| Some(rxpath_diagnose::diagnose(&made.evidence)));
    Trial {
        trial: number.trial,
        block: number.block,
        variant: variant.name.clone(),
        void: grade::void(&raw.window, grade, &noise),
        loop_kind: if made.blocked || paused > 0 { LoopKind::Closed } else { LoopKind::Open },
        grade,
        noise,
        window_ns: [from as i64, to as i64],
        metrics,
        verdict,
        evidence: limiting.unwrap_or(made.evidence),
        ledger: made.ledger,
        moved: made.moved,
        flow_cpus: raw.flow_cpus,
        stolen: raw.observed.stolen,
        traced: raw.observed.traced,
        hosts,
        pairs: made.pairs,
        pair_rates: made.pair_rates,
        warnings,
        workloads: workloads(&raw.load, &raw.serve),
    }
}

/// What the programs printed; of several on a side each, in addition to what they did together.
fn workloads(load: &SideMeasurements, serve: &SideMeasurements) -> BTreeMap<String, Value> {
    let all = load.named("load").chain(serve.named("serve"));
    all.map(|(name, it)| (name, json!({ "settings": it.settings, "result": it.result }))).into_map()
}

/// Whether the sender and the receiver are programs of ours without two lines in the window.
fn silent(variant: &Variant, raw: &Measurements) -> [bool; 2] {
    [
        variant.load.is_own_running() && raw.span(&raw.load).is_none(),
        variant.serve.is_own_running() && raw.span(&raw.serve).is_none(),
    ]
}

fn no_rates(silent: [bool; 2]) -> impl Iterator<Item = Warning> {
    ["load", "serve"].into_iter().zip(silent).filter(|(_, is_silent)| *is_silent).map(
        |(name, _)| {
            let text = format!("{name} printed fewer than two lines in the window");
            Warning::new("no-rates", text).because("its rates are unknown")
        },
    )
}

/// What the programs of both sides showed, one of each host: the senders, then the receivers.
fn programs(trial: TrialSources<'_>) -> [Vec<SideSeen<'_>>; 2] {
    let raw = trial.raw;
    let seen = |program| SideSeen::of(program, raw.span(program).unwrap_or_default());
    [&raw.load, &raw.serve].map(|side| side.programs().map(seen).collect())
}

/// CPU time of the sides' threads per unit: `scale` says in which part of a second, `rates` the units per second of each.
fn per_unit(
    names: [&str; 2],
    evidence: &WindowEvidence,
    (scale, rates): (f64, [f64; 2]),
    all: &mut Metrics,
) {
    let threads = [&evidence.sender_threads, &evidence.receiver_threads];
    for ((name, threads), rate) in names.into_iter().zip(threads).zip(rates) {
        let running: f64 = threads.iter().map(|thread| thread.running_ratio).sum();
        if rate > 0.0 && running > 0.0 {
            all.insert(name.into(), running * scale / rate);
        }
    }
}

fn metrics(trial: TrialSources<'_>, evidence: &WindowEvidence) -> Metrics {
    let TrialSources { variant, raw, .. } = trial;
    let mut all = Metrics::new();
    for (side, result) in [("load", &raw.load.result), ("serve", &raw.serve.result)] {
        if let WorkloadResult::External(program) = result {
            let own = program.metrics.iter().flatten();
            all.extend(own.map(|(name, value)| (format!("{side}.{name}"), *value)));
        }
    }
    match variant.protocol() {
        Protocol::Udp => {
            udp::metrics(evidence, raw, &mut all);
            without_rates_of_silent(silent(variant, raw), &mut all);
        }
        Protocol::Http => http::metrics(trial, evidence, &mut all),
        Protocol::TcpStream | Protocol::TcpRr | Protocol::TcpCrr => {
            tcp::metrics(trial, evidence, &mut all);
        }
    }
    if let Some(found) = &raw.observed.stolen {
        let size = variant.load.datagrams().map(|datagrams| f64::from(datagrams.size_bytes));
        let datagrams = size.map(|size| size * 8.0 * evidence.delivered_pps);
        let delivered_bps = all.get("delivered_bps").copied().or(datagrams).unwrap_or(0.0);
        stolen::metrics(found, &raw.serve.tids, [delivered_bps, evidence.delivered_pps], &mut all);
    }
    let Windowed { moved, moved_s, .. } = &raw.window;
    let busy: Option<f64> = raw.window.receiving_machines().map(busy_cpus).sum();
    let cost = [("busy_cpus", busy), ("power_w", moved.power_w(*moved_s))];
    all.extend(cost.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    all
}

fn busy_cpus(between: &Between) -> Option<f64> {
    let cpus = &between.cpus;
    // What the hypervisor took is no work of this machine.
    (!cpus.is_empty()).then(|| cpus.iter().map(|cpu| 1.0 - cpu.idle_ratio - cpu.steal_ratio).sum())
}

/// The rate of a program of ours that printed too few lines is a gap, no zero.
fn without_rates_of_silent([sender, receiver]: [bool; 2], all: &mut Metrics) {
    if receiver {
        all.remove("delivered_pps");
    }
    if sender {
        all.remove("offered_pps");
        all.remove("achieved_ratio");
    }
}

fn affinity(evidence: &WindowEvidence, variant: &Variant) -> Vec<Warning> {
    let sides = [("load", &evidence.sender_threads), ("serve", &evidence.receiver_threads)];
    let mut all = Vec::new();
    for (side, threads) in sides {
        for thread in threads {
            let Some(asked) = thread.asked_cpu else { continue };
            if thread.seen_cpus.iter().any(|cpu| *cpu != asked) {
                let text = format!(
                    "a {side} thread of {} was asked onto CPU {asked} and seen on {:?}",
                    variant.name, thread.seen_cpus
                );
                all.push(Warning::new("affinity-not-kept", text));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use rxpath_record::evidence::CpuUse;

    use super::*;
    use crate::scenario::{HostShape, parse, resolve};
    use crate::trial::line::Line;

    #[test]
    fn a_cpu_is_busy_as_far_as_it_is_neither_idle_nor_taken_away() {
        let cpu = |idle_ratio, steal_ratio| CpuUse { idle_ratio, steal_ratio, ..CpuUse::default() };
        let between = Between { cpus: vec![cpu(0.25, 0.25), cpu(1.0, 0.0)], ..Between::default() };
        assert_eq!(busy_cpus(&between), Some(0.5));
        assert_eq!(busy_cpus(&Between::default()), None);
    }

    #[test]
    fn own_programs_without_two_lines_in_the_window_are_named() {
        let file = parse("question = \"q\"\n[load]\nrate = \"1k\"", "t", "t").unwrap();
        let resolved = resolve(&file, &[], &HostShape::flat(2)).unwrap();
        let side = |times: &[u64]| SideMeasurements {
            lines: times.iter().map(|t_ns| Line { t_ns: *t_ns, ..Line::default() }).collect(),
            ..SideMeasurements::default()
        };
        let raw = |load: &[u64], serve: &[u64]| Measurements {
            load: side(load),
            serve: side(serve),
            window: Windowed {
                between: Between { window_ns: [10, 20], ..Between::default() },
                ..Windowed::default()
            },
            ..Measurements::default()
        };
        let said = |raw: &Measurements| -> Vec<String> {
            no_rates(silent(&resolved.variants[0], raw)).map(|it| it.text).collect()
        };
        assert_eq!(said(&raw(&[10, 20], &[12, 13])), Vec::<String>::new());
        let mut rates: BTreeMap<String, f64> =
            ["delivered_pps", "offered_pps"].map(|name| (name.to_owned(), 0.0)).into();
        let silent = silent(&resolved.variants[0], &raw(&[10, 20], &[12]));
        without_rates_of_silent(silent, &mut rates);
        assert_eq!(rates.keys().collect::<Vec<_>>(), ["offered_pps"], "a gap, no zero");
        let both = said(&raw(&[5, 15], &[]));
        assert_eq!(
            both,
            ["load", "serve"]
                .map(|side| format!("{side} printed fewer than two lines in the window"))
        );
    }
}
