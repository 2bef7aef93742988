//! A search for a capacity as text: its progress on stderr, its result on stdout.

use std::path::Path;

use rxpath_core::units::si;
use rxpath_lab::plan::RunPlan;
use rxpath_lab::run::progress::Progress;
use rxpath_record::capacity::{Capacity, LoadClass, TriedLoad};

use super::table::Grid;

/// Prints a line for each step of the search.
pub struct SearchProgress;

impl Progress for SearchProgress {
    fn planned(&mut self, _: &RunPlan, directory: &Path) {
        crate::note!("run directory: {}", directory.display());
    }

    fn found(&mut self, what: &str) {
        crate::note!("{what}");
    }
}

/// The whole result: the sentence, the limit, the rates.
pub fn summary(found: &Capacity) -> String {
    let mut out = format!("{}\n", found.sentence());
    if let Some(limit) = found.limit() {
        out += &format!("{limit}\n");
    }
    if let Some(rate) = found.conditional_throughput_per_s.map(si) {
        out += &format!("conditional throughput at the lower bound: {rate} {}/s\n", found.unit);
    }
    out += &format!(
        "{} trials in {:.0} s, {} of them repeated because other load disturbed them\n",
        found.trials_count, found.search_s, found.void_count
    );
    if !found.loads.is_empty() {
        out += &format!("\n{}\n", table(found).shown());
    }
    out
}

fn table(found: &Capacity) -> Grid {
    let has_latency = found.loads.iter().any(|load| !load.latencies_us.is_empty());
    let mut head =
        vec![format!("{}/s", found.unit), "good, s".into(), "bad, s".into(), "worst loss".into()];
    head.extend(has_latency.then(|| format!("{}, us, worst", found.quantile())));
    head.push("verdict".into());
    let last = head.len() - 1;
    let mut table = Grid::new(0, head).text(&[last]);
    for load in &found.loads {
        let mut row = vec![
            si(load.rate_per_s),
            si(load.good_s),
            si(load.bad_s),
            format!("{} %", si(worst(&load.loss_ratios) * 100.0)),
        ];
        if has_latency {
            let known = !load.latencies_us.is_empty();
            row.push(if known { si(worst(&load.latencies_us)) } else { String::new() });
        }
        row.push(verdict(load).into());
        table.row(row);
    }
    table
}

fn worst(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn verdict(load: &TriedLoad) -> &'static str {
    match load.class {
        LoadClass::LowerBound => "holds",
        LoadClass::UpperBound => "fails",
        LoadClass::Undecided => "",
    }
}

#[cfg(test)]
mod tests {
    use rxpath_record::capacity::{CapacityGoal, FreshTrials, SearchEnd};

    use super::*;

    #[test]
    fn the_summary_has_the_sentence_and_a_row_for_each_rate() {
        let load = |rate_per_s, class, loss: f64| TriedLoad {
            rate_per_s,
            good_s: 5.0,
            bad_s: 1.0,
            class,
            loss_ratios: vec![0.0, loss],
            latencies_us: Vec::new(),
        };
        let found = Capacity {
            unit: "datagrams".into(),
            lower_per_s: Some(96_134.0),
            upper_per_s: Some(98_911.0),
            conditional_throughput_per_s: Some(96_134.0),
            ended: SearchEnd::Found,
            goal: CapacityGoal { loss_ratio: 0.001, final_trial_s: 1.0, ..Default::default() },
            fresh: Some(FreshTrials { good_count: 6, bad_count: 1 }),
            loads: vec![
                load(80_000.0, LoadClass::Undecided, 0.0),
                load(96_134.0, LoadClass::LowerBound, 0.002),
                load(98_911.0, LoadClass::UpperBound, 0.02),
            ],
            trials_count: 31,
            void_count: 2,
            search_s: 52.0,
            ..Capacity::default()
        };
        insta::assert_snapshot!(summary(&found));
    }
}
