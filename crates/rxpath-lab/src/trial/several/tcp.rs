//! Clients and servers of TCP, added.

use rxpath_load::tcp::connection::TcpSummary;
use rxpath_load::tcp::result::{Direction, ServeResult, StreamResult, TransactionsResult};

use super::{Times, added, busiest, limit, whole};

/// Connections that a result lists.
const LISTED: usize = 64;

/// Streams together. What the server says of each client stays with that client.
pub fn stream(parts: &[&StreamResult]) -> StreamResult {
    let sum = |of: fn(&StreamResult) -> u64| parts.iter().map(|part| of(part)).sum::<u64>();
    let seconds = |of: fn(&StreamResult) -> f64| parts.iter().map(|part| of(part)).sum::<f64>();
    let delivered_bytes = whole(parts.iter().map(|it| it.delivered_bytes));
    let mapped_bytes = whole(parts.iter().map(|it| it.mapped_bytes));
    StreamResult {
        duration_s: parts.iter().map(|part| part.duration_s).fold(0.0, f64::max),
        sent_bytes: sum(|it| it.sent_bytes),
        sent_bps: seconds(|it| it.sent_bps),
        delivered_bytes,
        delivered_bps: whole(parts.iter().map(|it| it.delivered_bps)),
        target_bps: whole(parts.iter().map(|it| it.target_bps)),
        to_server: parts.iter().filter_map(|it| it.to_server).reduce(both),
        to_client: parts.iter().filter_map(|it| it.to_client).reduce(both),
        connection_errors_total: added(parts.iter().map(|it| &it.connection_errors_total)),
        peer_lost: parts.iter().any(|it| it.peer_lost),
        zerocopy: None,
        mapped_bytes,
        mapped_ratio: mapped_bytes
            .zip(delivered_bytes.filter(|bytes| *bytes > 0))
            .map(|(mapped, all)| mapped as f64 / all as f64),
        verified: parts.iter().all(|it| it.verified),
        mismatches: parts.iter().flat_map(|it| it.mismatches.clone()).collect(),
        cpu_user_s: seconds(|it| it.cpu_user_s),
        cpu_system_s: seconds(|it| it.cpu_system_s),
        limit: limit(parts.iter().map(|it| &it.limit)),
        tcp: TcpSummary::of(parts.iter().filter_map(|it| it.tcp)),
        server: None,
        threads: parts.iter().flat_map(|it| it.threads.clone()).collect(),
        connections: parts.iter().flat_map(|it| it.connections.clone()).take(LISTED).collect(),
    }
}

fn both(a: Direction, b: Direction) -> Direction {
    Direction {
        sent_bytes: a.sent_bytes + b.sent_bytes,
        delivered_bytes: whole([a.delivered_bytes, b.delivered_bytes].into_iter()),
        delivered_bps: whole([a.delivered_bps, b.delivered_bps].into_iter()),
    }
}

/// Transactions together; quantiles are those of all times.
pub fn transactions(parts: &[&TransactionsResult], times: &Times) -> TransactionsResult {
    let sum = |of: fn(&TransactionsResult) -> u64| parts.iter().map(|part| of(part)).sum::<u64>();
    let seconds =
        |of: fn(&TransactionsResult) -> f64| parts.iter().map(|part| of(part)).sum::<f64>();
    TransactionsResult {
        duration_s: parts.iter().map(|part| part.duration_s).fold(0.0, f64::max),
        transactions_total: sum(|it| it.transactions_total),
        achieved_tps: seconds(|it| it.achieved_tps),
        target_tps: whole(parts.iter().map(|it| it.target_tps)),
        target_transactions_total: sum(|it| it.target_transactions_total),
        unsent_transactions_total: sum(|it| it.unsent_transactions_total),
        in_flight_transactions_total: sum(|it| it.in_flight_transactions_total),
        lost_transactions_total: sum(|it| it.lost_transactions_total),
        errors_total: added(parts.iter().map(|it| &it.errors_total)),
        peer_lost: parts.iter().any(|it| it.peer_lost),
        service_time_us: times.quantiles("service_time"),
        response_time_us: times.quantiles("response_time"),
        connect_time_us: times.quantiles("connect_time"),
        sent_bytes: sum(|it| it.sent_bytes),
        delivered_bytes: sum(|it| it.delivered_bytes),
        verified: parts.iter().all(|it| it.verified),
        mismatches: parts.iter().flat_map(|it| it.mismatches.clone()).collect(),
        cpu_user_s: seconds(|it| it.cpu_user_s),
        cpu_system_s: seconds(|it| it.cpu_system_s),
        limit: limit(parts.iter().map(|it| &it.limit)),
        tcp: TcpSummary::of(parts.iter().filter_map(|it| it.tcp)),
        server: None,
        threads: parts.iter().flat_map(|it| it.threads.clone()).collect(),
        connections: parts.iter().flat_map(|it| it.connections.clone()).take(LISTED).collect(),
    }
}

