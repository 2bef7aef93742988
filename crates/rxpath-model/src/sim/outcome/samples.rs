//! The time series in the form of a real run's: samples of queues, and events with cumulative counters.

use std::collections::BTreeMap;

use rxpath_core::PathSide;
use rxpath_record::event::{RunEvent, What};
use rxpath_record::samples::{SampleSeries, SamplerCost, TrialSamples};

use super::super::world::World;

/// Events are for curves of rates: about as many as a picture can show.
const EVENTS: usize = 250;

impl World<'_> {
    pub(in crate::sim) fn trial_samples(&self) -> TrialSamples {
        let samples = &self.tally.samples;
        let series = |entity: &str, metric: &str, counter: bool, values: &[u64]| SampleSeries {
            side: PathSide::Rx,
            entity: entity.into(),
            metric: metric.into(),
            counter,
            values: values.iter().copied().map(Some).collect(),
        };
        let ring = self.p.ring * self.queues.len() as u64;
        let sum = |rows: &[Vec<u64>]| -> Vec<u64> {
            let at = |i: usize| rows.iter().filter_map(|row| row.get(i)).sum();
            (0..samples.t.len()).map(at).collect()
        };
        let mut all = vec![
            series("all", "unread_bytes", false, &samples.unread),
            series("all", "rmem_bytes", false, &sum(&samples.rmem)),
            series("all", "backlog_bytes", false, &vec![0; samples.t.len()]),
            series("ring", "occupancy_packets", false, &samples.ring),
            series("ring", "capacity_packets", false, &vec![ring; samples.t.len()]),
            series("backlog", "queued_packets", false, &samples.backlog),
        ];
        for (s, row) in samples.rmem.iter().enumerate() {
            all.push(series(&format!("socket{s}"), "rmem_bytes", false, row));
        }
        for (t, row) in samples.running.iter().enumerate() {
            all.push(series(&format!("thread{t}"), "run_ns", true, row));
        }
        TrialSamples {
            trial: 0,
            variant: String::new(),
            interval_ns: self.p.sample,
            t_ns: samples.t.iter().map(|t| *t as i64).collect(),
            series: all,
            cost: SamplerCost { samples_count: samples.t.len() as u64, ..SamplerCost::default() },
        }
    }

    pub(in crate::sim) fn events(&self) -> Vec<RunEvent> {
        let samples = &self.tally.samples;
        let step = samples.t.len().div_ceil(EVENTS).max(1);
        let mut events = Vec::new();
        for i in (0..samples.t.len()).step_by(step) {
            let at = |side, values| RunEvent {
                t_ns: samples.t[i] as i64,
                what: What::Sample { trial: 0, side, values },
            };
            let offered = ("offered_packets".to_owned(), samples.offered[i] as f64);
            events.push(at(PathSide::Tx, BTreeMap::from([offered])));
            let mut values =
                BTreeMap::from([("delivered_packets".to_owned(), samples.delivered[i] as f64)]);
            for (s, (rmem, drops)) in samples.rmem.iter().zip(&samples.drops).enumerate() {
                values.insert(format!("rmem_bytes/socket{s}"), rmem[i] as f64);
                values.insert(format!("drops_packets/socket{s}"), drops[i] as f64);
            }
            events.push(at(PathSide::Rx, values));
        }
        events
    }
}
