//! Model predictions of the effects of a plan's steps on a load, next to the catalogue's effects. Predictions are not
//! measurements.
//!
//! Each step is simulated alone, from its old value to its new one, on a base that the user names: a measured run with
//! this host's calibration, or a parameter file. If the simulator lacks a step's setting, the step says so.

use rxpath_lab::predict::setting::sets;
use rxpath_tune::plan::{Plan, PlanStep};
use rxpath_tune::rules;

use super::expected::{Expected, MetricPrediction};
use crate::cmd::model::what_if::Base;
use crate::cmd::prelude::*;

/// Options about predictions.
#[derive(Debug, clap::Args)]
pub struct PredictArgs {
    /// Also predict each step's effect with the model, for the load of a measured run or a parameter file
    #[arg(long, value_name = "RUN|FILE")]
    predict: Option<String>,
    /// With `--predict RUN`: the calibration of that run's host [default: the run's own, else this host's]
    #[arg(long, value_name = "FILE", requires = "predict")]
    calibration: Option<PathBuf>,
    /// With `--predict RUN`: use a calibration of another host or kernel
    #[arg(long, requires = "predict")]
    foreign: bool,
}

impl PredictArgs {
    /// What the predictions are for, if they are asked for.
    pub fn asked(&self) -> Option<&str> {
        self.predict.as_deref()
    }

    /// Reads it.
    pub fn base(&self) -> Result<(Option<Base>, Vec<Warning>), Failure> {
        let Some(from) = &self.predict else { return Ok((None, Vec::new())) };
        let (base, warnings) = Base::read(from, self.calibration.as_deref(), self.foreign)?;
        Ok((Some(base), warnings))
    }
}

/// The metrics shown, in this order.
const TOLD: [&str; 4] =
    ["window_loss_ratio", "delivered_pps", "one_way_delay_p50_us", "one_way_delay_p99_us"];

/// The expected effect of each step of a plan.
pub fn expected(plan: &Plan, base: &Base) -> Vec<Expected> {
    plan.steps.iter().map(|step| of(step, base)).collect()
}

fn of(step: &PlanStep, base: &Base) -> Expected {
    let (before, after) = (sets(&step.set, &step.old), sets(&step.set, &step.new));
    let figures = match (&before, &after) {
        (Ok(before), Ok(after)) => both(base, before, after),
        (Err(why), _) | (_, Err(why)) => Err(why.clone()),
    };
    let rules = step.because.iter().filter_map(|id| rules::find(id));
    let (metrics, not_predicted) = match figures {
        Ok(metrics) => (metrics, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    Expected {
        set: step.set.to_string(),
        catalogue: rules.map(rxpath_tune::Rule::effect).collect(),
        kind: "prediction",
        simulated: after.unwrap_or_default(),
        metrics,
        not_predicted,
    }
}

fn both(base: &Base, before: &[String], after: &[String]) -> Result<Vec<MetricPrediction>, String> {
    let (before, after) = (base.with(before)?, base.with(after)?);
    let moved = |metric: &&str| {
        let (before, after) = (*before.get(*metric)?, *after.get(*metric)?);
        Some(MetricPrediction { metric: (*metric).to_owned(), before, after })
    };
    Ok(TOLD.iter().filter_map(moved).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(set: &str, old: &str, new: &str) -> PlanStep {
        let text = format!(
            "set = \"{set}\"\nold = \"{old}\"\nnew = \"{new}\"\nbecause = [\"asked for\"]\n"
        );
        toml::from_str(&text).unwrap()
    }

    fn base() -> Base {
        Base::read("tcp-ring", None, false).unwrap().0
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
