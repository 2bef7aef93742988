//! Adding up what the threads saw.

use std::collections::BTreeMap;

use nix::errno::Errno;
use rxpath_core::IntoMap;
use rxpath_stats::Histogram;

use crate::LoadError;
use crate::http::load::meter::{Kind, errors};
use crate::http::load::result::{LoadResult, Spread, ThreadStats};
use crate::http::load::worker::Report;
use crate::http::load::{Load, warnings};
use crate::quantiles::{Quantiles, merged};
use crate::udp::result::Lateness;
use crate::workload::Finished;

pub(super) fn finish(load: &mut Load) -> Result<Finished<LoadResult>, LoadError> {
    let reports = load.pool.join()?;
    load.ended_ns = reports.iter().filter_map(|report| report.ended_ns).max();
    let cpu = load.pool.shared.cpu_time();
    let (service, response) = times(load, &reports);
    let connect = merged(reports.iter().map(|r| &r.connect));
    let lateness = merged(reports.iter().map(|r| &r.lateness));
    let rates = merged(reports.iter().map(|r| &r.rates));
    let mut result = LoadResult {
        cpu_user_s: cpu.user_ns as f64 / 1e9,
        cpu_system_s: cpu.system_ns as f64 / 1e9,
        service_time_us: Quantiles::of(&service),
        response_time_us: Quantiles::of(&response),
        connect_time_us: Quantiles::of(&connect),
        lateness_us: Lateness::of(&lateness),
        summary: ThreadStats {
            response_time_us: spread(&response, 1000.0),
            thread_rps: spread(&rates, 1.0),
        },
        ..counted(load, &reports)
    };
    for report in reports {
        load.sockets.extend(report.remains.sockets);
        result.threads.push(report.thread);
    }
    result.limit = warnings::limit(&result, &load.settings);
    let mut warnings = load.warnings.clone();
    warnings.extend(warnings::notice(&result, &load.settings));
    let histograms = vec![
        ("service_time", service),
        ("response_time", response),
        ("connect_time", connect),
        ("lateness", lateness),
    ];
    Ok(Finished { result, warnings, histograms }.with_samples())
}

/// Service times and response times of all threads.
fn times(load: &Load, reports: &[Report]) -> (Histogram, Histogram) {
    let response = merged(load.live.iter().map(|thread| thread.response.histogram()));
    // Where the two cannot differ they are recorded once.
    let services: Vec<&Histogram> = reports.iter().filter_map(|r| r.service.as_ref()).collect();
    let service = if services.is_empty() { response.clone() } else { merged(services) };
    (service, response)
}

fn counted(load: &Load, reports: &[Report]) -> LoadResult {
    let (shared, live) = (&load.pool.shared, &load.live);
    let begun: u64 = reports.iter().map(|r| r.remains.begun).sum();
    let target: u64 = reports.iter().map(|r| r.remains.target).sum();
    let duration_s = reports.iter().map(|r| r.span_ns).max().unwrap_or(0) as f64 / 1e9;
    let per_s = |n: u64| if duration_s > 0.0 { n as f64 / duration_s } else { 0.0 };
    let (replies, bytes) = (shared.sum(|t| &t.units), shared.sum(|t| &t.received_bytes));
    LoadResult {
        duration_s,
        target_requests_total: target,
        sent_requests_total: shared.sum(|t| &t.offered),
        requests_total: replies,
        in_flight_requests_total: reports.iter().map(|r| r.remains.in_flight).sum(),
        lost_requests_total: live.iter().map(|b| b.lost.get()).sum(),
        unsent_requests_total: target.saturating_sub(begun),
        gave_up: reports.iter().any(|r| r.remains.gave_up),
        resent_requests_total: live.iter().map(|b| b.resent.get()).sum(),
        achieved_rps: per_s(replies),
        target_rps: load.options.rate_rps.map(|rate| rate as f64),
        errors_total: Kind::ALL
            .iter()
            .map(|kind| (kind.name().to_owned(), errors(live, *kind)))
            .into_map(),
        error_causes_total: causes(reports),
        sent_bytes: shared.sum(|t| &t.sent_bytes),
        received_bytes: bytes,
        received_bps: per_s(bytes) * 8.0,
        connections_opened_total: live.iter().map(|b| b.opened.get()).sum(),
        system_calls_total: shared.sum(|t| &t.calls),
        ..LoadResult::default()
    }
}

fn causes(reports: &[Report]) -> BTreeMap<String, u64> {
    let mut causes = BTreeMap::new();
    for (kind, number, count) in reports.iter().flat_map(|report| &report.causes) {
        let name = format!("{} {:?}", kind.name(), Errno::from_raw(*number));
        *causes.entry(name).or_default() += count;
    }
    causes
}

/// In units of `unit` of the histogram's.
fn spread(histogram: &Histogram, unit: f64) -> Spread {
    let (mean, stdev) = (histogram.mean_ns(), histogram.stdev_ns());
    let (low, high) = ((mean - stdev).max(0.0).ceil(), (mean + stdev).floor());
    let within = if high >= low { histogram.count_within(low as u64, high as u64) } else { 0 };
    Spread {
        mean: mean / unit,
        stdev: stdev / unit,
        max: histogram.max_ns() as f64 / unit,
        within_stdev_ratio: within as f64 / histogram.count().max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_the_values() {
        let mut histogram = Histogram::of_times();
        for ns in [1000, 1000, 1000, 9000] {
            histogram.record(ns);
        }
        let spread = spread(&histogram, 1000.0);
        assert!(
            (spread.mean - 3.0).abs() < 0.01 && (spread.stdev - 3.46).abs() < 0.02,
            "{spread:?}"
        );
        assert!((spread.within_stdev_ratio - 0.75).abs() < 1e-9, "{spread:?}");
        assert!((spread.max - 9.0).abs() < 0.01);
        assert_eq!(super::spread(&Histogram::of_times(), 1.0), Spread::default());
    }
}
