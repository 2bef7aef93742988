//! Predicted, measured, error: per variant of a run, compared with the baselines, and the goals.

mod fit;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rxpath_core::{IntoMap, SortFew, Warning};
use rxpath_model::calibration::Calibration;
use rxpath_record::manifest::{Manifest, Trial};
use rxpath_record::prediction::{Predicted, Prediction};
use rxpath_stats::quantile;
use schemars::JsonSchema;
use serde::Serialize;

use self::fit::{Fitted, PREFIX};
use super::{LOSS, STAGE_LOSS, offered};
use crate::predict;
use crate::scenario::spec::Resolved;

/// A rate with at least this loss counts as not carried: the knee is the highest rate below it.
const KNEE_LOSS: f64 = 0.01;

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Validation {
    /// One entry per scenario.
    pub scenarios: Vec<Validated>,
    /// Whether every goal of every scenario was reached.
    pub reached: bool,
}

impl Validation {
    /// Of these scenarios; without any no goal was reached.
    pub fn of(scenarios: Vec<Validated>) -> Self {
        let mut goals = scenarios.iter().flat_map(|scenario| &scenario.goals);
        let reached = !scenarios.is_empty() && goals.all(|goal| goal.reached);
        Self { scenarios, reached }
    }
}

/// One scenario compared with the model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Validated {
    /// The scenario.
    pub scenario: String,
    /// Its run directory.
    pub run: PathBuf,
    /// The values learned from its calibrating variants, by the simulator's key.
    pub fitted: BTreeMap<String, f64>,
    /// The variants.
    pub variants: Vec<ValidatedVariant>,
    /// The highest rate that loses less than 1 %, if the scenario searches for it.
    pub knee: Option<Knee>,
    /// Root mean square error of the goodput of the test variants, relative to the largest goodput.
    pub goodput_nrmse: Option<f64>,
    /// The goals.
    pub goals: Vec<ValidationGoal>,
}

/// One variant.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ValidatedVariant {
    /// Name.
    pub variant: String,
    /// Whether the model was fitted to this variant: then the variant tests nothing.
    pub fitted: bool,
    /// Offered in the window, median over trials.
    pub offered_pps: f64,
    /// Valid trials.
    pub trials_count: usize,
    /// Measured loss of the window: median, smallest, largest.
    pub measured_loss: [f64; 3],
    /// Predicted loss.
    pub predicted_loss: Option<f64>,
    /// `1 - mu/lambda` with the best observed goodput for mu.
    pub best_goodput_loss: f64,
    /// The loss of the variant with the next lower rate.
    pub last_rate_loss: f64,
    /// The loss by stage, where the variant has it: the sum over the stages is the whole loss.
    pub stages: BTreeMap<String, Predicted>,
    /// ln(predicted/measured) of the one-way delay, by quantile.
    pub delay_log_ratio: BTreeMap<String, f64>,
    /// Why nothing was predicted.
    pub not_predicted: Option<String>,
    #[serde(skip)]
    goodput: [f64; 2],
}

/// The highest rate without loss.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Knee {
    /// By the model.
    pub predicted_pps: f64,
    /// Measured: between the two rates around it, by their losses.
    pub measured_pps: f64,
}

/// One goal.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ValidationGoal {
    /// The target.
    pub goal: String,
    /// What came out.
    pub got: String,
    /// Whether it was reached.
    pub reached: bool,
}

/// Compares one run with the model.
pub fn validated(
    scenario: &Resolved,
    run: &Path,
    manifest: &Manifest,
    calibration: &Calibration,
) -> Validated {
    let fitted = fit::fitted(scenario, manifest, calibration);
    let mut variants = rows(scenario, manifest, calibration, &fitted);
    baselines(&mut variants);
    let knee = knee(scenario, manifest, calibration, (&fitted, &variants));
    let same_cpu = scenario.variants.iter().any(|v| !v.lab.rps_cpus.0.is_empty());
    let goals = goals(&variants, knee.as_ref(), same_cpu);
    Validated {
        scenario: scenario.name.clone(),
        run: run.to_owned(),
        fitted: fitted.into_iter().map(|(key, value)| (key.to_owned(), value)).into_map(),
        goodput_nrmse: nrmse(&variants),
        variants,
        knee,
        goals,
    }
}

