//! The samplers of receivers and of a few senders, whose samples become one record on the instants of the first.

use std::sync::Arc;

use rxpath_core::{PathSide, Warning};
use rxpath_record::samples::{SampleSeries, TrialSamples};
use serde_json::Value;

use super::{AFTER_WINDOW, HostsTestbed};
use crate::clock::HostClock;
use crate::endpoint::client::{Client, PendingAnswer};
use crate::endpoint::window::{AheadAsk, SampleAsk};
use crate::endpoint::wire::HostAsk;
use crate::error::LabError;
use crate::testbed::seat::Seat;
use crate::trial::sampler::{Sampled, SampledQueues, Sampling};

/// Senders that are sampled, if there are no more: each sends all of its samples over its control connection,
/// and the coordinator merges them before the next trial can begin.
const MOST_SENDERS: usize = 4;

/// A running sampler for each host that has counters of its own: the receivers', then the senders'.
pub(super) struct RemoteSamplers(Vec<RemoteSampler>);

/// That of one host.
struct RemoteSampler {
    client: Arc<Client>,
    clock: HostClock,
    seat: Seat,
    machine: usize,
    /// Nobody waits for it while the load runs: the link that is measured may carry it.
    started: PendingAnswer,
}

impl RemoteSamplers {
    /// They begin with the window that the hosts have ahead.
    pub(super) fn start(testbed: &HostsTestbed<'_>, sampled: &Sampled) -> Result<Self, LabError> {
        let Sampled { interval_ns, port, tcp, v6, threads, ring: _ } = sampled;
        let mut running = Vec::new();
        for side in sides(testbed.hosts.counting(PathSide::Tx).count()) {
            for (host, seat, clock) in testbed.seats().filter(|(_, seat, _)| seat.side == *side) {
                if testbed.hosts.counts_with_another(*side, seat.index) {
                    continue;
                }
                let of_host = threads.iter().filter(|(of, _)| *of == seat);
                let threads = of_host.flat_map(|(_, threads)| threads.clone()).collect();
                let (interval_ns, port, tcp, v6) = (*interval_ns, *port, *tcp, *v6);
                let ask = SampleAsk { interval_ns, side: *side, port, tcp, v6, threads };
                let started = host.client.begin(HostAsk::Ahead { what: AheadAsk::Sample(ask) })?;
                let (client, machine) = (Arc::clone(&host.client), host.machine);
                running.push(RemoteSampler { client, clock, seat, machine, started });
            }
        }
        Ok(Self(running))
    }
}

/// The sides whose hosts are sampled: the receivers first, on whose instants the record is.
fn sides(senders: usize) -> &'static [PathSide] {
    if senders > MOST_SENDERS { &[PathSide::Rx] } else { &[PathSide::Rx, PathSide::Tx] }
}

impl Sampling for RemoteSamplers {
    fn finish(self: Box<Self>) -> SampledQueues {
        let mut all = SampledQueues::default();
        let mut machines = Vec::<usize>::new();
        for RemoteSampler { client, clock, seat, machine, started } in self.0 {
            let started = started.wait::<Value>(AFTER_WINDOW);
            let end = HostAsk::Ahead { what: AheadAsk::Sampled };
            let found = started.and_then(|_| client.ask::<SampledQueues>(end, AFTER_WINDOW));
            let SampledQueues { samples, warning, faults } = found.unwrap_or_else(|error| {
                let text = format!("queues over time are missing for this trial: {error}");
                let warning = Some(Warning::new("no-samples", text));
                SampledQueues { warning, ..SampledQueues::default() }
            });
            let alias = client.alias();
            all.faults.extend(faults.iter().map(|fault| format!("{alias}: {fault}")));
            all.warning = all.warning.or(warning);
            let Some(samples) = samples else { continue };
            let is_seen = machines.contains(&machine);
            machines.push(machine);
            let samples = here(named(samples, seat, alias, is_seen), clock);
            all.samples = Some(match all.samples {
                Some(first) => with(first, &samples),
                None => samples,
            });
        }
        all
    }
}

/// The samples with the names of a trial's: those of the first host of a side are plain, those of others begin with the alias:
/// `sut2:socket0`. Plain CPUs are the first receiver's. A machine that was seen before adds none.
fn named(mut samples: TrialSamples, seat: Seat, alias: &str, is_seen: bool) -> TrialSamples {
    samples.series.retain(|series| !(is_seen && series.side == PathSide::Machine));
    for series in &mut samples.series {
        let is_of_side = series.side == seat.side || seat.side == PathSide::Rx;
        if seat.index > 0 || !is_of_side {
            series.entity = format!("{alias}:{}", series.entity);
        }
    }
    samples
}

