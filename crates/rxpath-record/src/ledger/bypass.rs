//! What a receiver's own XDP program took from the device, past IP and UDP.
//!
//! **Source** Linux 6.18 `xsk_rcv_check` and `__xsk_rcv` (net/xdp/xsk.c): a full ring counts `rx_ring_full`, a missing or
//! short frame `rx_dropped`. The redirect then fails, and a veth counts the frame in the receiving device's `rx_dropped`
//! too (drivers/net/veth.c, `veth_xdp_rcv_one`: `rx_drops`).

use super::Place;
use super::term::Term;
use super::units::Unit;
use super::view::View;

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
