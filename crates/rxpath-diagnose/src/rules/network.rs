//! The network between two hosts loses packets.

use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let lost = view.lost_at(Place::Network);
    if !view.is_loss(lost) {
        return None;
    }
    let share = percent(view.of_offered(lost));
    let sentence = format!(
        "the network is the limit: {share} of the offered datagrams left the sender's card and did not reach the receiver's"
    );
    Some(
        Claim::new(Stage::Network, Confidence::Strong, &[Part::Ledger], sentence)
            .dropped_at(view, Place::Network, lost)
            .because([rates(view)])
            .remedy("look at the counters of the switch ports between the two: discards mean a full queue, errors a bad cable or transceiver")
            .remedy("flow control of the receiver (`ethtool -A IF rx on tx on`) makes the sender wait where the switch supports it")
            .remedy(Remedy::LOWER_RATE),
    )
}
