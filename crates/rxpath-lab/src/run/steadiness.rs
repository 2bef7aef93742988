//! Was the machine the same during the whole run? Tests over all counted trials, in the order of running.
//!
//! What they find changes no verdict: the order within blocks makes comparisons hold under drift. The medians of variants
//! are then those of a machine that changed.

use std::collections::BTreeMap;

use rxpath_core::Warning;
use rxpath_record::manifest::{Manifest, Trial};
use rxpath_record::metric;
use rxpath_stats::order::{self, SUSPICIOUS};
use rxpath_stats::{quantile, slope};

/// What a reader should know about drift, order and memory.
pub(super) fn warnings(manifest: &Manifest) -> Vec<Warning> {
    let metric = manifest.comparisons.first().map_or(&manifest.main_metric, |first| &first.metric);
    let residuals = residuals(manifest, metric);
    let values: Vec<f64> = residuals.iter().map(|(_, value)| *value).collect();
    let chance = |p: f64| format!("by chance this comes in {:.2} % of runs", p * 100.0);
    let is_suspicious = |p: &f64| *p < SUSPICIOUS;
    let mut found = Vec::new();
    let drift = order::trend(&values).filter(is_suspicious);
    if let Some(p) = drift {
        let points: Vec<(f64, f64)> =
            values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect();
        let a_trial = slope::theil_sen(&points).unwrap_or(0.0).exp_m1() * 100.0;
        let text =
            format!("{metric} drifted by {a_trial:+.2} % from trial to trial; {}", chance(p));
        found.push(Warning::new("drift", text).because(
            "the machine changed; comparisons within blocks hold, medians are of a changing machine",
        ));
    }
    // A drift is a memory too, and the first of the two says more.
    if let Some(p) = order::memory(&values).filter(is_suspicious).filter(|_| drift.is_none()) {
        let text = format!("trials resemble those before them in {metric}; {}", chance(p));
        found.push(Warning::new("autocorrelation", text));
    }
    // So does a drift make the last trial of a block differ from its first.
    let order = order::offset(&last_less_first(&residuals)).filter(is_suspicious);
    if let Some(p) = order.filter(|_| drift.is_none()) {
        let text = format!("the place in a block changes {metric}; {}", chance(p));
        found.push(
            Warning::new("order-effect", text)
                .because("a trial leaves something to the next one; each variant stands in each place equally often"),
        );
    }
    found
}

/// Block and value of each counted trial, on the scale of comparison, less the mean of its variant.
fn residuals(manifest: &Manifest, name: &str) -> Vec<(u32, f64)> {
    let scale = metric::scale(name);
    let value = |trial: &Trial| scale.of(*trial.metrics.get(name)?);
    let counted = || {
        let valid = manifest.trials.iter().filter(|trial| trial.void.is_none() && trial.block > 0);
        valid.filter_map(|trial| Some((trial, value(trial)?)))
    };
    let mut by_variant: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (trial, value) in counted() {
        by_variant.entry(&trial.variant).or_default().push(value);
    }
    // The median: one stolen trial must not bend all others.
    let middle = |variant: &str| quantile::median(by_variant.get(variant)?);
    counted()
        .filter_map(|(trial, value)| Some((trial.block, value - middle(&trial.variant)?)))
        .collect()
}

/// Of each block with several trials, its last less its first.
fn last_less_first(residuals: &[(u32, f64)]) -> Vec<f64> {
    residuals
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|block| block.len() > 1)
        .filter_map(|block| Some(block.last()?.1 - block.first()?.1))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rxpath_record::run::RunReader;

    use super::*;

    /// A run of two variants in pairs of blocks AB BA, of which trial `n` has the value `of(n, place in its block)`.
    fn codes(of: impl Fn(usize, usize) -> f64) -> Vec<String> {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs/recorded-demo");
        let mut manifest = RunReader::open(&kept).unwrap().manifest;
        let like = manifest.trials[0].clone();
        let metric = manifest.comparisons[0].metric.clone();
        manifest.trials = (0..24)
            .map(|at| {
                let (block, place) = (at / 2 + 1, at % 2);
                let variant = if (block + place) % 2 == 0 { "a" } else { "b" }.to_owned();
                let metrics = [(metric.clone(), of(at, place))].into();
                Trial { variant, block: block as u32, void: None, metrics, ..like.clone() }
            })
            .collect();
        warnings(&manifest).iter().map(|warning| warning.code.clone()).collect()
    }

    /// Noise without a pattern, up to 1 %.
    fn noise(at: usize) -> f64 {
        1.0 + ((at * 7919 + 13) % 101) as f64 / 10_000.0
    }

    #[test]
    fn a_quiet_machine_has_no_warning_and_each_change_has_its_own() {
        assert_eq!(codes(|at, _| 1000.0 * noise(at)), [""; 0]);
        assert_eq!(codes(|at, _| 1000.0 * noise(at) * 0.99f64.powi(at as i32)), ["drift"]);
        let waves = |at: usize| 1.0 + 0.05 * (at as f64 / 3.0).sin();
        assert_eq!(codes(|at, _| 1000.0 * noise(at) * waves(at)), ["autocorrelation"]);
        assert!(
            codes(|at, place| 1000.0 * noise(at) * (1.0 - 0.04 * place as f64))
                .contains(&"order-effect".to_owned())
        );
    }
}
