//! Adding up what the threads of transactions did, and asking the server for its side.

use rxpath_core::Warning;
use rxpath_core::number::grouped;
use rxpath_stats::Histogram;

use crate::LoadError;
use crate::limit::{Limit, Who};
use crate::live::LiveTimes;
use crate::ports;
use crate::quantiles::{Quantiles, merged};
use crate::schedule::{KEPT_RATIO, not_kept};
use crate::tcp::connection::{LISTED, TcpSummary};
use crate::tcp::load::limit::{Side, of_transactions};
use crate::tcp::load::stream::{lost, no_report};
use crate::tcp::load::transactions::Transactions;
use crate::tcp::load::transactions::worker::Report;
use crate::tcp::result::TransactionsResult;
use crate::tcp::serve::mismatch;
use crate::tcp::socket::PORTS_CURE;
use crate::workload::{Finished, listed};

pub(super) fn finish<const SINGLE: bool>(
    client: &mut Transactions<SINGLE>,
) -> Result<Finished<TransactionsResult>, LoadError> {
    let reports = client.pool.join()?;
    let (shared, cpu) = (&client.pool.shared, client.pool.shared.cpu_time());
    let times = merged(client.live.iter().map(LiveTimes::histogram));
    // Without a schedule there is no response time apart from the service time.
    let (service, response) = match client.options.rate_tps {
        None => (times, Histogram::of_times()),
        Some(_) => (merged(reports.iter().map(|report| &report.seen.service)), times),
    };
    let connect = merged(reports.iter().map(|report| &report.seen.connect));
    let duration_s = shared.span_s();
    let transactions_total = shared.sum(|tally| &tally.units);
    let mut result = TransactionsResult {
        duration_s,
        transactions_total,
        achieved_tps: if duration_s > 0.0 { transactions_total as f64 / duration_s } else { 0.0 },
        target_tps: client.options.rate_tps.map(|rate| rate as f64),
        service_time_us: Quantiles::of(&service),
        response_time_us: Quantiles::of(&response),
        connect_time_us: Quantiles::of(&connect),
        sent_bytes: shared.sum(|tally| &tally.sent_bytes),
        delivered_bytes: shared.sum(|tally| &tally.received_bytes),
        verified: client.options.common.verify,
        cpu_user_s: cpu.user_ns as f64 / 1e9,
        cpu_system_s: cpu.system_ns as f64 / 1e9,
        server: client.session.report(),
        ..TransactionsResult::default()
    };
    add_threads(&reports, &mut result);
    client.open = reports;
    result.limit = limit(&result);
    let mut warnings = client.warnings.clone();
    warnings.extend(notice(&result, SINGLE));
    let histograms =
        vec![("service_time", service), ("response_time", response), ("connect_time", connect)];
    Ok(Finished { result, warnings, histograms }.with_samples())
}

fn add_threads(reports: &[Report], result: &mut TransactionsResult) {
    for report in reports {
        result.threads.push(report.thread.clone());
        let seen = &report.seen;
        result.target_transactions_total += seen.target;
        result.unsent_transactions_total += seen.target.saturating_sub(seen.begun);
        result.in_flight_transactions_total += seen.in_flight;
        result.lost_transactions_total += seen.lost;
        for ((step, name), count) in &seen.errors {
            *result.errors_total.entry(format!("{step} {name}")).or_default() += count;
        }
        result.mismatches.extend_from_slice(&seen.mismatches);
        let room = LISTED - result.connections.len();
        result.connections.extend(report.listed.iter().take(room).cloned());
    }
    result.peer_lost = !reports.is_empty() && reports.iter().all(|report| report.seen.is_peer_lost);
    result.tcp = TcpSummary::of(reports.iter().filter_map(|report| report.tcp));
}

/// The share of the schedule that was completed; `None` without one.
fn kept(result: &TransactionsResult) -> Option<f64> {
    result.target_tps?;
    Some(result.transactions_total as f64 / result.target_transactions_total.max(1) as f64)
}

fn limit(result: &TransactionsResult) -> Limit {
    if result.transactions_total == 0 {
        return Limit::new(Who::NotHere, "no transaction was completed");
    }
    let server = result.server.as_ref();
    let side = Side { threads: &result.threads, duration_s: result.duration_s, server };
    of_transactions(&side, kept(result), result.service_time_us.as_ref().map(|times| times.p50))
}

/// A schedule that was not kept, and what it leaves out of the times.
fn unkept(result: &TransactionsResult) -> Option<Warning> {
    let (target_tps, kept) = result.target_tps.zip(kept(result))?;
    let (did, unsent) = (result.achieved_tps, result.unsent_transactions_total);
    let what = "transactions/s were completed";
    (kept < KEPT_RATIO).then(|| not_kept(did, target_tps, what, unsent))
}

fn notice(result: &TransactionsResult, single: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let there = result.server.iter().flat_map(|server| &server.mismatches);
    warnings.extend(result.mismatches.iter().chain(there).next().map(mismatch));
    warnings.extend(unkept(result));
    let ports = result.errors_total.get("connect EADDRNOTAVAIL").copied().unwrap_or(0);
    if ports > 0 {
        let text = format!("connecting failed {} times with EADDRNOTAVAIL", grouped(ports));
        warnings.push(Warning::new("ports-exhausted", text).because(ports::why()).cure(PORTS_CURE));
    }
    let mut others = result.errors_total.clone();
    others.remove("connect EADDRNOTAVAIL");
    let is_lost = result.peer_lost;
    if !single || is_lost {
        warnings.extend(lost(&others, is_lost));
    } else if !others.is_empty() {
        let text = format!("transactions failed: {}", listed(&others));
        warnings.push(Warning::new("transactions-failed", text));
    }
    warnings.extend(no_report(result.server.as_ref()));
    warnings
}
