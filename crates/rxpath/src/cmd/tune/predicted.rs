//! Model predictions of the effects of a plan's steps on a load, next to the catalogue's effects. Predictions are not
//! measurements.
//!
//! Each step is simulated alone, from its old value to its new one, on a base that the user names: a measured run with
//! this host's calibration, or a parameter file. If the simulator lacks a step's setting, the step says so.

use std::collections::BTreeMap;
use std::str::FromStr;

use rxpath_host::pairs::Pairs;
use rxpath_host::sysfs::device::parse_mask;
use rxpath_host::{Group, Target};
use rxpath_lab::scenario::spec::Variant;
use rxpath_lab::testbed::tuned::knob;
use rxpath_model::calibration::Calibration;
use rxpath_record::manifest::Trial;
use rxpath_tune::plan::{Plan, Step};
use rxpath_tune::rules;

use super::expected::{Expected, Moved};
use crate::cmd::model::predict;
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

fn of(step: &Step, base: &Base) -> Expected {
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

fn both(base: &Base, before: &[String], after: &[String]) -> Result<Vec<Moved>, String> {
    let (before, after) = (base.with(before)?, base.with(after)?);
    let moved = |metric: &&str| {
        let (before, after) = (*before.get(*metric)?, *after.get(*metric)?);
        Some(Moved { metric: (*metric).to_owned(), before, after })
    };
    Ok(TOLD.iter().filter_map(moved).collect())
}

/// The ratio of a metric that the model predicts for a measured trial with these keys of its scenario set; `None` where
/// the simulator lacks one of them or the metric.
pub fn ratio_with(
    variant: &Variant,
    trial: &Trial,
    calibration: &Calibration,
    keys: &[String],
    metric: &str,
) -> Option<f64> {
    let mut values = predict::values(variant, &[trial], calibration, &BTreeMap::new()).ok()?;
    let before = *predict::figures(&values).ok()?.get(metric)?;
    for key in keys {
        let (name, value) = key.split_once('=')?;
        let own = match name {
            "serve.rcvbuf" => vec![format!("socket.rcvbuf={value}")],
            "serve.batch" => vec![format!("reader.batch={value}")],
            _ => {
                let knob = knob(name.strip_prefix("tune.receiver.")?).ok()?;
                let part = knob.part.map_or_else(String::new, |part| format!("{part}="));
                sets(&knob.target, &format!("{part}{value}")).ok()?
            }
        };
        own.iter().try_for_each(|set| values.set(set)).ok()?;
    }
    let after = *predict::figures(&values).ok()?.get(metric)?;
    (before > 0.0 && after > 0.0).then(|| after / before)
}

/// A setting's value as the simulator's parameters.
fn sets(target: &Target, value: &str) -> Result<Vec<String>, String> {
    let none = || format!("the simulator has no parameter for {target}");
    match target {
        Target::Sysctl { key } => {
            let name = match key.as_str() {
                "net.core.netdev_budget" => "softirq.budget",
                "net.core.netdev_budget_usecs" => "softirq.budget_usecs",
                "net.core.netdev_max_backlog" => "rps.backlog",
                "net.core.rmem_default" => "socket.rcvbuf",
                _ => return Err(none()),
            };
            Ok(vec![format!("{name}={}", value.trim())])
        }
        Target::Attr { attr, .. } if attr == "threaded" => {
            Ok(vec![format!("softirq.threaded={}", value.trim() == "1")])
        }
        Target::Attr { attr, .. } if attr.ends_with("/rps_cpus") => {
            let cpus = parse_mask(value.trim()).map_err(|error| error.to_string())?;
            let cpus: Vec<String> = cpus.0.iter().map(u32::to_string).collect();
            Ok(vec![format!("rps.cpus=[{}]", cpus.join(", "))])
        }
        Target::Group { group, .. } => {
            let pairs = Pairs::from_str(value).map_err(|error| error.to_string())?;
            let known: Vec<String> = pairs
                .iter()
                .filter_map(|(name, value)| Some(format!("{}={value}", of_group(*group, name)?)))
                .collect();
            if known.is_empty() { Err(none()) } else { Ok(known) }
        }
        _ => Err(none()),
    }
}

fn of_group(group: Group, name: &str) -> Option<&'static str> {
    match (group, name) {
        (Group::Rings, "rx") => Some("nic.ring"),
        (Group::Coalesce, "rx-usecs") => Some("nic.rx_usecs"),
        (Group::Coalesce, "rx-frames") => Some("nic.rx_frames"),
        (Group::Channels, "combined" | "rx") => Some("nic.queues"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(set: &str, old: &str, new: &str) -> Step {
        let text = format!(
            "set = \"{set}\"\nold = \"{old}\"\nnew = \"{new}\"\nbecause = [\"asked for\"]\n"
        );
        toml::from_str(&text).unwrap()
    }

    fn base() -> Base {
        Base::read("tcp-ring", None, false).unwrap().0
    }

    #[test]
    fn settings_are_told_in_the_simulators_words() {
        let of = |set, old, new| {
            let step = step(set, old, new);
            sets(&step.set, &step.new)
        };
        assert_eq!(of("eth0/rings", "rx=256", "rx=4096 tx=512").unwrap(), ["nic.ring=4096"]);
        assert_eq!(of("eth0/coalesce", "rx-usecs=3", "rx-usecs=50").unwrap(), ["nic.rx_usecs=50"]);
        assert_eq!(of("net.core.netdev_budget", "300", "600").unwrap(), ["softirq.budget=600"]);
        assert_eq!(of("eth0/queues/rx-0/rps_cpus", "0", "0a").unwrap(), ["rps.cpus=[1, 3]"]);
        assert_eq!(of("eth0/threaded", "0", "1").unwrap(), ["softirq.threaded=true"]);
        let none = of("net.core.somaxconn", "128", "4096").unwrap_err();
        assert!(none.contains("no parameter for net.core.somaxconn"), "{none}");
        assert!(of("eth0/features", "gro=off", "gro=on").is_err());
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
