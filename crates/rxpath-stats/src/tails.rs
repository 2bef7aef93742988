//! Quantiles of the times of all trials together, and how far they could have come out otherwise.
//!
//! Quantiles of trials cannot be averaged, and times of one trial resemble each other: a slow 100 ms is slow for all its
//! requests. So trials are drawn again, and in each drawn trial its slices of time: the hierarchical bootstrap. The
//! interval is of the percentile kind. A verdict on a difference rests on the quantiles of single trials instead.

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::Histogram;
use crate::bootstrap::{ConfidenceInterval, FEWEST, tails};
use crate::quantile::needed_values;

/// Draws of an interval.
const RESAMPLES: usize = 2_000;

/// The times of a slice of a trial: `(ns, how many)`, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice(Vec<(u64, u64)>);

impl From<&Histogram> for Slice {
    fn from(histogram: &Histogram) -> Self {
        Self(histogram.recorded().collect())
    }
}

/// A quantile of all trials together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// Which: 0.99.
    pub quantile: f64,
    /// Its value.
    pub value_ns: f64,
    /// Its 95 % interval; `None` under five trials.
    pub interval_ns: Option<ConfidenceInterval>,
    /// Times it rests on.
    pub samples_count: u64,
}

/// The quantiles that rest on at least ten times above them. `trials` are the slices of each trial.
///
/// **Cost** some 100 ms for twenty trials of thirty slices.
pub fn together(trials: &[Vec<Slice>], quantiles: &[f64], seed: u64) -> Vec<Tail> {
    let trials: Vec<&Vec<Slice>> = trials.iter().filter(|slices| !slices.is_empty()).collect();
    let all = trials.iter().flat_map(|slices| slices.iter());
    let mut times: Vec<u64> = all.flat_map(|slice| slice.0.iter().map(|(ns, _)| *ns)).collect();
    times.sort_unstable();
    times.dedup();
    let place = |ns: u64| times.binary_search(&ns).unwrap_or(0);
    let placed = |slice: &Slice| -> Vec<(usize, u64)> {
        slice.0.iter().map(|(ns, count)| (place(*ns), *count)).collect()
    };
    let placed: Vec<Vec<Vec<(usize, u64)>>> =
        trials.iter().map(|slices| slices.iter().map(placed).collect()).collect();
    let mut counts = vec![0u64; times.len()];
    placed.iter().flatten().for_each(|slice| add(&mut counts, slice));
    let samples_count: u64 = counts.iter().sum();
    let wanted: Vec<f64> = quantiles
        .iter()
        .copied()
        .filter(|q| samples_count as f64 >= needed_values(1.0 - q))
        .collect();
    let found: Vec<f64> = wanted.iter().map(|q| at(&counts, &times, *q)).collect();
    let mut drawn: Vec<Vec<f64>> = vec![Vec::with_capacity(RESAMPLES); wanted.len()];
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let resamples = if placed.len() < FEWEST || wanted.is_empty() { 0 } else { RESAMPLES };
    for _ in 0..resamples {
        counts.fill(0);
        for _ in 0..placed.len() {
            let slices = &placed[dice.random_range(0..placed.len())];
            for _ in 0..slices.len() {
                add(&mut counts, &slices[dice.random_range(0..slices.len())]);
            }
        }
        for (values, q) in drawn.iter_mut().zip(&wanted) {
            values.push(at(&counts, &times, *q));
        }
    }
    let rows = wanted.into_iter().zip(found).zip(drawn);
    rows.map(|((quantile, value_ns), drawn)| Tail {
        quantile,
        value_ns,
        interval_ns: tails(drawn),
        samples_count,
    })
    .collect()
}

fn add(counts: &mut [u64], slice: &[(usize, u64)]) {
    for (place, count) in slice {
        counts[*place] += count;
    }
}

/// The least time that this share of all does not exceed.
fn at(counts: &[u64], times: &[u64], quantile: f64) -> f64 {
    let all: u64 = counts.iter().sum();
    let rank = ((all as f64 * quantile).ceil() as u64).max(1);
    let mut below = 0;
    let found = counts.iter().zip(times).find(|(count, _)| {
        below += **count;
        below >= rank
    });
    found.or(counts.iter().zip(times).next_back()).map_or(0.0, |(_, ns)| *ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_distr::{Distribution, LogNormal};

    fn slice(times: impl IntoIterator<Item = u64>) -> Slice {
        let mut histogram = Histogram::of_times();
        times.into_iter().for_each(|ns| histogram.record(ns));
        Slice::from(&histogram)
    }

    #[test]
    fn quantiles_are_of_all_trials_together_and_need_ten_times_above() {
        let trials = vec![vec![slice(1..=500)], vec![slice(501..=800), slice(801..=1000)]];
        let found = together(&trials, &[0.5, 0.99, 0.999], 1);
        let told: Vec<(f64, f64)> =
            found.iter().map(|tail| (tail.quantile, tail.value_ns)).collect();
        assert_eq!(told, [(0.5, 500.0), (0.99, 990.0)], "of 1,000 one lies above p99.9");
        assert!(found.iter().all(|tail| tail.interval_ns.is_none() && tail.samples_count == 1000));
        assert_eq!(together(&[], &[0.5], 1), []);
        assert_eq!(together(&[vec![], vec![Slice::default()]], &[0.5], 1), []);
    }

    #[test]
    fn equal_trials_know_their_median_and_unequal_ones_do_not() {
        let width = |step: u64| {
            let trials: Vec<Vec<Slice>> =
                (0..6).map(|at| vec![slice((1..=1000).map(|ns| ns + at * step)); 5]).collect();
            let tail = together(&trials, &[0.5], 1)[0];
            let interval = tail.interval_ns.unwrap();
            assert!(interval.low <= tail.value_ns && tail.value_ns <= interval.high);
            interval.high - interval.low
        };
        assert!(width(0) < 20.0 && width(200) > 300.0, "{} {}", width(0), width(200));
    }

    /// Trials differ, slices of a trial differ, and requests of a slice do. The truth is the median of the trials' own.
    #[test]
    fn the_interval_holds_the_quantile_in_at_least_88_of_100_runs() {
        let mut dice = ChaCha8Rng::seed_from_u64(9);
        let scatter = LogNormal::new(0.0, 0.1).unwrap();
        let times = LogNormal::new(10.0, 0.5).unwrap();
        let mut run = |trials: usize, requests: usize| -> Vec<Vec<Slice>> {
            let mut trial = || {
                let of_trial = scatter.sample(&mut dice);
                let mut slice_of = || {
                    let factor = of_trial * scatter.sample(&mut dice);
                    slice((0..requests).map(|_| (times.sample(&mut dice) * factor) as u64))
                };
                (0..10).map(|_| slice_of()).collect()
            };
            (0..trials).map(|_| trial()).collect()
        };
        let truth = together(&run(400, 40), &[0.99], 1)[0].value_ns;
        let held = (0..100)
            .filter(|seed| {
                let interval = together(&run(8, 40), &[0.99], *seed)[0].interval_ns.unwrap();
                interval.low <= truth && truth <= interval.high
            })
            .count();
        assert!(held >= 88, "{held} of 100");
    }
}
