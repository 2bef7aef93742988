//! Packets that a device drops or that arrive damaged, while rxpath watches.

use rxpath_core::number::grouped;

use crate::prelude::*;

/// Fewer drops in the window are normal: some packets belong to protocols that this host does not use.
const ENOUGH: u64 = 25;
const MUCH_RATIO: f64 = 0.01;

/// From this many damaged frames on, the cable should be checked.
const DAMAGED: u64 = 3;
const DAMAGED_RATIO: f64 = 1e-5;

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "device-drops",
        what: "Does a device drop packets (virtual devices included)?",
        applies: "devices that are up and were read twice",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "each of them is lost on this host",
        check: Check::Active(drops),
        why: "Received packets are dropped if no protocol handles them, if a CPU's backlog is full, or if the \
              driver has no memory. Transmitted packets are dropped if the other end of a virtual device is full, \
              down or has a smaller MTU.",
        mechanism: "__netif_receive_skb_core counts rx_dropped for a packet without a handler, enqueue_to_backlog \
                    for a full backlog (net/core/dev.c). veth_xmit and tun_net_xmit count tx_dropped for packets \
                    that the other end does not accept. struct rtnl_link_stats64 holds both.",
        not_when: "frames of protocols that are not for this host, such as those between switches",
        side_effects: "none: this only counts",
        set_now: "`rxpath trace` names the function and the reason; tx_dropped of a virtual device: mtu-fit, and the reader of a tun",
        persist: "no setting: the cause is a protocol, an MTU or a reader",
        undo: NOTHING_CHANGED,
        verify: "ip -s link show dev DEV, twice: dropped",
        since: "2.6.35",
        sources: &[
            "kernel: include/uapi/linux/if_link.h struct rtnl_link_stats64",
            "kernel: Documentation/networking/statistics.rst",
        ],
        ..Rule::judge(Area::Queues)
    },
    Rule {
        id: "wire-errors",
        what: "Do frames arrive damaged from the wire?",
        applies: "NICs that are up and were read twice",
        weight: Weight::always(Warn),
        size: Loss,
        effect: "the NIC drops each damaged frame",
        check: Check::Nic(damaged),
        why: "A cable, transceiver or port is about to fail, or the two ends disagree about duplex.",
        mechanism: "The NIC compares the checksum of each frame (FCS) and the driver reports rx_crc_errors, rx_frame_errors and \
                    rx_length_errors in struct rtnl_link_stats64.",
        not_when: "frames longer than the MTU on purpose raise rx_length_errors",
        side_effects: "the link goes down while the cable is changed",
        set_now: "clean or replace cable and transceiver; compare both ends: ethtool DEV shows speed and duplex, \
                  ethtool -m DEV shows the optical power of a transceiver",
        persist: "no setting: the cause is the wire",
        undo: NOTHING_CHANGED,
        verify: "ip -s -s link show dev DEV, twice: crc, frame and length",
        since: "2.2",
        sources: &[
            "kernel: include/uapi/linux/if_link.h struct rtnl_link_stats64",
            "IEEE 802.3 clause 30.3.1.1",
        ],
        ..Rule::judge(Area::Queues)
    },
];

fn drops(ask: &Ask<'_>, device: &Device) -> Checked {
    let moved = |name: &str| ask.facts.device_count(device, name).known()?.in_window();
    let mut told = Vec::new();
    let mut much = false;
    for (dropped, passed, words) in
        [("rx_dropped", "rx_packets", "received"), ("tx_dropped", "tx_packets", "sent")]
    {
        let (lost, of) = (moved(dropped)?, moved(passed)?);
        // Drivers differ in whether the one is part of the other.
        let ratio = lost as f64 / of.max(lost).max(1) as f64;
        let is_much = lost >= ENOUGH && ratio >= MUCH_RATIO;
        much |= is_much;
        if is_much || told.is_empty() {
            told.push(format!("{dropped} {} next to {} {words}", grouped(lost), grouped(of)));
        }
    }
    let observed = format!("{} {}", told.join(", "), ask.facts.watched.span());
    if !much {
        return Answer::fine(observed);
    }
    Answer::found(observed, "less than 1 %", "no protocol, no buffer space or no reader")
        .advice("`rxpath trace` names the function that drops, and the reason")
}

fn damaged(ask: &Ask<'_>, device: &Device) -> Checked {
    let moved = |name: &str| ask.facts.device_count(device, name).known()?.in_window();
    let received = moved("rx_packets")?;
    let mut told = Vec::new();
    let mut most = 0;
    for name in ["rx_crc_errors", "rx_frame_errors", "rx_length_errors"] {
        let count = moved(name)?;
        most = most.max(count);
        if count > 0 {
            told.push(format!("{name} {}", grouped(count)));
        }
    }
    let ratio = most as f64 / received.max(most).max(1) as f64;
    let span = ask.facts.watched.span();
    if most < DAMAGED || ratio < DAMAGED_RATIO {
        return Answer::fine(format!("{most} of {received} frames {span}"));
    }
    Answer::found(
        format!("{} next to {} frames received {span}", told.join(", "), grouped(received)),
        "none",
        "the wire, its ends or their settings damage frames",
    )
    .advice("clean or replace cable and transceiver, and compare speed and duplex of both ends")
    .severity(if ratio > 0.001 { Fail } else { Warn })
}
