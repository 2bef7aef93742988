//! Model predictions of the effects of a plan's steps on a load, next to the catalogue's effects. Predictions are not
//! measurements.
//!
//! Each step is simulated alone, from its old value to its new one, on a base: a measured run with calibrated costs, or
//! parameters. If the simulator lacks a step's setting, the step says so.

use std::error::Error;

use rxpath_model::sim::Values;
use rxpath_tune::plan::expected::{Expected, MetricPrediction};
use rxpath_tune::plan::{Plan, PlanStep};
use rxpath_tune::rules;

use super::setting::sets;
use super::{Metrics, figures};

/// The metrics shown, in this order.
const TOLD: [&str; 4] =
    ["window_loss_ratio", "delivered_pps", "one_way_delay_p50_us", "one_way_delay_p99_us"];

/// The expected effect of each step of a plan.
pub fn expected(plan: &Plan, base: &Values) -> Vec<Expected> {
    plan.steps.iter().map(|step| of(step, base)).collect()
}

fn of(step: &PlanStep, base: &Values) -> Expected {
    let (before, after) = (sets(&step.set, &step.old), sets(&step.set, &step.new));
    let simulated = after.clone().unwrap_or_default();
    let metrics = before.and_then(|before| both(base, &before, &after?));
    let rules = step.because.iter().filter_map(|id| rules::find(id));
    Expected {
        set: step.set.to_string(),
        catalogue: rules.map(rxpath_tune::Rule::effect).collect(),
        kind: "prediction",
        simulated,
        not_predicted: metrics.as_ref().err().cloned(),
        metrics: metrics.unwrap_or_default(),
    }
}

fn both(
    base: &Values,
    before: &[String],
    after: &[String],
) -> Result<Vec<MetricPrediction>, String> {
    let (before, after) = (with(base, before)?, with(base, after)?);
    let moved = |metric: &&str| {
        let (before, after) = (*before.get(*metric)?, *after.get(*metric)?);
        Some(MetricPrediction { metric: (*metric).to_owned(), before, after })
    };
    Ok(TOLD.iter().filter_map(moved).collect())
}

/// Results by metric after these `KEY=VALUE` changes, or why there are none.
fn with(base: &Values, sets: &[String]) -> Result<Metrics, String> {
    let mut values = base.clone();
    for set in sets {
        values.set(set).map_err(|error| error.to_string())?;
    }
    figures(&values).map_err(|error| {
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        causes.fold(error.to_string(), |words, why| format!("{words}: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use rxpath_model::sim::bundled;

    use super::*;

    fn step(set: &str, old: &str, new: &str) -> PlanStep {
        let text = format!(
            "set = \"{set}\"\nold = \"{old}\"\nnew = \"{new}\"\nbecause = [\"asked for\"]\n"
        );
        toml::from_str(&text).unwrap()
    }

    fn base() -> Values {
        Values::from_toml(bundled::find("tcp-ring").unwrap()).unwrap()
    }

    #[test]
    fn a_larger_ring_is_predicted_and_marked_so() {
        let got = of(&step("eth0/rings", "rx=64", "rx=4096"), &base());
        assert!(got.not_predicted.is_none(), "{got:?}");
        assert_eq!(got.kind, "prediction");
        let delivered = got.metrics.iter().find(|m| m.metric == "delivered_pps").unwrap();
        assert!(delivered.after >= delivered.before, "{delivered:?}");
        assert!(got.lines().iter().any(|line| line.contains("prediction (simulated): ")));
    }

    #[test]
    fn what_cannot_be_simulated_says_why() {
        let got = of(&step("eth0/rings", "rx=64", "rx=99999999"), &base());
        let why = got.not_predicted.unwrap();
        assert!(why.contains("nic.ring") && why.contains("1048576"), "{why}");
    }
}
