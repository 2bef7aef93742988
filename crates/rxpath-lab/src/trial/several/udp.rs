//! Senders and receivers of datagrams, added.

use std::collections::BTreeMap;

use rxpath_load::udp::result::{
    DestinationResult, FramesLedger, LoadResult, SenderPackets, Sequence, ServeResult, SocketResult,
};

use super::{Times, busiest, limit};

/// All together. Lateness is that of the sender that was latest.
pub fn load(parts: &[&LoadResult]) -> LoadResult {
    let latest = parts.iter().filter_map(|part| part.lateness_us.as_ref());
    as_one!(LoadResult of parts {
        sum: target_packets offered_packets sent_packets sent_pps send_errors_packets
            refused_count hidden_errors_count blocked_s target_pps;
        by_name: send_errors;
        any: bypasses_udp;
    } {
        frames: parts.iter().filter_map(|it| it.frames).reduce(FramesLedger::and),
        lateness_us: latest.max_by(|a, b| a.p99.total_cmp(&b.p99)).cloned(),
        segments_per_send: parts.iter().map(|it| it.segments_per_send).max().unwrap_or(1),
        limit: limit(parts.iter().map(|it| &it.limit)),
        xdp: parts.iter().filter_map(|it| it.xdp).reduce(|mut a, b| {
            a += b;
            a
        }),
        destinations: destinations(parts),
    })
}

/// What all offered to each destination; nothing if one of them has a single one, which it does not list.
fn destinations(parts: &[&LoadResult]) -> Vec<DestinationResult> {
    if parts.iter().any(|part| part.destinations.is_empty()) {
        return Vec::new();
    }
    let mut all: Vec<DestinationResult> = Vec::new();
    for one in parts.iter().flat_map(|part| &part.destinations) {
        match all.iter_mut().find(|it| it.to == one.to) {
            Some(sum) => sum.offered_packets += one.offered_packets,
            None => all.push(*one),
        }
    }
    all
}

/// Receivers together; quantiles are those of all times. Sockets are numbered in the receivers' order.
pub fn serve(parts: &[&ServeResult], times: &Times) -> ServeResult {
    let sockets = parts.iter().flat_map(|it| it.sockets.clone());
    let numbered = |(index, socket)| SocketResult { index, ..socket };
    as_one!(ServeResult of parts {
        sum: delivered_packets delivered_pps delivered_bytes socket_drops_packets in_flight_bytes
            truncated_packets early_packets dropped_in_xdp_packets;
    } {
        sequence: sequence(parts),
        one_way_delay_us: times.quantiles("one_way_delay"),
        socket_wait_us: times.quantiles("socket_wait"),
        limit: busiest(parts.iter().map(|it| &it.limit)),
        sockets: (0..).zip(sockets).map(numbered).collect(),
        xdp: None,
    })
}

/// What sequence numbers show of all receivers. A stream ends at one of them.
fn sequence(parts: &[&ServeResult]) -> Sequence {
    let all = || parts.iter().map(|part| &part.sequence);
    let sum = |of: fn(&Sequence) -> u64| all().map(of).sum::<u64>();
    let mut senders = BTreeMap::<u16, u64>::new();
    for one in all().flat_map(|it| &it.senders) {
        *senders.entry(one.sender).or_default() += one.packets;
    }
    Sequence {
        checked: all().any(|it| it.checked),
        streams_count: sum(|it| it.streams_count),
        lost_packets: sum(|it| it.lost_packets),
        duplicate_packets: sum(|it| it.duplicate_packets),
        reordered_packets: sum(|it| it.reordered_packets),
        beyond_window_packets: sum(|it| it.beyond_window_packets),
        untracked_packets: sum(|it| it.untracked_packets),
        unnumbered_packets: sum(|it| it.unnumbered_packets),
        senders: senders
            .into_iter()
            .map(|(sender, packets)| SenderPackets { sender, packets })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use rxpath_load::limit::{Limit, Who};

    use super::*;

    #[test]
    fn receivers_are_added_and_the_one_that_was_the_limit_is_named() {
        let of = |delivered, who| ServeResult {
            delivered_packets: delivered,
            sequence: Sequence {
                checked: true,
                streams_count: 2,
                lost_packets: 1,
                senders: vec![SenderPackets { sender: 1, packets: delivered }],
                ..Sequence::default()
            },
            limit: Limit { who, evidence: String::new() },
            sockets: vec![SocketResult { drops_packets: delivered, ..SocketResult::default() }],
            ..ServeResult::default()
        };
        let (one, two) = (of(5, Who::NotHere), of(7, Who::Receiver));
        let all = serve(&[&one, &two], &Times::of(&[]));
        assert_eq!((all.delivered_packets, all.limit.who), (12, Who::Receiver));
        assert_eq!((all.sequence.streams_count, all.sequence.lost_packets), (4, 2));
        assert_eq!(all.sequence.senders, [SenderPackets { sender: 1, packets: 12 }]);
        let sockets: Vec<_> = all.sockets.iter().map(|it| (it.index, it.drops_packets)).collect();
        assert_eq!((sockets, all.dropped_in_xdp_packets), (vec![(0, 5), (1, 7)], None));
    }

    #[test]
    fn what_senders_offered_is_added_by_destination() {
        let to = |text: &str, offered_packets| DestinationResult {
            to: text.parse().unwrap(),
            offered_packets,
        };
        let of = |first, second| LoadResult {
            destinations: vec![to("192.0.2.1:9", first), to("192.0.2.2:9", second)],
            ..LoadResult::default()
        };
        let (one, two) = (of(1, 2), of(10, 20));
        let all = load(&[&one, &two]).destinations;
        assert_eq!(all, [to("192.0.2.1:9", 11), to("192.0.2.2:9", 22)]);
        let alone = LoadResult { offered_packets: 7, ..LoadResult::default() };
        assert_eq!(load(&[&one, &alone]).destinations, [], "where its 7 went is not listed");
    }
}
