//! Datagrams arrive with a wrong UDP checksum.

use crate::rules::prelude::*;

pub fn judge(view: &View) -> Option<Claim> {
    let lost = view.loss_at(Place::Checksum)?;
    let sentence = format!(
        "damaged datagrams are the limit: {} of the offered ones carried a wrong UDP checksum",
        percent(view.of_offered(lost))
    );
    Some(
        Claim::new(Stage::Checksum, Confidence::Strong, &[Part::Ledger], sentence)
            .dropped_at(view, Place::Checksum, lost)
            .because([rates(view)])
            .remedy("find what damages them: a sender that fills in the checksum itself (raw or AF_PACKET), a device or tunnel with broken offload (`ethtool -K IF tx off` on the sender, one at a time), a bad link")
            .remedy("datagrams over 76 bytes of UDP length are verified only when the reader reaches them: until then they cost socket buffer and reader time like good ones"),
    )
}
