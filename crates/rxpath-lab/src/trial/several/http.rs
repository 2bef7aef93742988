//! Clients and servers of HTTP, added.

use rxpath_load::http::load::result::LoadResult;
use rxpath_load::http::serve::result::{Connections, ServeResult};

use super::{Times, added, busiest, limit};

/// All together; quantiles are those of all times. Lateness is that of the client that was latest; wrk's summary, whose
/// deviations do not add up, stays with each client.
pub fn load(parts: &[&LoadResult], times: &Times) -> LoadResult {
    let latest = parts.iter().filter_map(|part| part.lateness_us.as_ref());
    as_one!(LoadResult of parts {
        sum: target_requests_total sent_requests_total requests_total in_flight_requests_total
            lost_requests_total unsent_requests_total resent_requests_total achieved_rps
            sent_bytes received_bytes received_bps connections_opened_total system_calls_total target_rps;
        by_name: errors_total error_causes_total;
        any: gave_up;
    } {
        service_time_us: times.quantiles("service_time"),
        response_time_us: times.quantiles("response_time"),
        connect_time_us: times.quantiles("connect_time"),
        lateness_us: latest.max_by(|a, b| a.p99.total_cmp(&b.p99)).cloned(),
        limit: limit(parts.iter().map(|it| &it.limit)),
        ..LoadResult::default()
    })
}

/// Servers together; quantiles are those of all times. What became of busy polling stays with each server.
pub fn serve(parts: &[&ServeResult], times: &Times) -> ServeResult {
    let sum = |of: fn(&ServeResult) -> u64| parts.iter().map(|part| of(part)).sum::<u64>();
    as_one!(ServeResult of parts {
        sum: requests_total achieved_rps received_bytes sent_bytes calls_total;
        by_name: replies_total;
    } {
        read_to_reply_us: times.quantiles("read_to_reply"),
        connections: Connections {
            accepted_total: sum(|it| it.connections.accepted_total),
            open_max_count: sum(|it| it.connections.open_max_count),
            open_count: sum(|it| it.connections.open_count),
            closed_total: added(parts.iter().map(|it| &it.connections.closed_total)),
            pauses_total: added(parts.iter().map(|it| &it.connections.pauses_total)),
            accept_errors_total: added(parts.iter().map(|it| &it.connections.accept_errors_total)),
        },
        busy_poll: None,
        limit: busiest(parts.iter().map(|it| &it.limit)),
    })
}

#[cfg(test)]
mod tests {
    use rxpath_record::run::hlog;
    use rxpath_stats::Histogram;

    use super::*;
    use crate::trial::side::SideMeasurements;

    #[test]
    fn servers_are_added_and_their_times_are_those_of_one_histogram() {
        let of = |requests_total| ServeResult {
            requests_total,
            replies_total: [("200".to_owned(), requests_total)].into(),
            connections: Connections { accepted_total: 3, ..Connections::default() },
            ..ServeResult::default()
        };
        let told = |ns: u64, count: u64| {
            let mut times = Histogram::of_times();
            times.record_n(ns, count);
            let histograms = vec![("read_to_reply".to_owned(), hlog::encoded(&times).unwrap())];
            SideMeasurements { histograms, ..SideMeasurements::default() }
        };
        let (one, two) = (of(990), of(10));
        let all = serve(&[&one, &two], &Times::of(&[&told(1_000, 990), &told(5_000_000, 10)]));
        assert_eq!((all.requests_total, all.replies_total["200"]), (1_000, 1_000));
        assert_eq!(all.connections.accepted_total, 6);
        let times = all.read_to_reply_us.unwrap();
        assert_eq!(times.samples_count, all.requests_total);
        assert!(times.p90 < 2.0 && times.p999 > 4_000.0, "{times:?}");
    }
}
