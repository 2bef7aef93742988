//! Aggregation and checksums: fewer, larger packets for the stack.

use super::above::{forwards, vlans};
use super::without_hardware;
use crate::prelude::*;

const FEATURES: &str =
    "kernel: Documentation/networking/ethtool-netlink.rst, FEATURES_GET and FEATURES_SET";
const SEGMENT: &str = "kernel: Documentation/networking/segmentation-offloads.rst";
const GROUPS: &str = "features change in groups: others may change with it, and the kernel lists them as not requested";
const UNDO: &str = "restore the whole previous set of features";

/// Rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        id: "offload-gro",
        what: "Is generic receive offload on?",
        applies: "NICs and tunnels that are up",
        weight: Weight::by_goal().when(Throughput, Warn).when(Fairness, Warn),
        size: Multiple,
        effect: "with bulk TCP one pass through the stack handles up to 64 KiB instead of one segment",
        check: Check::Device(gro),
        why: "Most of the receive cost is per packet. GRO merges the segments of a flow within one poll before \
              they go up the stack.",
        mechanism: "dev_gro_receive (net/core/gro.c) holds segments of a flow until the poll ends, \
                    gro_flush_timeout passes or 64 KiB are full. A tunnel merges decapsulated packets again, with \
                    its own switch (gro_cells_receive, net/core/gro_cells.c). Bridges, bonds, VLANs and macvlans \
                    get packets that the device below merged. A veth merges if its GRO is on (off by default).",
        not_when: "a per-packet measurement of the path; small UDP datagrams gain nothing unless the socket sets \
                   UDP_GRO",
        side_effects: "packets of a flow arrive in batches; features change in groups",
        set_now: "ethtool -K DEV gro on",
        persist: "systemd .link: GenericReceiveOffload=yes",
        undo: UNDO,
        verify: "ethtool -k DEV: generic-receive-offload: on",
        since: "2.6.29",
        sources: &["kernel: net/core/gro.c dev_gro_receive", SEGMENT],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "offload-gro-hw",
        what: "Is hardware GRO on (rx-gro-hw)?",
        applies: "NICs that are up and let rx-gro-hw be switched",
        weight: Weight::by_goal().when(Throughput, Info),
        check: Check::Device(gro_hw),
        why: "Merging in the NIC costs the CPU nothing per segment. Unlike with LRO, merged packets can be split \
              again.",
        mechanism: "NETIF_F_GRO_HW: the driver delivers frames that look like those of software GRO.",
        not_when: "per-packet measurements; drivers turn it off under XDP",
        side_effects: GROUPS,
        set_now: "ethtool -K DEV rx-gro-hw on",
        persist: "systemd .link: GenericReceiveOffloadHardware=yes",
        undo: UNDO,
        verify: "ethtool -k DEV: rx-gro-hw: on; some virtio back ends accept it and fail in the log",
        since: "4.16",
        sources: &["kernel: Documentation/networking/netdev-features.rst, rx-gro-hw", FEATURES],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "offload-lro",
        what: "Is LRO off on a host that forwards or bridges?",
        applies: "NICs that are up and have LRO on",
        weight: Weight::always(Fail),
        size: Loss,
        effect: "packets merged by LRO cannot be restored for forwarding: they are dropped or cut wrongly",
        check: Check::Nic(lro),
        why: "LRO loses the headers of merged packets. A router or bridge cannot restore them.",
        mechanism: "dev_disable_lro (net/core/dev.c) turns it off for ip_forward, bridges and generic XDP; a driver or \
                    an administrator can turn it on again afterwards.",
        not_when: "an end host that does not forward: LRO is then allowed, GRO is still the better choice",
        side_effects: GROUPS,
        set_now: "ethtool -K DEV lro off",
        persist: "systemd .link: LargeReceiveOffload=no",
        undo: UNDO,
        verify: "ethtool -k DEV: large-receive-offload: off",
        since: "2.6.24; turned off by the kernel since 2.6.27",
        sources: &["kernel: net/core/dev.c dev_disable_lro", SEGMENT],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "offload-gro-list",
        what: "Does a forwarding host keep GRO lists whole (rx-gro-list)?",
        applies: "NICs that are up, on hosts that forward",
        weight: Weight::by_goal().when(Throughput, Info),
        check: Check::Device(gro_list),
        why: "Forwarded packets that are chained instead of merged need no segmentation when they leave.",
        mechanism: "skb_gro_receive_list (net/core/gro.c) chains the packets in frag_list; sending walks it.",
        not_when: "packets end in a socket here: merging is cheaper then",
        side_effects: GROUPS,
        set_now: "ethtool -K DEV rx-gro-list on",
        persist: "a udev rule",
        undo: UNDO,
        verify: "ethtool -k DEV: rx-gro-list: on",
        since: "5.6 for UDP; TCP 6.10",
        sources: &["kernel: net/core/gro.c skb_gro_receive_list", FEATURES],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "offload-udp-gro-fwd",
        what: "Does a forwarding host aggregate UDP (rx-udp-gro-forwarding)?",
        applies: "NICs that are up, on hosts that forward",
        weight: Weight::by_goal().when(Throughput, Info),
        check: Check::Device(udp_fwd),
        why: "Tunnels and QUIC are UDP. Without this setting a router handles each datagram alone; WireGuard \
              implementations recommend it.",
        mechanism: "udp_gro_receive (net/ipv4/udp_offload.c) aggregates flows without a local socket when \
                    NETIF_F_GRO_UDP_FWD is set.",
        not_when: "no UDP is forwarded",
        side_effects: GROUPS,
        set_now: "ethtool -K DEV rx-udp-gro-forwarding on rx-gro-list off",
        persist: "a udev rule",
        undo: UNDO,
        verify: "ethtool -k DEV: rx-udp-gro-forwarding: on",
        since: "5.12",
        sources: &["kernel: net/ipv4/udp_offload.c udp_gro_receive", FEATURES],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "udp-gro-socket",
        what: "Can programs here receive merged datagrams (UDP_GRO)?",
        applies: "every host; whether a program uses it cannot be read",
        check: Check::Host(udp_gro),
        why: "A program that sets UDP_GRO reads several datagrams of a flow in one call. No interface shows the \
              option.",
        mechanism: "setsockopt(SOL_UDP, UDP_GRO); udp_gro_receive merges datagrams of equal length.",
        not_when: "the program cannot handle merged reads: it would lose datagram boundaries",
        side_effects: "the program sees several datagrams in one read, with their length next to it",
        set_now: "an option of the application",
        persist: "the application's configuration",
        verify: "strace -f -e setsockopt -p PID",
        since: "5.0",
        sources: &["kernel: net/ipv4/udp.c udp_lib_setsockopt UDP_GRO"],
        ..Rule::record(Area::Offloads)
    },
    Rule {
        id: "offload-rx-csum",
        what: "Does the NIC verify checksums?",
        applies: "NICs that are up and let rx-checksum be switched",
        weight: Weight::always(Warn),
        size: Tens,
        effect: "without it the CPU reads every byte once more",
        check: Check::Device(rx_csum),
        why: "Without it the kernel computes the checksum of every packet, also for GRO, and turns rx-gro-hw off.",
        mechanism: "CHECKSUM_UNNECESSARY or CHECKSUM_COMPLETE (include/linux/skbuff.h) avoid \
                    __skb_checksum_complete; netdev_fix_features (net/core/dev.c) allows no GRO_HW without \
                    RXCSUM.",
        not_when: "a NIC whose checksums are known to be wrong",
        side_effects: GROUPS,
        set_now: "ethtool -K DEV rx on",
        persist: "systemd .link: ReceiveChecksumOffload=yes",
        undo: UNDO,
        verify: "ethtool -k DEV: rx-checksumming: on",
        since: "2.4",
        sources: &["kernel: Documentation/networking/checksum-offloads.rst", FEATURES],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "offload-rx-hash",
        what: "Does the NIC pass its hash to RPS and RFS?",
        applies: "NICs that are up, on hosts that use RPS or RFS on them",
        weight: Weight::always(Info).when(Throughput, Warn),
        check: Check::Device(rx_hash),
        why: "RPS needs a hash of each packet. Without the NIC's hash the CPU dissects the headers itself.",
        mechanism: "__skb_get_hash_net (net/core/flow_dissector.c) computes one when the driver set none \
                    (NETIF_F_RXHASH off).",
        not_when: "the NIC's hash leaves out the ports (see rss-fields-udp4)",
        side_effects: GROUPS,
        set_now: "ethtool -K DEV rxhash on",
        persist: "a udev rule",
        undo: UNDO,
        verify: "ethtool -k DEV: receive-hashing: on",
        since: "2.6.35",
        sources: &[
            "kernel: net/core/flow_dissector.c __skb_get_hash_net, called by skb_get_hash",
            FEATURES,
        ],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "offload-tso-gso",
        what: "Is segmentation offload on (TSO, GSO)?",
        applies: "devices that are up and let segmentation be switched, virtual ones too",
        weight: Weight::by_goal().when(Throughput, Warn).when(Benchmark, Warn),
        size: Multiple,
        effect: "a bulk sender passes the stack once for up to 64 KiB",
        check: Check::Device(tso),
        why: "Without it the sender is slow, and a receiver test then measures the sender.",
        mechanism: "validate_xmit_skb (net/core/dev.c) passes a large packet to a driver with NETIF_F_TSO; for \
                    others skb_gso_segment splits it.",
        not_when: "a per-packet measurement of the path",
        side_effects: GROUPS,
        set_now: "ethtool -K DEV tso on gso on",
        persist: "systemd .link: TCPSegmentationOffload=yes, GenericSegmentationOffload=yes",
        undo: UNDO,
        verify: "ethtool -k DEV",
        since: "2.6",
        sources: &[SEGMENT, FEATURES],
        ..Rule::judge(Area::Offloads)
    },
    Rule {
        id: "offload-vlan",
        what: "Does the NIC strip VLAN tags?",
        applies: "NICs that are up, let it be switched and carry VLANs",
        check: Check::Device(vlan),
        why: "In software the CPU moves the 12 address bytes of each packet over the tag, and may have to copy \
              the header first.",
        mechanism: "skb_vlan_untag and skb_reorder_vlan_header (net/core/skbuff.c) when NETIF_F_HW_VLAN_CTAG_RX is off.",
        not_when: "no VLAN is used on it",
        side_effects: GROUPS,
        set_now: "ethtool -K DEV rxvlan on",
        persist: "systemd .link: ReceiveVLANCTAGHardwareAcceleration=yes",
        undo: UNDO,
        verify: "ethtool -k DEV: rx-vlan-offload: on",
        since: "2.6",
        sources: &["kernel: net/core/skbuff.c skb_vlan_untag", FEATURES],
        ..Rule::judge(Area::Offloads)
    },
];

