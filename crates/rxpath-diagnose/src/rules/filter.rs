//! Something drops on purpose: netfilter, an ingress hook, the reverse path filter.

use crate::rules::prelude::*;

const FILTERS: [Place; 6] = [
    Place::EgressHook,
    Place::IngressHook,
    Place::ReversePath,
    Place::Netfilter,
    Place::IpsecPolicy,
    Place::SocketFilter,
];

pub fn judge(view: &View) -> Option<Claim> {
    let lost_at = FILTERS.map(|place| match place {
        Place::Netfilter => (view.lost_at(place) - view.lost_in_conntrack(), place),
        _ => (view.lost_at(place), place),
    });
    let (at_most, most) = lost_at.into_iter().max()?;
    let lost = lost_at.iter().fold(0u64, |sum, (lost, _)| sum.saturating_add(*lost));
    if !view.is_loss_at(most, lost) {
        return None;
    }
    let lines = FILTERS.iter().flat_map(|place| drops(view, *place));
    // A derived term (received less delivered) is sure only when a rule's own counter says the same.
    let told = |drop: &&rxpath_record::ledger::Drop| {
        !drop.derived || drop.cross_checks.iter().any(|check| check.agrees)
    };
    let sure = view.drops_at(most).iter().all(told);
    let derived = (view.raw.watched && most == Place::Netfilter && !sure).then(|| {
        let text = format!(
            "{} packets reached IP but were neither delivered, nor forwarded, nor counted elsewhere: dropped by filter rules, or dropped without a counter, for example multicast that no program joined",
            count(at_most)
        );
        line(text, "difference of IP's counters; with BPF the kernel's drop reasons would show it")
    });
    let remedy = match most {
        Place::ReversePath => {
            "add the route back to the senders, or loosen the filter: net.ipv4.conf.IF.rp_filter=2 (the larger of `all` and IF counts)"
        }
        Place::EgressHook => {
            "look at the hooks at the sender's egress: `nft list hooks netdev device IF`, `tc filter show dev IF egress`, `bpftool net show dev IF` (tcx)"
        }
        Place::IngressHook => {
            "look at the hooks at ingress: `nft list hooks netdev device IF`, `tc filter show dev IF ingress`, `ip link show IF` (xdp), `nft list tables bridge`; if an ifb device shapes incoming traffic, `tc -s qdisc show dev IFB` shows its rate and drops"
        }
        Place::IpsecPolicy => {
            "look for the policy that requires IPsec for this traffic (`ip xfrm policy`) and for the missing state (`ip xfrm state`)"
        }
        Place::SocketFilter => {
            "look for a filter of the service itself (`ss -ulnpe -b` shows SO_ATTACH_FILTER) and of its unit (IPAddressDeny= of systemd, `bpftool cgroup tree`)"
        }
        _ => {
            "find the rule by its counter (`nft list ruleset`, `iptables-save -c`) and accept this traffic before it; a rule that hands packets to a program (`queue`, NFQUEUE) drops all of them while no program reads (`cat /proc/net/netfilter/nfnetlink_queue`)"
        }
    };
    let sentence = format!(
        "a filter is the limit: {} of {} were dropped at {}",
        percent(view.share_at(most, lost)),
        whose(view, most),
        most.words().noun
    );
    Some(
        Claim::new(Stage::Filter, Confidence::strong_if(sure), &[Part::Ledger], sentence)
            .losing_at(view, most, lost)
            .because(lines)
            .because(derived)
            .because([rates(view)])
            .remedy(remedy),
    )
}