/// The samples with their instants on the clock of the testbed.
fn here(samples: TrialSamples, clock: HostClock) -> TrialSamples {
    let here = |at: i64| at.saturating_sub(clock.ahead_ns);
    TrialSamples { t_ns: samples.t_ns.into_iter().map(here).collect(), ..samples }
}

/// The samples of the first host with those of another one. At each instant of the first they are what the other read last;
/// nothing before its first reading.
fn with(mut first: TrialSamples, other: &TrialSamples) -> TrialSamples {
    let read: Vec<Option<usize>> = first
        .t_ns
        .iter()
        .map(|at| other.t_ns.partition_point(|read| read <= at).checked_sub(1))
        .collect();
    let last = |values: &[Option<u64>]| -> Vec<Option<u64>> {
        read.iter().map(|index| values.get((*index)?).copied().flatten()).collect()
    };
    let others = other.series.iter();
    let others =
        others.map(|series| SampleSeries { values: last(&series.values), ..series.clone() });
    first.series.extend(others);
    let (own, cost) = (&mut first.cost, &other.cost);
    own.cpu_s += cost.cpu_s;
    // With it their ratio is that of one sampler.
    own.span_s += cost.span_s;
    own.samples_count += cost.samples_count;
    own.missed_count += cost.missed_count;
    own.unfollowed_sockets_count += cost.unfollowed_sockets_count;
    own.failed_reads_count += cost.failed_reads_count;
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(side: PathSide, entity: &str, values: &[Option<u64>]) -> SampleSeries {
        SampleSeries {
            side,
            entity: entity.into(),
            metric: "rmem_bytes".into(),
            counter: false,
            values: values.to_vec(),
        }
    }

    #[test]
    fn another_host_s_samples_stand_at_the_instants_of_the_first() {
        let of = |t_ns: &[i64], entity: &str, values: &[Option<u64>]| {
            let mut samples = TrialSamples {
                t_ns: t_ns.to_vec(),
                series: vec![series(PathSide::Rx, entity, values)],
                ..TrialSamples::default()
            };
            (samples.cost.cpu_s, samples.cost.span_s) = (0.25, 1.0);
            samples
        };
        let first = of(&[10, 20, 30], "socket0", &[Some(1), Some(2), Some(3)]);
        let other = of(&[12, 21, 22], "sut2:socket0", &[Some(7), Some(8), None]);
        let all = with(first, &other);
        assert_eq!(all.t_ns, [10, 20, 30]);
        assert_eq!(all.series[0].values, [Some(1), Some(2), Some(3)]);
        assert_eq!(all.series[1].entity, "sut2:socket0");
        // Not read yet, the reading at 12, and one that failed.
        assert_eq!(all.series[1].values, [None, Some(7), None]);
        let ratio = all.cost.cpu_s / all.cost.span_s;
        assert!((ratio - 0.25).abs() < f64::EPSILON, "of each sampler a quarter: {ratio}");
    }

    #[test]
    fn the_first_host_of_each_side_has_plain_names_and_each_machine_its_cpus_once() {
        let names = |side: PathSide, index: usize, alias: &str, is_seen: bool| {
            let of = vec![series(side, "socket0", &[]), series(PathSide::Machine, "cpu0", &[])];
            let samples = TrialSamples { series: of, ..TrialSamples::default() };
            let all = named(samples, Seat { side, index }, alias, is_seen).series;
            all.into_iter().map(|series| series.entity).collect::<Vec<_>>()
        };
        assert_eq!(names(PathSide::Rx, 0, "sut", false), ["socket0", "cpu0"]);
        assert_eq!(names(PathSide::Rx, 1, "sut2", false), ["sut2:socket0", "sut2:cpu0"]);
        assert_eq!(names(PathSide::Tx, 0, "gen1", false), ["socket0", "gen1:cpu0"]);
        assert_eq!(names(PathSide::Tx, 0, "gen1", true), ["socket0"]);
        assert_eq!(names(PathSide::Tx, 1, "gen2", true), ["gen2:socket0"]);
    }

    #[test]
    fn of_more_senders_than_a_few_none_is_sampled() {
        assert_eq!(sides(1), [PathSide::Rx, PathSide::Tx]);
        assert_eq!(sides(MOST_SENDERS), [PathSide::Rx, PathSide::Tx]);
        assert_eq!(sides(MOST_SENDERS + 1), [PathSide::Rx]);
    }
}