/// A feature by the kernel's name: whether it is on, and whether it can be switched.
fn feature(device: &Device, name: &str) -> Result<(bool, bool), Gap> {
    let all = (&device.nic.features).known()?;
    let found = all.get(name).ok_or_else(|| Gap::Absent(format!("the kernel has no {name}")))?;
    Ok((found.active, found.changeable))
}

/// The usual question: a feature that should be on.
fn should_be_on(device: &Device, name: &str, why: &str) -> Checked {
    if let Some(silent) = quiet(device) {
        return silent;
    }
    match feature(device, name)? {
        (true, _) => Answer::fine(format!("{name} is on")),
        (false, false) => {
            Answer::silent(format!("{name} is off, and the driver does not let it be switched"))
        }
        (false, true) => Answer::found(format!("{name} is off"), "on", why)
            .change(Set::switch(Knob::part(&device.name, Group::Features, name), true)),
    }
}

fn gro(_: &Ask<'_>, device: &Device) -> Checked {
    if let Some(answer) = without_hardware::gro(device) {
        return answer;
    }
    should_be_on(device, "rx-gro", "every segment passes the stack alone")
}

fn gro_hw(_: &Ask<'_>, device: &Device) -> Checked {
    should_be_on(device, "rx-gro-hw", "the CPU merges segments that the NIC could merge")
}

