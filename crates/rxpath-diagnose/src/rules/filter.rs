//! Something drops on purpose: netfilter, an ingress hook, the reverse path filter.

use rxpath_record::ledger::Place;
use rxpath_record::verdict::{Confidence, Stage};

use crate::claim::{Claim, Part};
use crate::lines::{drops, next_loss, place, rates};
use crate::view::View;
use crate::wording::percent;

const FILTERS: [Place; 4] =
    [Place::EgressHook, Place::IngressHook, Place::ReversePath, Place::Netfilter];

pub fn judge(view: &View) -> Option<Claim> {
    let lost_at = FILTERS.map(|place| match place {
        Place::Netfilter => (view.lost_at(place) - view.lost_in_conntrack(), place),
        _ => (view.lost_at(place), place),
    });
    let (_, most) = lost_at.into_iter().max()?;
    let lost = lost_at.iter().fold(0u64, |sum, (lost, _)| sum.saturating_add(*lost));
    if !view.is_loss(lost) {
        return None;
    }
    let lines = FILTERS.iter().flat_map(|place| drops(view, *place));
    // A derived term (received less delivered) is sure only when a rule's own counter says the same.
    let told = |drop: &&rxpath_record::ledger::Drop| {
        !drop.derived || drop.cross_checks.iter().any(|check| check.agrees)
    };
    let sure = view.drops_at(most).iter().all(told);
    let remedy = match most {
        Place::ReversePath => {
            "add the route back to the senders, or loosen the filter: net.ipv4.conf.IF.rp_filter=2 (the larger of `all` and IF counts)"
        }
        Place::EgressHook => {
            "look at what hangs at the sender's egress: `nft list hooks netdev device IF`, `tc filter show dev IF egress`"
        }
        Place::IngressHook => {
            "look at what hangs at ingress: `nft list hooks netdev device IF`, `tc filter show dev IF ingress`, `ip link show IF` (xdp)"
        }
        _ => {
            "find the rule by its counter (`nft list ruleset`, `iptables-save -c`) and accept this traffic before it"
        }
    };
    Some(
        Claim::new(
            Stage::Filter,
            if sure { Confidence::Strong } else { Confidence::Fair },
            &[Part::Ledger],
            format!(
                "a filter is the limit: {} of the offered datagrams were dropped at {}",
                percent(view.of_offered(lost)),
                place(most)
            ),
        )
        .losing(lost)
        .because(lines)
        .because([rates(view)])
        .cure(remedy)
        .next(next_loss(view, lost, most)),
    )
}
