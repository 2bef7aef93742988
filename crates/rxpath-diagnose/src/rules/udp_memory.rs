//! The machine-wide UDP memory limit.

use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let places = [Place::UdpMemory, Place::UdpMemoryUncounted];
    let lost = places.iter().fold(0u64, |sum, place| sum.saturating_add(view.lost_at(*place)));
    if !view.is_loss(lost) {
        return None;
    }
    // The limit of a control group moves no counter but the socket's own; that of the machine seldom does.
    let of_group = view.lost_at(Place::UdpMemoryUncounted) > lost / 2;
    let share = percent(view.of_offered(lost));
    let (sure, sentence) = if of_group {
        (
            Confidence::Fair,
            format!(
                "a memory limit is the limit: {share} of the offered datagrams were dropped because the socket got no more memory, from its control group or from the machine's UDP memory"
            ),
        )
    } else {
        (
            Confidence::Strong,
            format!(
                "the machine's UDP memory limit is the limit: {share} of the offered datagrams were dropped because all sockets together hold too much"
            ),
        )
    };
    let group = of_group.then_some(
        "see which limit it is: memory.events and memory.max of the service's control group (MemoryMax= of its unit), or /proc/net/sockstat (UDP: mem) near net.ipv4.udp_mem",
    );
    Some(
        Claim::new(Stage::SocketQueue, sure, &[Part::Ledger], sentence)
        .remedies(group)
        .losing_at(view, Place::UdpMemory, lost)
        .because(places.iter().flat_map(|place| drops(view, *place)))
        .because(queues(view))
        .because([rates(view)])
        .remedy("raise net.ipv4.udp_mem (pages, three values, one for the whole host); /proc/net/sockstat shows what is used (UDP: mem)")
        .remedy(Remedy::SMALLER_BUFFERS),
    )
}
