//! From the samples of `events.jsonl` to series over time: cumulative counters become rates between two samples.

use std::collections::BTreeMap;

use rxpath_core::PathSide;
use rxpath_record::event::{RunEvent, What};

/// One curve: seconds since the trial's first sample, and a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Series {
    /// Entity that it belongs to: `thread0`, `socket1`; empty for a sum.
    pub entity: String,
    /// Points in order of time.
    pub points: Vec<(f64, f64)>,
}

/// The samples of one trial.
pub(crate) struct Samples<'a> {
    rows: Vec<(i64, PathSide, &'a BTreeMap<String, f64>)>,
}

impl<'a> Samples<'a> {
    /// The samples of `trial`.
    pub(crate) fn of(events: &'a [RunEvent], trial: u32) -> Self {
        let rows = events.iter().filter_map(|event| match &event.what {
            What::Sample { trial: of, side, values } if *of == trial => {
                Some((event.t_ns, *side, values))
            }
            _ => None,
        });
        Self { rows: rows.collect() }
    }

    /// `CLOCK_MONOTONIC` of the first sample: the zero of every series.
    pub(crate) fn start_ns(&self) -> Option<i64> {
        self.rows.iter().map(|(t, ..)| *t).min()
    }

    /// Values of `metric` as they were read, one series for each side and entity.
    pub(crate) fn gauges(&self, metric: &str) -> Vec<Series> {
        let start = self.start_ns().unwrap_or(0);
        let mut found: BTreeMap<(PathSide, &str), Series> = BTreeMap::new();
        for (t, side, values) in &self.rows {
            for (key, value) in *values {
                let (name, entity) = key.split_once('/').unwrap_or((key, ""));
                if name == metric && value.is_finite() {
                    let series = found.entry((*side, entity)).or_default();
                    series.entity = entity.into();
                    series.points.push(((*t - start) as f64 / 1e9, *value));
                }
            }
        }
        found.into_values().collect()
    }

    /// The rate of a cumulative counter, per second, all entities of one kind added.
    ///
    /// Threads are preferred to sockets where both are sampled: they are two views of the same packets.
    pub(crate) fn rate(&self, metric: &str) -> Option<Series> {
        let all = self.gauges(metric);
        let kind = |s: &Series| s.entity.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        let kinds: Vec<String> = all.iter().map(kind).collect();
        let chosen = ["", "process", "thread"]
            .iter()
            .find(|kind| kinds.iter().any(|other| other == **kind))
            .map_or_else(|| kinds.first().cloned(), |kind| Some((*kind).to_owned()))?;
        let members: Vec<&Series> = all.iter().filter(|s| kind(s) == chosen).collect();
        let points = sum_of_rates(&members);
        (!points.is_empty()).then(|| Series { entity: String::new(), points })
    }
}

/// Adds the rates of several cumulative series that were sampled together; each point lies at the end of its step.
fn sum_of_rates(members: &[&Series]) -> Vec<(f64, f64)> {
    let mut at: BTreeMap<i64, f64> = BTreeMap::new();
    for series in members {
        for pair in series.points.windows(2) {
            let span = pair[1].0 - pair[0].0;
            // A counter that runs backwards belongs to a restarted process: no rate can be said.
            if span > 0.0 && pair[1].1 >= pair[0].1 {
                *at.entry((pair[1].0 * 1e6).round() as i64).or_default() +=
                    (pair[1].1 - pair[0].1) / span;
            }
        }
    }
    at.into_iter().map(|(us, rate)| (us as f64 / 1e6, rate)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(t_ms: i64, values: &[(&str, f64)]) -> RunEvent {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        RunEvent {
            t_ns: t_ms * 1_000_000,
            what: What::Sample { trial: 3, side: PathSide::Rx, values },
        }
    }

    #[test]
    fn a_rate_is_a_difference_over_time() {
        let events = [
            sample(0, &[("delivered_packets/thread0", 0.0), ("delivered_packets/thread1", 5.0)]),
            sample(500, &[("delivered_packets/thread0", 50.0), ("delivered_packets/thread1", 5.0)]),
        ];
        let samples = Samples::of(&events, 3);
        assert_eq!(samples.rate("delivered_packets").unwrap().points, [(0.5, 100.0)]);
        assert_eq!(samples.gauges("delivered_packets").len(), 2);
    }

    #[test]
    fn sockets_and_threads_are_not_added_up() {
        let events = [
            sample(0, &[("delivered_packets/thread0", 0.0), ("delivered_packets/socket0", 0.0)]),
            sample(1000, &[("delivered_packets/thread0", 9.0), ("delivered_packets/socket0", 9.0)]),
        ];
        let rate = Samples::of(&events, 3).rate("delivered_packets").unwrap();
        assert_eq!(rate.points, [(1.0, 9.0)]);
    }

    #[test]
    fn another_trial_and_a_backward_counter_give_nothing() {
        let events = [
            sample(0, &[("delivered_packets/thread0", 7.0)]),
            sample(1000, &[("delivered_packets/thread0", 1.0)]),
        ];
        assert_eq!(Samples::of(&events, 3).rate("delivered_packets"), None);
        assert_eq!(Samples::of(&events, 4).start_ns(), None);
    }
}