/// Servers together.
pub fn serve(parts: &[&ServeResult]) -> ServeResult {
    let sum = |of: fn(&ServeResult) -> u64| parts.iter().map(|part| of(part)).sum::<u64>();
    let seconds = |of: fn(&ServeResult) -> f64| parts.iter().map(|part| of(part)).sum::<f64>();
    let delivered_bytes = sum(|it| it.delivered_bytes);
    let mapped_bytes = whole(parts.iter().map(|it| it.mapped_bytes));
    ServeResult {
        duration_s: parts.iter().map(|part| part.duration_s).fold(0.0, f64::max),
        delivered_bytes,
        delivered_bps: seconds(|it| it.delivered_bps),
        sent_bytes: sum(|it| it.sent_bytes),
        sent_bps: seconds(|it| it.sent_bps),
        transactions_total: sum(|it| it.transactions_total),
        achieved_tps: seconds(|it| it.achieved_tps),
        connections_total: sum(|it| it.connections_total),
        refused_total: added(parts.iter().map(|it| &it.refused_total)),
        connection_errors_total: added(parts.iter().map(|it| &it.connection_errors_total)),
        accept_errors_total: added(parts.iter().map(|it| &it.accept_errors_total)),
        mismatches: parts.iter().flat_map(|it| it.mismatches.clone()).collect(),
        mapped_bytes,
        mapped_ratio: mapped_bytes
            .filter(|_| delivered_bytes > 0)
            .map(|mapped| mapped as f64 / delivered_bytes as f64),
        cpu_user_s: seconds(|it| it.cpu_user_s),
        cpu_system_s: seconds(|it| it.cpu_system_s),
        limit: busiest(parts.iter().map(|it| &it.limit)),
        tcp: TcpSummary::of(parts.iter().filter_map(|it| it.tcp)),
        threads: parts.iter().flat_map(|it| it.threads.clone()).collect(),
        connections: parts.iter().flat_map(|it| it.connections.clone()).take(LISTED).collect(),
    }
}

#[cfg(test)]
mod tests {
    use rxpath_load::limit::{Limit, Who};

    use super::*;

    #[test]
    fn servers_are_added_and_the_one_that_was_the_limit_is_named() {
        let of = |delivered_bytes, who, mapped_bytes| ServeResult {
            delivered_bytes,
            transactions_total: 2,
            refused_total: [("stranger".to_owned(), 1)].into(),
            limit: Limit { who, evidence: String::new() },
            mapped_bytes,
            ..ServeResult::default()
        };
        let (one, two) = (of(100, Who::NotHere, Some(50)), of(300, Who::Server, Some(50)));
        let all = serve(&[&one, &two]);
        assert_eq!((all.delivered_bytes, all.transactions_total), (400, 4));
        assert_eq!((all.refused_total["stranger"], all.limit.who), (2, Who::Server));
        assert_eq!(all.mapped_ratio, Some(0.25));
        assert_eq!(serve(&[&one, &of(1, Who::NotHere, None)]).mapped_bytes, None);
    }
}
