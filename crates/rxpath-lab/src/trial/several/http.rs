//! Clients of HTTP, added.

use rxpath_load::http::load::result::LoadResult;

use super::{Times, added, limit, whole};

/// All together; quantiles are those of all times. Lateness is that of the client that was latest; wrk's summary, whose
/// deviations do not add up, stays with each client.
pub fn load(parts: &[&LoadResult], times: &Times) -> LoadResult {
    let sum = |of: fn(&LoadResult) -> u64| parts.iter().map(|part| of(part)).sum::<u64>();
    let seconds = |of: fn(&LoadResult) -> f64| parts.iter().map(|part| of(part)).sum::<f64>();
    let latest = parts.iter().filter_map(|part| part.lateness_us.as_ref());
    LoadResult {
        duration_s: parts.iter().map(|part| part.duration_s).fold(0.0, f64::max),
        target_requests_total: sum(|it| it.target_requests_total),
        sent_requests_total: sum(|it| it.sent_requests_total),
        requests_total: sum(|it| it.requests_total),
        in_flight_requests_total: sum(|it| it.in_flight_requests_total),
        lost_requests_total: sum(|it| it.lost_requests_total),
        unsent_requests_total: sum(|it| it.unsent_requests_total),
        gave_up: parts.iter().any(|it| it.gave_up),
        resent_requests_total: sum(|it| it.resent_requests_total),
        achieved_rps: seconds(|it| it.achieved_rps),
        target_rps: whole(parts.iter().map(|it| it.target_rps)),
        errors_total: added(parts.iter().map(|it| &it.errors_total)),
        error_causes_total: added(parts.iter().map(|it| &it.error_causes_total)),
        service_time_us: times.quantiles("service_time"),
        response_time_us: times.quantiles("response_time"),
        connect_time_us: times.quantiles("connect_time"),
        lateness_us: latest.max_by(|a, b| a.p99.total_cmp(&b.p99)).cloned(),
        sent_bytes: sum(|it| it.sent_bytes),
        received_bytes: sum(|it| it.received_bytes),
        received_bps: seconds(|it| it.received_bps),
        connections_opened_total: sum(|it| it.connections_opened_total),
        cpu_user_s: seconds(|it| it.cpu_user_s),
        cpu_system_s: seconds(|it| it.cpu_system_s),
        system_calls_total: sum(|it| it.system_calls_total),
        limit: limit(parts.iter().map(|it| &it.limit)),
        threads: parts.iter().flat_map(|it| it.threads.clone()).collect(),
        ..LoadResult::default()
    }
}
