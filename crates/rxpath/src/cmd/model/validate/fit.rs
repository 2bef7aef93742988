//! What of the model is learned in the scenario itself, from its variants `calibrate-*`: one number at most.

use std::collections::BTreeMap;

use rxpath_lab::scenario::spec::{Resolved, Variant};
use rxpath_model::calibration::Calibration;
use rxpath_model::sim::Values;
use rxpath_record::manifest::{Manifest, Trial};
use rxpath_stats::quantile;
use serde_json::Value;

use super::super::predict;

/// Prefix of the variants that fit.
pub(super) const PREFIX: &str = "calibrate-";
/// A reader that runs less of its time is not saturated.
const BUSY: f64 = 0.95;
/// Steps of a search; each halves what is left of a factor of 64.
const STEPS: u32 = 12;

/// What was learned, by the simulator's key.
pub(super) type Fitted = BTreeMap<&'static str, f64>;

/// Fits to the first calibrating variant that has trials.
pub(super) fn fitted(
    scenario: &Resolved,
    manifest: &Manifest,
    calibration: &Calibration,
) -> Fitted {
    let variants = scenario.variants.iter().filter(|variant| variant.name.starts_with(PREFIX));
    for variant in variants {
        let trials: Vec<&Trial> = predict::valid(manifest, &variant.name).collect();
        if !trials.is_empty() {
            return by(variant, &trials, calibration);
        }
    }
    Fitted::new()
}

fn by(variant: &Variant, trials: &[&Trial], calibration: &Calibration) -> Fitted {
    if variant.lab.threaded {
        return searched(variant, trials, calibration, &["scheduler.slice"], 4e6);
    }
    let same_cpu = variant.lab.rps_cpus == *variant.serve.cpus();
    if !variant.lab.rps_cpus.0.is_empty() && same_cpu {
        return searched(variant, trials, calibration, &["rps.packet_ns", "rps.ipi_ns"], 0.0);
    }
    saturated(trials, calibration)
}

/// A reader that never sleeps, alone on its CPU: its cost is its time over its datagrams.
fn saturated(trials: &[&Trial], calibration: &Calibration) -> Fitted {
    let cost = |trial: &&Trial| {
        let reader = trial.evidence.receiver_threads.first()?;
        let delivered = trial.evidence.delivered_pps;
        (reader.running_ratio >= BUSY && delivered > 0.0)
            .then(|| reader.running_ratio * 1e9 / delivered)
    };
    let costs: Vec<f64> = trials.iter().filter_map(cost).collect();
    let Some(cost) = quantile::median(&costs) else { return Fitted::new() };
    let setting = |name: &str| {
        let settings = trials.first().and_then(|t| t.workloads.get("serve")?.get("settings"));
        settings.and_then(|s| s.get(name)).and_then(Value::as_f64)
    };
    let call = calibration.value("reader.call_ns").unwrap_or(0.0);
    let rest =
        cost - setting("work_ns").unwrap_or(0.0) - call / setting("batch").unwrap_or(1.0).max(1.0);
    Fitted::from([("reader.packet_ns", rest.max(0.0))])
}

/// The factor on these costs at which the simulated goodput is the measured one: more cost, less goodput.
fn searched(
    variant: &Variant,
    trials: &[&Trial],
    calibration: &Calibration,
    keys: &[&'static str],
    otherwise: f64,
) -> Fitted {
    let scaled = |factor: f64| -> Fitted {
        let value =
            |key: &&'static str| (*key, calibration.value(key).unwrap_or(otherwise) * factor);
        keys.iter().map(value).collect()
    };
    let simulated = |factor: f64| -> Option<f64> {
        let values: Values = predict::values(variant, trials, calibration, &scaled(factor)).ok()?;
        predict::figures(&values).ok()?.get("delivered_pps").copied()
    };
    let Some(wanted) = predict::measured("delivered_pps", trials) else { return Fitted::new() };
    let (mut low, mut high) = (0.125_f64, 8.0_f64);
    match (simulated(low), simulated(high)) {
        // What it delivers does not depend on these costs in this range: nothing can be learned.
        (Some(most), Some(least)) if most > wanted && least < wanted => {}
        _ => return Fitted::new(),
    }
    for _ in 0..STEPS {
        let middle = (low * high).sqrt();
        match simulated(middle) {
            Some(delivered) if delivered > wanted => low = middle,
            Some(_) => high = middle,
            None => return Fitted::new(),
        }
    }
    scaled((low * high).sqrt())
}