fn rows(
    scenario: &Resolved,
    manifest: &Manifest,
    calibration: &Calibration,
    fitted: &Fitted,
) -> Vec<ValidatedVariant> {
    let mut rows = Vec::new();
    for variant in &scenario.variants {
        let trials: Vec<&Trial> = predict::valid(manifest, &variant.name).collect();
        let (Some(measured), Some(offered_pps)) = (losses(&trials), offered(&trials)) else {
            continue;
        };
        let made = predict::values(variant, &trials, calibration, fitted);
        let said = predict::predicted(variant, &trials, made);
        let of = |metric: &str| said.metrics.get(metric);
        let ratio = |name: &str| {
            let both = of(&format!("one_way_delay_{name}_us"))?;
            let ratio = (both.predicted / both.measured).ln();
            ratio.is_finite().then(|| (name.to_owned(), ratio))
        };
        rows.push(ValidatedVariant {
            variant: variant.name.clone(),
            fitted: variant.name.starts_with(PREFIX),
            offered_pps,
            trials_count: trials.len(),
            measured_loss: measured,
            predicted_loss: of(LOSS).map(|loss| loss.predicted),
            best_goodput_loss: 0.0,
            last_rate_loss: 0.0,
            stages: stages(&said),
            delay_log_ratio: ["p50", "p90", "p99"].into_iter().filter_map(ratio).into_map(),
            goodput: of("delivered_pps").map_or([0.0; 2], |both| [both.predicted, both.measured]),
            not_predicted: said.not_predicted,
        });
    }
    rows
}

fn stages(said: &Prediction) -> BTreeMap<String, Predicted> {
    let stage = |(metric, both): (&String, &Predicted)| {
        let stage = metric.strip_suffix(STAGE_LOSS).filter(|_| metric.as_str() != LOSS)?;
        Some((stage.to_owned(), *both))
    };
    said.metrics.iter().filter_map(stage).into_map()
}

fn losses(trials: &[&Trial]) -> Option<[f64; 3]> {
    let all: Vec<f64> =
        trials.iter().filter_map(|trial| predict::measured(LOSS, &[*trial])).collect();
    let (least, most) = quantile::range(&all)?;
    Some([quantile::median(&all)?, least, most])
}

/// The baseline predictions, without a model.
fn baselines(rows: &mut [ValidatedVariant]) {
    let goodput = |row: &ValidatedVariant| row.offered_pps * (1.0 - row.measured_loss[0]);
    let best = rows.iter().map(goodput).fold(0.0, f64::max);
    let by_rate = by_rate(rows);
    for row in rows {
        row.best_goodput_loss = (1.0 - best / row.offered_pps.max(1.0)).max(0.0);
        let below = by_rate.iter().rev().find(|(rate, _)| *rate < row.offered_pps * 0.999);
        row.last_rate_loss = below.map_or(0.0, |(_, loss)| *loss);
    }
}

/// Rates with their losses, the lowest rate first.
fn by_rate(rows: &[ValidatedVariant]) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> =
        rows.iter().map(|row| (row.offered_pps, row.measured_loss[0])).collect();
    all.sort_few_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// The rate at which the loss crosses the limit: measured between two rates, predicted by searching.
fn knee(
    scenario: &Resolved,
    manifest: &Manifest,
    calibration: &Calibration,
    (fitted, rows): (&Fitted, &[ValidatedVariant]),
) -> Option<Knee> {
    if !scenario.name.ends_with("knee") {
        return None;
    }
    let by_rate = by_rate(rows);
    let over = by_rate.iter().position(|(_, loss)| *loss > KNEE_LOSS).filter(|at| *at > 0)?;
    let ((low, loss_low), (high, loss_high)) = (by_rate[over - 1], by_rate[over]);
    let measured_pps = low + (high - low) * (KNEE_LOSS - loss_low) / (loss_high - loss_low);
    let variant = scenario.variants.iter().find(|v| !v.name.starts_with(PREFIX))?;
    let trials: Vec<&Trial> = predict::valid(manifest, &variant.name).collect();
    let base = predict::values(variant, &trials, calibration, fitted).ok()?;
    let loss = |rate: f64| -> Option<f64> {
        let mut values = base.clone();
        values.put("arrivals.rate", rate as u64).ok()?;
        predict::figures(&values).ok()?.get(LOSS).copied()
    };
    let (mut low, mut high) = (by_rate.first()?.0 / 4.0, by_rate.last()?.0 * 4.0);
    for _ in 0..12 {
        let middle = (low * high).sqrt();
        if loss(middle)? > KNEE_LOSS { high = middle } else { low = middle }
    }
    Some(Knee { predicted_pps: (low * high).sqrt(), measured_pps })
}

fn nrmse(rows: &[ValidatedVariant]) -> Option<f64> {
    let tests: Vec<[f64; 2]> = rows
        .iter()
        .filter(|row| !row.fitted && row.goodput[1] > 0.0)
        .map(|row| row.goodput)
        .collect();
    let most = tests.iter().map(|[_, measured]| *measured).fold(0.0, f64::max);
    let square: f64 =
        tests.iter().map(|[predicted, measured]| (predicted - measured).powi(2)).sum();
    (!tests.is_empty() && most > 0.0).then(|| (square / tests.len() as f64).sqrt() / most)
}

