//! Parameters learned from the scenario itself, from its variants `calibrate-*`: one number, or two if two loads teach
//! them.

use std::collections::BTreeMap;

use rxpath_core::IntoMap;
use rxpath_model::calibration::Calibration;
use rxpath_model::sim::Values;
use rxpath_record::manifest::{Manifest, Trial};
use rxpath_stats::quantile;

use crate::predict;
use crate::scenario::spec::{Resolved, Variant};
use crate::trial::result::UdpServer;

/// Prefix of the variants that fit.
pub(super) const PREFIX: &str = "calibrate-";
/// A reader that runs for a smaller share of its time is not saturated.
const BUSY: f64 = 0.95;
/// Factors of 2 of the first search over a cost, up and down.
const FACTORS: [f64; 5] = [-2.0, -1.0, 0.0, 1.0, 2.0];
/// Rounds of search around the best point; each round halves the step.
const ROUNDS: u32 = 6;
/// Penalty for a factor of 2 away from the calibration, as a squared error of goodput: among costs that fit equally
/// well, the nearest to the calibration is taken. Several may fit: fewer, dearer interrupts deliver as much as more,
/// cheaper ones.
const AWAY: f64 = 1e-4;
/// If goodput changes less than this over all factors, the variant teaches nothing.
const TEACHES: f64 = 0.01;

/// The values learned, by the simulator's key.
pub(super) type Fitted = BTreeMap<&'static str, f64>;

/// Fits to the calibrating variants that have trials.
pub(super) fn fitted(
    scenario: &Resolved,
    manifest: &Manifest,
    calibration: &Calibration,
) -> Fitted {
    let with_trials =
        |variant| Taught { variant, trials: predict::valid(manifest, &variant.name).collect() };
    let all = scenario.variants.iter().filter(|variant| variant.name.starts_with(PREFIX));
    let taught: Vec<Taught<'_>> =
        all.map(with_trials).filter(|taught| !taught.trials.is_empty()).collect();
    let Some(first) = taught.first() else { return Fitted::new() };
    let lab = &first.variant.lab;
    let one_cpu = !lab.rps_cpus.0.is_empty() && lab.rps_cpus == *first.variant.serve.cpus();
    let search = |keys| Search { taught: &taught, calibration, keys }.run();
    match (lab.threaded, one_cpu) {
        (true, _) => search(&[("scheduler.slice", 4e6)]),
        // One load can only determine one scale for both.
        (_, true) => search(&[("rps.ipi_ns", 0.0), ("rps.packet_ns", 0.0)][..taught.len().min(2)]),
        _ => saturated(&first.trials, calibration),
    }
}

/// A variant that teaches, with its trials.
struct Taught<'a> {
    variant: &'a Variant,
    trials: Vec<&'a Trial>,
}

/// A reader that never sleeps, alone on its CPU: its cost is its time divided by its datagrams.
fn saturated(trials: &[&Trial], calibration: &Calibration) -> Fitted {
    let cost = |trial: &&Trial| {
        let reader = trial.evidence.receiver_threads.first()?;
        let delivered = trial.evidence.delivered_pps;
        (reader.running_ratio >= BUSY && delivered > 0.0)
            .then(|| reader.running_ratio * 1e9 / delivered)
    };
    let costs: Vec<f64> = trials.iter().filter_map(cost).collect();
    let Some(cost) = quantile::median(&costs) else { return Fitted::new() };
    let server = trials.first().and_then(|trial| UdpServer::recorded(trial));
    let (work_ns, batch) = server
        .map_or((0.0, 1.0), |it| (it.settings.work_ns as f64, it.settings.batch.max(1) as f64));
    let call = calibration.value("reader.call_ns").unwrap_or(0.0);
    let rest = cost - work_ns - call / batch;
    Fitted::from([("reader.packet_ns", rest.max(0.0))])
}

/// Searches the costs at which the simulated goodput of all teaching variants equals the measured one.
struct Search<'a> {
    taught: &'a [Taught<'a>],
    calibration: &'a Calibration,
    /// Costs, each with its value where the calibration has none.
    keys: &'a [(&'static str, f64)],
}

