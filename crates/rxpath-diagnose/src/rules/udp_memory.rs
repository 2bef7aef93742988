//! The machine-wide UDP memory limit.

use rxpath_record::ledger::Place;
use rxpath_record::verdict::{Confidence, Stage};

use crate::claim::{Claim, Part};
use crate::lines::{drops, next_loss, queues, rates};
use crate::remedy::Remedy;
use crate::view::View;
use crate::wording::percent;

pub fn judge(view: &View) -> Option<Claim> {
    let places = [Place::UdpMemory, Place::UdpMemoryUncounted];
    let lost = places.iter().fold(0u64, |sum, place| sum.saturating_add(view.lost_at(*place)));
    if !view.is_loss(lost) {
        return None;
    }
    Some(
        Claim::new(
            Stage::SocketQueue,
            Confidence::Strong,
            &[Part::Ledger],
            format!(
                "the machine's UDP memory limit is the limit: {} of the offered datagrams were dropped because all sockets together hold too much",
                percent(view.of_offered(lost))
            ),
        )
        .losing(lost)
        .because(places.iter().flat_map(|place| drops(view, *place)))
        .because(queues(view))
        .because([rates(view)])
        .cure("raise net.ipv4.udp_mem (pages, three values, one for the whole host); /proc/net/sockstat shows what is used (UDP: mem)")
        .cure(Remedy::SmallerBuffers)
        .next(next_loss(view, lost, Place::UdpMemory)),
    )
}
