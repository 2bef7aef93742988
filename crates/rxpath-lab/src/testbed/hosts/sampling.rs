//! The samplers of all receivers, whose samples become one record on the instants of the first.

use std::sync::Arc;

use rxpath_core::{Side, Warning};
use rxpath_record::samples::{SampleSeries, TrialSamples};
use serde_json::Value;

use super::{AFTER_WINDOW, HostsTestbed};
use crate::clock::HostClock;
use crate::endpoint::client::{Client, PendingAnswer};
use crate::endpoint::wire::{Ask, SampleAsk, SampledQueues};
use crate::error::LabError;
use crate::trial::sampler::{Sampled, Sampling};

/// A running sampler for each receiver that has counters of its own.
pub(super) struct RemoteSamplers(Vec<RemoteSampler>);

/// That of one receiver.
struct RemoteSampler {
    client: Arc<Client>,
    clock: HostClock,
    /// Nobody waits for it while the load runs: the link that is measured may carry it.
    started: PendingAnswer,
}

impl RemoteSamplers {
    /// Starts them.
    pub(super) fn start(testbed: &HostsTestbed<'_>, sampled: &Sampled) -> Result<Self, LabError> {
        let Sampled { interval_ns, port, tcp, v6, threads, ring: _ } = sampled;
        let mut running = Vec::new();
        for (index, (host, clock)) in testbed.receivers().enumerate() {
            if testbed.hosts.counts_with_another(Side::Rx, index) {
                continue;
            }
            let of_host =
                threads.iter().filter(|(seat, _)| seat.side == Side::Rx && seat.index == index);
            let threads = of_host.flat_map(|(_, threads)| threads.clone()).collect();
            let (interval_ns, port, tcp, v6) = (*interval_ns, *port, *tcp, *v6);
            let ask = Ask::Sample(SampleAsk { interval_ns, port, tcp, v6, threads });
            let started = host.client.begin(ask)?;
            running.push(RemoteSampler { client: Arc::clone(&host.client), clock, started });
        }
        Ok(Self(running))
    }
}

impl Sampling for RemoteSamplers {
    fn finish(self: Box<Self>) -> (Option<TrialSamples>, Option<Warning>) {
        let (mut all, mut said) = (None::<TrialSamples>, None);
        for RemoteSampler { client, clock, started } in self.0 {
            let started = started.wait::<Value>(AFTER_WINDOW);
            let found =
                started.and_then(|_| client.ask::<SampledQueues>(Ask::Sampled, AFTER_WINDOW));
            let SampledQueues { samples, warning } = found.unwrap_or_else(|error| {
                let text = format!("queues over time are missing for this trial: {error}");
                let warning = Some(Warning::new("no-samples", text));
                SampledQueues { samples: None, warning }
            });
            said = said.or(warning);
            let samples = samples.map(|it| here(it, clock));
            all = match (all, samples) {
                (Some(first), Some(other)) => Some(with(first, &other, client.alias())),
                (first, other) => first.or(other),
            };
        }
        (all, said)
    }
}

/// The samples with their instants on the clock of the testbed.
fn here(samples: TrialSamples, clock: HostClock) -> TrialSamples {
    let here = |at: i64| at.saturating_sub(clock.ahead_ns);
    TrialSamples { t_ns: samples.t_ns.into_iter().map(here).collect(), ..samples }
}

/// The samples of the first receiver with those of another one, whose entities get its name: `sut2:socket0`. At each instant
/// of the first they are what the other read last; nothing before its first reading.
fn with(mut first: TrialSamples, other: &TrialSamples, alias: &str) -> TrialSamples {
    let read: Vec<Option<usize>> = first
        .t_ns
        .iter()
        .map(|at| other.t_ns.partition_point(|read| read <= at).checked_sub(1))
        .collect();
    let last = |values: &[Option<u64>]| -> Vec<Option<u64>> {
        read.iter().map(|index| values.get((*index)?).copied().flatten()).collect()
    };
    first.series.extend(other.series.iter().map(|series| SampleSeries {
        entity: format!("{alias}:{}", series.entity),
        values: last(&series.values),
        ..series.clone()
    }));
    let (own, cost) = (&mut first.cost, &other.cost);
    own.cpu_s += cost.cpu_s;
    own.samples_count += cost.samples_count;
    own.missed_count += cost.missed_count;
    own.unfollowed_sockets_count += cost.unfollowed_sockets_count;
    own.failed_reads_count += cost.failed_reads_count;
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_receiver_s_samples_stand_at_the_instants_of_the_first() {
        let of = |t_ns: &[i64], values: &[Option<u64>]| TrialSamples {
            t_ns: t_ns.to_vec(),
            series: vec![SampleSeries {
                side: Side::Rx,
                entity: "socket0".into(),
                metric: "rmem_bytes".into(),
                counter: false,
                values: values.to_vec(),
            }],
            ..TrialSamples::default()
        };
        let first = of(&[10, 20, 30], &[Some(1), Some(2), Some(3)]);
        let other = of(&[12, 21, 22], &[Some(7), Some(8), None]);
        let all = with(first, &other, "sut2");
        assert_eq!(all.t_ns, [10, 20, 30]);
        assert_eq!(all.series[0].values, [Some(1), Some(2), Some(3)]);
        assert_eq!(all.series[1].entity, "sut2:socket0");
        // Not read yet, the reading at 12, and one that failed.
        assert_eq!(all.series[1].values, [None, Some(7), None]);
    }
}