/// A point of the search: powers of 2 on the costs, its error, and the goodputs behind the error.
struct Point {
    powers: Vec<f64>,
    error: f64,
    goodputs: Vec<f64>,
}

impl Search<'_> {
    fn run(&self) -> Fitted {
        let steps = |around: &[f64], step: f64, of: &[f64]| -> Vec<Point> {
            grid(around, step, of).into_iter().filter_map(|powers| self.point(powers)).collect()
        };
        let all = steps(&vec![0.0; self.keys.len()], 1.0, &FACTORS);
        if !teaches(&all) {
            return Fitted::new();
        }
        let least =
            |points: Vec<Point>| points.into_iter().min_by(|a, b| a.error.total_cmp(&b.error));
        let Some(mut best) = least(all) else { return Fitted::new() };
        for round in 1..=ROUNDS {
            let step = 0.5_f64.powi(round as i32);
            match least(steps(&best.powers, step, &[-1.0, 0.0, 1.0])) {
                Some(point) if point.error < best.error => best = point,
                _ => {}
            }
        }
        self.costs(&best.powers)
    }

    fn costs(&self, powers: &[f64]) -> Fitted {
        let cost = |((key, otherwise), power): (&(&'static str, f64), &f64)| {
            (*key, self.calibration.value(key).unwrap_or(*otherwise) * power.exp2())
        };
        self.keys.iter().zip(powers).map(cost).into_map()
    }

    fn point(&self, powers: Vec<f64>) -> Option<Point> {
        let costs = self.costs(&powers);
        let goodput = |taught: &Taught<'_>| -> Option<(f64, f64)> {
            let trials = &taught.trials;
            let values: Values =
                predict::values(taught.variant, trials, self.calibration, &costs).ok()?;
            let simulated = predict::figures(&values).ok()?.get("delivered_pps").copied()?;
            Some((simulated, predict::measured("delivered_pps", trials)?))
        };
        let both: Vec<(f64, f64)> = self.taught.iter().map(goodput).collect::<Option<_>>()?;
        let off = both.iter().map(|(simulated, measured)| (simulated / measured - 1.0).powi(2));
        let away: f64 = powers.iter().map(|power| AWAY * power.powi(2)).sum();
        let goodputs = both.iter().map(|(simulated, _)| *simulated).collect();
        Some(Point { error: off.sum::<f64>() + away, powers, goodputs })
    }
}

/// Whether the delivered rate depends on the costs at all.
fn teaches(points: &[Point]) -> bool {
    let of = |variant: usize| points.iter().filter_map(move |point| point.goodputs.get(variant));
    let variants = points.first().map_or(0, |point| point.goodputs.len());
    (0..variants).any(|variant| {
        let most = of(variant).fold(0.0_f64, |most, goodput| most.max(*goodput));
        let least = of(variant).fold(f64::MAX, |least, goodput| least.min(*goodput));
        least < most * (1.0 - TEACHES)
    })
}

/// All points around one: each of the multiples of the step in each direction.
fn grid(around: &[f64], step: f64, multiples: &[f64]) -> Vec<Vec<f64>> {
    around.iter().fold(vec![Vec::new()], |points, at| {
        let longer = |point: &Vec<f64>| -> Vec<Vec<f64>> {
            let with = |multiple: &f64| [&point[..], &[at + multiple * step]].concat();
            multiples.iter().map(with).collect()
        };
        points.iter().flat_map(longer).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_every_combination_once() {
        let points = grid(&[1.0, 10.0], 0.5, &[-1.0, 0.0, 1.0]);
        assert_eq!(points.len(), 9);
        assert_eq!(points[0], [0.5, 9.5]);
        assert_eq!(points[8], [1.5, 10.5]);
    }

    #[test]
    fn goodput_that_does_not_move_teaches_nothing() {
        let point = |goodput: f64| Point { powers: vec![0.0], error: 0.0, goodputs: vec![goodput] };
        assert!(!teaches(&[point(100.0), point(99.5)]));
        assert!(teaches(&[point(100.0), point(90.0)]));
        assert!(!teaches(&[]));
    }
}