fn goals(rows: &[ValidatedVariant], knee: Option<&Knee>, same_cpu: bool) -> Vec<ValidationGoal> {
    let tests: Vec<&ValidatedVariant> = rows.iter().filter(|row| !row.fitted).collect();
    let errors: Vec<f64> = tests
        .iter()
        .map(|row| row.predicted_loss.map_or(1.0, |loss| (loss - row.measured_loss[0]).abs()))
        .collect();
    let limit = if same_cpu { 0.05 } else { 0.02 };
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let mean = |errors: &[f64]| errors.iter().sum::<f64>() / errors.len().max(1) as f64;
    let naive = |of: fn(&ValidatedVariant) -> f64| {
        mean(&tests.iter().map(|row| (of(row) - row.measured_loss[0]).abs()).collect::<Vec<_>>())
    };
    let (ours, best, last) =
        (mean(&errors), naive(|row| row.best_goodput_loss), naive(|row| row.last_rate_loss));
    let mut goals = vec![
        ValidationGoal {
            goal: format!("drop fraction within {limit} of every variant"),
            got: format!("at most {worst:.4} off"),
            reached: worst <= limit && !tests.is_empty(),
        },
        ValidationGoal {
            goal: "better than both baselines (mean error)".into(),
            got: format!("{ours:.4} against {best:.4} (best goodput) and {last:.4} (last rate)"),
            reached: ours <= best && ours <= last,
        },
    ];
    goals.extend(delays(&tests));
    goals.extend(knee.map(|knee| {
        let off = knee.predicted_pps / knee.measured_pps - 1.0;
        ValidationGoal {
            goal: "knee within 10 %".into(),
            got: format!("{:+.1} %", off * 100.0),
            reached: off.abs() <= 0.1,
        }
    }));
    goals
}

/// The median and the 90th percentile of the one-way delay, if measured.
fn delays(tests: &[&ValidatedVariant]) -> Option<ValidationGoal> {
    let of =
        |row: &&ValidatedVariant| ["p50", "p90"].map(|name| row.delay_log_ratio.get(name).copied());
    let all: Vec<f64> = tests.iter().flat_map(of).flatten().map(f64::abs).collect();
    let worst = all.iter().copied().fold(0.0, f64::max);
    (!all.is_empty()).then(|| ValidationGoal {
        goal: "p50 and p90 of the one-way delay within a factor of 1.25".into(),
        got: format!(
            "a factor of {:.2} at most, {:.2} in the median",
            worst.exp(),
            quantile::median(&all).unwrap_or(0.0).exp()
        ),
        reached: worst <= 1.25_f64.ln(),
    })
}

/// The largest share of a CPU that a hypervisor may take in a valid trial.
const MOST_STEAL: f64 = 0.01;
/// The largest difference between offered rate and target rate.
const MOST_OFF: f64 = 0.02;

/// Trials in which the machine or the sender did not behave as requested test nothing: they are made void.
pub fn set_aside(manifest: &mut Manifest) {
    for trial in manifest.trials.iter_mut().filter(|trial| trial.void.is_none()) {
        trial.void = strange(trial);
    }
}

/// Why a trial does not test the model.
fn strange(trial: &Trial) -> Option<String> {
    let evidence = &trial.evidence;
    let steal = evidence.cpus.iter().map(|cpu| cpu.steal_ratio).fold(0.0, f64::max);
    if steal > MOST_STEAL {
        return Some(format!("the hypervisor took {:.1} % of a CPU", steal * 100.0));
    }
    let asked = evidence.target_pps.filter(|asked| *asked > 0.0)?;
    let off = evidence.offered_pps / asked - 1.0;
    (off.abs() > MOST_OFF)
        .then(|| format!("the sender's rate was {:+.1} % off the target rate", off * 100.0))
}

/// The trials that noise removed from the comparison.
pub fn left_out(scenario: &Resolved, manifest: &Manifest) -> Vec<Warning> {
    let name = &scenario.name;
    let void: Vec<&Trial> = manifest.trials.iter().filter(|trial| trial.void.is_some()).collect();
    let mut warnings = Vec::new();
    if let Some(first) = void.first() {
        let text = format!(
            "{name}: {} of {} trials were left out, the first because {}",
            void.len(),
            manifest.trials.len(),
            first.void.as_deref().unwrap_or_default()
        );
        warnings.push(Warning::new("void-trials", text));
    }
    for variant in &scenario.variants {
        if predict::valid(manifest, &variant.name).next().is_none() {
            let text = format!("{name}: no trial of {} is left to test the model", variant.name);
            warnings.push(Warning::new("variant-not-tested", text));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use rxpath_record::evidence::WindowEvidence;

    use super::*;

    #[test]
    fn a_sender_off_its_target_rate_tests_nothing() {
        let trial = |offered_pps: f64| {
            let evidence = WindowEvidence {
                target_pps: Some(1_000.0),
                offered_pps,
                ..WindowEvidence::default()
            };
            Trial { evidence, ..Trial::default() }
        };
        let trials = vec![trial(1_000.0), trial(900.0)];
        let mut manifest = Manifest { trials, ..Manifest::default() };
        set_aside(&mut manifest);
        let why: Vec<Option<&str>> =
            manifest.trials.iter().map(|trial| trial.void.as_deref()).collect();
        assert_eq!(why, [None, Some("the sender's rate was -10.0 % off the target rate")]);
    }
}