fn lro(ask: &Ask<'_>, device: &Device) -> Checked {
    let (on, changeable) = feature(device, "rx-lro")?;
    if !on {
        return Answer::fine("off");
    }
    if !forwards(ask, device) {
        return Answer::silent("on, and this host neither forwards nor bridges it");
    }
    let found = Answer::found(
        "rx-lro is on and this host forwards or bridges its packets",
        "off",
        "packets merged by LRO cannot be restored for forwarding",
    );
    if changeable {
        let knob = Knob::part(&device.name, Group::Features, "rx-lro");
        return found.change(Set::switch(knob, false));
    }
    found.advice("the driver does not let it be switched: take the device out of the bridge")
}

fn gro_list(ask: &Ask<'_>, device: &Device) -> Checked {
    if !forwards(ask, device) {
        return Answer::silent("this host does not forward");
    }
    // Both in one plan would undo each other: with rx-gro-list, udp_gro_receive makes lists.
    match feature(device, "rx-udp-gro-forwarding") {
        Ok((true, _)) => return Answer::silent("rx-udp-gro-forwarding is on instead"),
        Ok((false, true)) => return Answer::silent("rx-udp-gro-forwarding can be on instead"),
        _ => {}
    }
    should_be_on(device, "rx-gro-list", "forwarded packets are merged and split again")
}

