//! The times of clients: which quantiles of them a trial has.

use rxpath_core::Warning;
use rxpath_core::number::grouped;
use rxpath_stats::quantile::needed_values;

use crate::output::Metrics;
use crate::trial::result::WorkloadResult;

/// Quantiles of a trial, with the share of its times above them.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.1), ("p99", 0.01), ("p999", 0.001)];
/// The times of a client.
const TIMES: [&str; 2] = ["service_time", "response_time"];

/// A client's times as `service_time_p50_us` and so on, without quantiles that rest on too few. They are of the whole
/// trial.
pub(super) fn times(result: &WorkloadResult, all: &mut Metrics) {
    for (name, found) in TIMES.into_iter().zip(result.times()) {
        let Some(found) = found else { continue };
        all.insert(format!("{name}_mean_us"), found.mean);
        all.insert(format!("{name}_max_us"), found.max);
        let values = [found.p50, found.p90, found.p99, found.p999];
        for ((quantile, above), value) in QUANTILES.into_iter().zip(values) {
            if found.samples_count as f64 >= needed_values(above) {
                all.insert(format!("{name}_{quantile}_us"), value);
            }
        }
    }
}

/// Which quantiles [`times`] leaves out.
pub(super) fn left_out(result: &WorkloadResult) -> Option<Warning> {
    let found = result.times().into_iter().flatten().next()?;
    let (quantile, above) = QUANTILES
        .into_iter()
        .find(|(_, above)| (found.samples_count as f64) < needed_values(*above))?;
    let needed = needed_values(above);
    let text = format!(
        "{quantile} of the times and higher quantiles are left out: {} requests were timed, {} are needed",
        grouped(found.samples_count),
        grouped(needed.round() as u64)
    );
    let cure = "measure longer (trials.measure), or compare a lower quantile";
    Some(Warning::new("few-requests", text).because("too few requests lie above them").cure(cure))
}

/// What a foreign client calls the time from request to reply, and what it is here.
const FOREIGN: [(&str, &str); 3] = [
    ("load.latency_p50_us", "service_time_p50_us"),
    ("load.latency_p99_us", "service_time_p99_us"),
    ("load.latency_mean_us", "service_time_mean_us"),
];

/// Adds a foreign client's times under our names.
pub(super) fn foreign_times(all: &mut Metrics) {
    for (theirs, ours) in FOREIGN {
        if let Some(value) = all.get(theirs).copied() {
            all.entry(ours.into()).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use rxpath_load::quantiles::Quantiles;
    use rxpath_load::tcp::result::TransactionsResult;

    use super::*;

    #[test]
    fn a_quantile_needs_ten_times_above_it() {
        let timed = |count: u64| {
            let quantiles = Quantiles { samples_count: count, p99: 9.0, ..Quantiles::default() };
            let result = WorkloadResult::Transactions(TransactionsResult {
                service_time_us: Some(quantiles),
                ..TransactionsResult::default()
            });
            let mut all = Metrics::new();
            times(&result, &mut all);
            let names = ["p50", "p90", "p99", "p999"].into_iter();
            let there = names.filter(|name| all.contains_key(&format!("service_time_{name}_us")));
            (there.collect::<Vec<_>>(), left_out(&result).map(|warning| warning.text))
        };
        assert_eq!(timed(10_000), (vec!["p50", "p90", "p99", "p999"], None));
        let (there, said) = timed(9_999);
        assert_eq!(there, ["p50", "p90", "p99"]);
        assert!(said.unwrap().starts_with("p999 of the times"), "it says which");
        assert_eq!(timed(999).0, ["p50", "p90"]);
        assert!(timed(3).1.unwrap().contains("3 requests were timed, 20 are needed"));
    }
}
