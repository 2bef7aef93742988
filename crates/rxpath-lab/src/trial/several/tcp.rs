//! Clients and servers of TCP, added.

use rxpath_load::tcp::connection::TcpSummary;
use rxpath_load::tcp::result::{Direction, ServeResult, StreamResult, TransactionsResult};

use super::{Times, busiest, limit};

/// Connections that a result lists.
const LISTED: usize = 64;

/// Streams together. What the server says of each client stays with that client.
pub fn stream(parts: &[&StreamResult]) -> StreamResult {
    let delivered_bytes: Option<u64> = parts.iter().map(|it| it.delivered_bytes).sum();
    let mapped_bytes: Option<u64> = parts.iter().map(|it| it.mapped_bytes).sum();
    as_one!(StreamResult of parts {
        sum: sent_bytes sent_bps delivered_bps target_bps;
        by_name: connection_errors_total;
        any: peer_lost;
        lists: mismatches;
    } {
        delivered_bytes,
        to_server: parts.iter().filter_map(|it| it.to_server).reduce(both),
        to_client: parts.iter().filter_map(|it| it.to_client).reduce(both),
        zerocopy: None,
        mapped_bytes,
        mapped_ratio: mapped_bytes
            .zip(delivered_bytes.filter(|bytes| *bytes > 0))
            .map(|(mapped, all)| mapped as f64 / all as f64),
        verified: parts.iter().all(|it| it.verified),
        limit: limit(parts.iter().map(|it| &it.limit)),
        tcp: TcpSummary::of(parts.iter().filter_map(|it| it.tcp)),
        server: None,
        connections: parts.iter().flat_map(|it| it.connections.clone()).take(LISTED).collect(),
    })
}

fn both(a: Direction, b: Direction) -> Direction {
    Direction {
        sent_bytes: a.sent_bytes + b.sent_bytes,
        delivered_bytes: [a.delivered_bytes, b.delivered_bytes].into_iter().sum(),
        delivered_bps: [a.delivered_bps, b.delivered_bps].into_iter().sum(),
    }
}

/// Transactions together; quantiles are those of all times.
pub fn transactions(parts: &[&TransactionsResult], times: &Times) -> TransactionsResult {
    as_one!(TransactionsResult of parts {
        sum: transactions_total achieved_tps target_transactions_total unsent_transactions_total
            in_flight_transactions_total lost_transactions_total sent_bytes delivered_bytes target_tps;
        by_name: errors_total;
        any: peer_lost;
        lists: mismatches;
    } {
        service_time_us: times.quantiles("service_time"),
        response_time_us: times.quantiles("response_time"),
        connect_time_us: times.quantiles("connect_time"),
        verified: parts.iter().all(|it| it.verified),
        limit: limit(parts.iter().map(|it| &it.limit)),
        tcp: TcpSummary::of(parts.iter().filter_map(|it| it.tcp)),
        server: None,
        connections: parts.iter().flat_map(|it| it.connections.clone()).take(LISTED).collect(),
    })
}

/// Servers together.
pub fn serve(parts: &[&ServeResult]) -> ServeResult {
    let sum = |of: fn(&ServeResult) -> u64| parts.iter().map(|part| of(part)).sum::<u64>();
    let delivered_bytes = sum(|it| it.delivered_bytes);
    let mapped_bytes: Option<u64> = parts.iter().map(|it| it.mapped_bytes).sum();
    as_one!(ServeResult of parts {
        sum: delivered_bps sent_bytes sent_bps transactions_total achieved_tps connections_total;
        by_name: refused_total connection_errors_total accept_errors_total;
        lists: mismatches;
    } {
        delivered_bytes,
        mapped_bytes,
        mapped_ratio: mapped_bytes
            .filter(|_| delivered_bytes > 0)
            .map(|mapped| mapped as f64 / delivered_bytes as f64),
        limit: busiest(parts.iter().map(|it| &it.limit)),
        tcp: TcpSummary::of(parts.iter().filter_map(|it| it.tcp)),
        connections: parts.iter().flat_map(|it| it.connections.clone()).take(LISTED).collect(),
    })
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
