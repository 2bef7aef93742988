//! What a receiver's own XDP program took from the device, past IP and UDP.
//!
//! **Source** Linux 6.18 `xsk_rcv_check` and `__xsk_rcv` (net/xdp/xsk.c): a full ring counts `rx_ring_full`, a missing or
//! short frame `rx_dropped`. The redirect then fails, and a veth counts the frame in the receiving device's `rx_dropped`
//! too (drivers/net/veth.c, `veth_xdp_rcv_one`: `rx_drops`).

use super::prelude::*;

pub(super) fn terms(view: View<'_>) -> Vec<Term> {
    let Some(bypass) = view.input.receiver.bypass else { return Vec::new() };
    let drops = bypass.socket_drops_packets as i64;
    let counter = "XDP_STATISTICS rx_dropped + rx_ring_full".to_owned();
    let mut term = Term::owned(Place::XdpSocket, counter, drops, Unit::Each(1));
    if let Some(name) = view.rx_link_name("rx.dropped") {
        // Backlog drops are in it, too.
        let moved = view.get(&name);
        term.check(name, moved, moved.max(drops));
    }
    vec![term]
}

/// Where the driver's counters contradict the program's.
///
/// **Source** `drivers/net/veth.c`, `veth_xdp_rcv_one`: `xdp_drops` counts XDP_DROP, `xdp_redirect` redirects that went
/// well. Drivers without counters of these names say nothing.
pub(super) fn contradictions(view: View<'_>) -> Vec<String> {
    let Some(bypass) = view.input.receiver.bypass else { return Vec::new() };
    let device = view.input.path.rx_device.as_deref().unwrap_or_default();
    let queues = name::ethtool(PathSide::Rx, device, "rx_queue_");
    if !view.moved.like(&queues, "_xdp_packets").any(|(_, by)| by > 0) {
        return Vec::new();
    }
    let redirected = bypass
        .taken_packets
        .saturating_sub(bypass.program_drops_packets + bypass.socket_drops_packets);
    [("_xdp_drops", bypass.program_drops_packets), ("_xdp_redirect", redirected)]
        .into_iter()
        .filter_map(|(counter, said)| {
            let counted: i64 = view.moved.like(&queues, counter).map(|(_, by)| by).sum();
            (counted != said as i64).then(|| {
                format!("{queues}*{counter} moved by {counted}, and the XDP program says {said}")
            })
        })
        .collect()
}
