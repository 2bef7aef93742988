//! Protocol errors that no setting of the receive path explains: IP header, address and discard errors, other UDP errors.

use rxpath_record::ledger::Place;
use rxpath_record::verdict::{Confidence, Stage};

use crate::claim::{Claim, Part};
use crate::lines::{drops, next_loss, place, rates, whose};
use crate::view::View;
use crate::wording::percent;

pub fn judge(view: &View) -> Option<Claim> {
    let places = [Place::Ip, Place::UdpOther];
    let (lost, most) = places.map(|place| (view.lost_at(place), place)).into_iter().max()?;
    if !view.is_loss_at(most, lost) {
        return None;
    }
    Some(
        Claim::new(
            Stage::Unknown,
            Confidence::Weak,
            &[Part::Ledger],
            format!(
                "the limit is not a stage of the receive path: {} of {} were refused at {}",
                percent(view.share_at(most, lost)),
                whose(view, most),
                place(most)
            ),
        )
        .losing(lost)
        .because(drops(view, most))
        .because([rates(view)])
        .cure("compare the parts of the counter (`nstat -a`: InHdrErrors, InAddrErrors, InDiscards, ReasmFails, UdpInErrors) before and after; the drop reason of skb:kfree_skb names the line")
        .next(next_loss(view, lost, most)),
    )
}
