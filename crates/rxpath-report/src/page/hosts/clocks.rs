//! How well the hosts' clocks are known, and the one-way delays that this allows.

use rxpath_core::ntp::NtpState;
use rxpath_record::hosts::ClockDrift;

use crate::prelude::*;

/// How the clocks of hosts are compared with that of the coordinator.
const METHOD: &str = "exchanges over the control connection";

/// Each host's clock with that of the machine that ran the experiment.
pub(super) fn of_hosts(run: &Run) -> Table {
    let rows = run.manifest.hosts.iter().map(|(alias, part)| {
        let ntp = part.ntp.as_ref().map_or_else(|| "not known".to_owned(), NtpState::text);
        vec![
            alias.clone(),
            signed(part.clock_ahead_ns),
            bound(part.clock_error_ns),
            drift(part.drift),
            number::seconds(part.round_trip_ns as f64 / 1e9),
            METHOD.to_owned(),
            ntp,
        ]
    });
    Table::of(
        "host | #ahead at the start | #bound | drift | #least round trip | method | NTP there",
        rows,
    )
}

/// Each sender's clock with each receiver's.
pub(super) fn of_pairs(run: &Run) -> Table {
    let rows = run.manifest.pair_clocks().into_iter().map(|pair| {
        let (ahead, error) = if pair.is_one {
            ("–".to_owned(), "one clock".to_owned())
        } else {
            (signed(pair.ahead_ns), bound(pair.error_ns))
        };
        let (when, method) = match (pair.is_one, pair.is_by_path) {
            (true, _) => ("–", "–"),
            (false, true) => (pair.when(), "datagrams on the measured path"),
            (false, false) => (pair.when(), METHOD),
        };
        let (when, method) = (when.to_owned(), method.to_owned());
        vec![pair.sender, pair.receiver, ahead, error, when, method, drift(pair.drift)]
    });
    Table::of("sender | receiver | #sender ahead by | #bound | when | method | drift", rows)
}

/// One-way delays of each variant.
pub(super) fn delays(run: &Run) -> Table {
    let measured = run.manifest.variants.iter().filter_map(|variant| {
        let delays = variant.delays()?;
        let us = |value: f64| number::seconds(value / 1e6);
        let both = |found: Option<[f64; 2]>, missing: &str| match found {
            Some([p50, p99]) => [us(p50), us(p99)],
            None => [missing.to_owned(), missing.to_owned()],
        };
        let bound = match (delays.one_way_us, delays.bound_us) {
            (None, _) => "–".to_owned(),
            (Some(_), None) => "one clock".to_owned(),
            (Some(_), Some(bound)) => format!("± {}", us(bound)),
        };
        let [p50, p99] = both(delays.one_way_us, "not given (no-one-way-delay)");
        let [above_p50, above_p99] = both(delays.above_least_us, "–");
        Some(vec![variant.name.clone(), p50, p99, bound, above_p50, above_p99])
    });
    Table::of("variant | #one way, p50 | #p99 | #bound | #above the least, p50 | #p99", measured)
}

fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "\u{2212}" } else { "" };
    format!("{sign}{}", number::seconds(ns.unsigned_abs() as f64 / 1e9))
}

fn bound(ns: u64) -> String {
    format!("± {}", number::seconds(ns as f64 / 1e9))
}

fn drift(drift: Option<ClockDrift>) -> String {
    drift.map_or_else(|| "–".to_owned(), |drift| drift.text())
}