fn udp_fwd(ask: &Ask<'_>, device: &Device) -> Checked {
    if !forwards(ask, device) {
        return Answer::silent("this host does not forward");
    }
    if feature(device, "rx-gro-list").is_ok_and(|(on, _)| on) {
        return Answer::silent("rx-gro-list is on instead");
    }
    should_be_on(device, "rx-udp-gro-forwarding", "each forwarded datagram passes the stack alone")
}

fn udp_gro(ask: &Ask<'_>) -> Checked {
    (&ask.facts.kernel.version).known()?;
    Answer::recorded(if ask.facts.kernel.is_since(5, 0) {
        "the kernel has UDP_GRO; which programs use it cannot be read"
    } else {
        "this kernel has no UDP_GRO (5.0)"
    })
}

fn rx_csum(_: &Ask<'_>, device: &Device) -> Checked {
    should_be_on(device, "rx-checksum", "the CPU reads every byte once more for the checksum")
}

fn rx_hash(ask: &Ask<'_>, device: &Device) -> Checked {
    let entries =
        ask.facts.sysctl_number("net.core.rps_sock_flow_entries").value().copied().unwrap_or(0);
    let by_flow = device.has_flow_tables() && entries > 0;
    if !(device.has_rps() || by_flow) {
        return Answer::silent("neither RPS nor RFS asks for a hash");
    }
    should_be_on(device, "rx-hashing", "RPS dissects each packet to hash it")
}

fn tso(_: &Ask<'_>, device: &Device) -> Checked {
    if !device.is_nic() {
        return without_hardware::segmentation(device);
    }
    match feature(device, "tx-tcp-segmentation")? {
        (false, true) => {
            should_be_on(device, "tx-tcp-segmentation", "the sender splits segments on the CPU")
        }
        _ => should_be_on(
            device,
            "tx-generic-segmentation",
            "each segment passes down the stack alone",
        ),
    }
}

fn vlan(ask: &Ask<'_>, device: &Device) -> Checked {
    if vlans(ask, device).next().is_none() {
        return Answer::silent("no VLAN on this device");
    }
    should_be_on(device, "rx-vlan-hw-parse", "the CPU removes the tag from each packet")
}
