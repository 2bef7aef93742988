//! Senders of datagrams, added.

use rxpath_load::udp::result::{FramesLedger, LoadResult};

use super::{added, limit, whole};

/// All together. Lateness is that of the sender that was latest.
pub fn load(parts: &[&LoadResult]) -> LoadResult {
    let sum = |of: fn(&LoadResult) -> u64| parts.iter().map(|part| of(part)).sum();
    let seconds = |of: fn(&LoadResult) -> f64| parts.iter().map(|part| of(part)).sum();
    let latest = parts.iter().filter_map(|part| part.lateness_us.as_ref());
    LoadResult {
        duration_s: parts.iter().map(|part| part.duration_s).fold(0.0, f64::max),
        target_packets: sum(|it| it.target_packets),
        offered_packets: sum(|it| it.offered_packets),
        sent_packets: sum(|it| it.sent_packets),
        sent_pps: seconds(|it| it.sent_pps),
        send_errors_packets: sum(|it| it.send_errors_packets),
        send_errors: added(parts.iter().map(|it| &it.send_errors)),
        refused_count: sum(|it| it.refused_count),
        bypasses_udp: parts.iter().any(|it| it.bypasses_udp),
        frames: parts.iter().filter_map(|it| it.frames).reduce(FramesLedger::and),
        hidden_errors_count: sum(|it| it.hidden_errors_count),
        target_pps: whole(parts.iter().map(|it| it.target_pps)),
        lateness_us: latest.max_by(|a, b| a.p99.total_cmp(&b.p99)).cloned(),
        blocked_s: seconds(|it| it.blocked_s),
        segments_per_send: parts.iter().map(|it| it.segments_per_send).max().unwrap_or(1),
        cpu_user_s: seconds(|it| it.cpu_user_s),
        cpu_system_s: seconds(|it| it.cpu_system_s),
        limit: limit(parts.iter().map(|it| &it.limit)),
        threads: parts.iter().flat_map(|it| it.threads.clone()).collect(),
        xdp: parts.iter().filter_map(|it| it.xdp).reduce(|mut a, b| {
            a += b;
            a
        }),
    }
}
