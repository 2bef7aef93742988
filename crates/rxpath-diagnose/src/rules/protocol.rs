//! The device, IP or UDP refuses packets that no filter was meant to drop: length, header, route, fragments.

use crate::rules::prelude::*;

/// Each place, how sure it is that its counter means a loss, and where to look.
const REFUSING: [(Place, Confidence, &str); 6] = [
    (
        Place::DeviceRefused,
        Confidence::Fair,
        "compare the MTU of both ends (`ip link show`): a frame longer than the receiving device's is refused; `ip -s -s link show IF` counts it as dropped",
    ),
    (
        Place::Ip,
        Confidence::Fair,
        "see which counter increases (`nstat -a`): InHdrErrors are damaged headers and an expired TTL, InAddrErrors packets for addresses that this host neither has nor forwards to, InTruncatedPkts packets whose header claims more bytes than arrived, FragFails and InTooBigErrors packets that do not fit the link behind a router and must not be fragmented, InDiscards a lack of memory",
    ),
    (
        Place::Routing,
        Confidence::Strong,
        "see why routing rejects them: an impossible source address (`sysctl -w net.ipv4.conf.all.log_martians=1` logs them), a multicast group that no program joined (`ip maddr show`), no route (`ip route get DESTINATION from SOURCE iif IF`)",
    ),
    (
        Place::Fragments,
        Confidence::Strong,
        "fragments are lost before this host or do not fit net.ipv4.ipfrag_high_thresh (net.ipv6.ip6frag_high_thresh): send datagrams that fit the path's MTU, or raise this limit",
    ),
    (
        Place::UdpOther,
        Confidence::Fair,
        "without the kernel's reasons these look alike: a filter of the socket (`ss -ulnpe -b`), of its control group (IPAddressDeny= of systemd), an IPsec policy (`ip xfrm policy`), a wrong length; run rxpath with BPF",
    ),
    (
        Place::ReasonOnly,
        Confidence::Fair,
        "`rxpath explain REASON` explains a reason, `rxpath trace` shows its ports",
    ),
];

pub fn judge(view: &View) -> Option<Claim> {
    let lost_at = |(at, sure, look)| (view.lost_at(at), at, sure, look);
    let (lost, most, sure, look) = REFUSING.map(lost_at).into_iter().max_by_key(|it| it.0)?;
    if !view.is_loss_at(most, lost) {
        return None;
    }
    let share = percent(view.share_at(most, lost));
    let sentence = format!(
        "the receive path rejects packets: {share} of {} were dropped at {}",
        whose(view, most),
        most.words().noun
    );
    Some(
        Claim::new(Stage::Refused, sure, &[Part::Ledger], sentence)
            .dropped_at(view, most, lost)
            .because([rates(view)])
            .remedy(look),
    )
}
