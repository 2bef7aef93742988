//! How counters are called: the one place that spells the names.

use rxpath_core::PathSide;

/// A counter of `/proc/net/snmp` or `/proc/net/netstat`: `rx/Udp.RcvbufErrors`, `rx/TcpExt.IPReversePathFilter`.
pub fn snmp(side: PathSide, group: &str, counter: &str) -> String {
    format!("{side}/{group}.{counter}")
}

/// The packets that IP received, by the two bits of ECN: group `IpExt` or `Ip6`.
pub const ECN: [&str; 4] = ["InNoECTPkts", "InECT0Pkts", "InECT1Pkts", "InCEPkts"];

/// Groups of `/proc/net/snmp6`, longest first: the file writes `Udp6RcvbufErrors` in one word.
const SNMP6_GROUPS: [&str; 4] = ["UdpLite6", "Icmp6", "Udp6", "Ip6"];

/// A line of `/proc/net/snmp6` under the name used here: `Ip6InReceives` is `rx/Ip6.InReceives`.
///
/// A word of an unknown group is kept whole.
pub fn snmp6(side: PathSide, word: &str) -> String {
    for group in SNMP6_GROUPS {
        if let Some(counter) = word.strip_prefix(group) {
            return snmp(side, group, counter);
        }
    }
    format!("{side}/{word}")
}

/// A 64-bit link counter (`IFLA_STATS64`, `/proc/net/dev`): `tx/link.veth.tx.dropped`.
///
/// `counter` is `rx.packets`, `rx.dropped`, `rx.missed_errors`, `tx.packets`, `tx.dropped`.
pub fn link(side: PathSide, device: &str, counter: &str) -> String {
    format!("{side}/link.{device}.{counter}")
}

/// Behind the name of a link: its index. A device that is removed and added again has another one.
pub const INDEX: &str = ".index";

/// What a driver counts when its ring had no free descriptor (Documentation/networking/statistics.rst). Drivers have one
/// of the three names for it, some the same number under two: the largest is meant.
pub const RING: [&str; 3] = ["rx.missed_errors", "rx.fifo_errors", "rx.over_errors"];

/// Source of what devices received that are neither the measured one nor below it: `rx/other-devices.eno1.rx.packets`.
pub const OTHER_DEVICES: &str = "other-devices";

/// A driver counter (`ETHTOOL_GSTATS`): `rx/ethtool.veth.rx_queue_0_xdp_packets`.
pub fn ethtool(side: PathSide, device: &str, counter: &str) -> String {
    format!("{side}/ethtool.{device}.{counter}")
}

/// A counter of a queueing discipline (`TCA_STATS2`): `tx/qdisc.veth.tbf-1:.drops`.
///
/// `id` tells the device's disciplines apart: kind and handle.
pub fn qdisc(side: PathSide, device: &str, id: &str, counter: &str) -> String {
    format!("{side}/qdisc.{device}.{id}.{counter}")
}

/// The counter of a rule, by its position in its chain from 1: `rx/nft.inet.t.in.2.packets`.
pub fn nft(side: PathSide, chain: &str, position: u32) -> String {
    format!("{side}/nft.{chain}.{position}.packets")
}

/// A column of `/proc/net/softnet_stat`, one line per CPU: `machine/softnet.cpu1.dropped`.
///
/// **Caveat** it counts for the whole machine, all namespaces and devices together.
pub fn softnet(cpu: u32, counter: &str) -> String {
    format!("{}/softnet.cpu{cpu}.{counter}", PathSide::Machine)
}

/// Whether a counter has 32 bits only: those of `softnet_stat`, without its levels.
fn has_32_bits(name: &str) -> bool {
    let counter = name.split_once('/').map_or(name, |(_, counter)| counter);
    counter.starts_with("softnet.") && !counter.ends_with("_len")
}

/// What mlx5_core counts in 32 bits: its own counter, and the kernel's that it fills with it.
///
/// **Source** Linux 6.12, drivers/net/ethernet/mellanox/mlx5/core/en_stats.h `mlx5e_qcounter_stats`, en_main.c `mlx5e_get_stats`.
const OF_CARDS_WITH_32_BITS: [&str; 2] = [".rx_out_of_buffer", ".rx.missed_errors"];

/// Whether the difference of two values of this counter is one modulo 2^32. Other cards count 64 bits under the same name, and a
/// card that was reset counts less: such a counter wrapped only if it fell by more than 2^31.
pub fn wraps_at_32_bits(name: &str, then: u64, now: u64) -> bool {
    let is_of_card = || OF_CARDS_WITH_32_BITS.iter().any(|counter| name.ends_with(counter));
    has_32_bits(name) || (then.saturating_sub(now) > 1 << 31 && is_of_card())
}

/// Energy of all processor packages and their memory: `machine/energy.package-0.uj` and its like. **Unit** uJ.
pub const ENERGY: [&str; 2] = ["machine/energy.", ".uj"];

/// Begin of the names of counters that the network between hosts has, by a command of the user.
pub const OF_NETWORK: &str = "network/";

/// Sources that count for the whole machine.
const OF_MACHINE: [&str; 2] = ["softnet", "energy"];

/// The side of a counter or a source that was read on the receiver's host: some count for the whole machine.
pub fn side_on_receiver(name: &str) -> PathSide {
    let source = name.split('.').next().unwrap_or_default();
    if OF_MACHINE.contains(&source) { PathSide::Machine } else { PathSide::Rx }
}

/// A counter of one of several receivers, under the name of a trial with one: `rx@sut/Udp.InErrors`.
pub fn of_host(side: PathSide, host: &str, name: &str) -> String {
    format!("{side}@{host}/{name}")
}

/// A count of freed packets by reason (tracepoint `skb:kfree_skb`): `machine/drop_reason.NETFILTER_DROP`.
pub fn drop_reason(reason: &str) -> String {
    format!("{}/drop_reason.{reason}", PathSide::Machine)
}

/// Files that hold several groups; a reader names the file when it can't be read.
const FILES: [(&str, &[&str]); 5] = [
    ("snmp", &["Ip", "Icmp", "IcmpMsg", "Tcp", "Udp", "UdpLite"]),
    ("netstat", &["TcpExt", "IpExt", "MPTcpExt"]),
    ("snmp6", &["Ip6", "Icmp6", "Udp6", "UdpLite6"]),
    ("softnet", &["softnet"]),
    ("energy", &["energy"]),
];

/// Whether a gap called `gap` hides the counter called `counter`.
///
/// It does when it is the same name, a group that holds it (`rx/link.veth`), its side (`rx/`, which holds those of each of
/// several receivers, too), or the file of its group (`rx/snmp`, with or without the side).
pub fn covers(gap: &str, counter: &str) -> bool {
    let rest_after = |begin: &str| counter.strip_prefix(begin);
    let of_side = gap.strip_suffix('/').and_then(rest_after);
    let of_side = of_side.is_some_and(|rest| rest.starts_with(['/', '@']));
    let of_name = rest_after(gap)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || gap.ends_with('.'));
    of_side || of_name || covers_file(gap, counter)
}

fn covers_file(gap: &str, counter: &str) -> bool {
    let Some((side, rest)) = counter.split_once('/') else { return false };
    let group = rest.split('.').next().unwrap_or_default();
    let file = match gap.split_once('/') {
        Some((of_side, file)) if of_side == side => file,
        Some(_) => return false,
        None => gap,
    };
    FILES.iter().any(|(name, groups)| *name == file && groups.contains(&group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softnet_and_energy_are_the_machines() {
        for name in ["softnet.cpu0.dropped", "energy.package-0.uj", "energy"] {
            assert_eq!(side_on_receiver(name), PathSide::Machine, "{name}");
        }
        assert_eq!(side_on_receiver("Udp.InErrors"), PathSide::Rx);
        assert!(ENERGY[0].starts_with(&PathSide::Machine.to_string()));
    }

    #[test]
    fn the_words_of_snmp6_are_split_at_their_group() {
        assert_eq!(snmp6(PathSide::Rx, "Ip6InReceives"), "rx/Ip6.InReceives");
        assert_eq!(snmp6(PathSide::Tx, "Udp6SndbufErrors"), "tx/Udp6.SndbufErrors");
        assert_eq!(snmp6(PathSide::Rx, "UdpLite6InErrors"), "rx/UdpLite6.InErrors");
        assert_eq!(snmp6(PathSide::Rx, "Icmp6InMsgs"), "rx/Icmp6.InMsgs");
        assert_eq!(snmp6(PathSide::Rx, "Foo"), "rx/Foo");
    }

    #[test]
    fn a_gap_covers_its_group_and_no_other() {
        assert!(covers("rx/Udp", "rx/Udp.NoPorts") && covers("rx/", "rx/Udp.NoPorts"));
        assert!(covers("rx/Udp.NoPorts", "rx/Udp.NoPorts"));
        assert!(covers("rx/", "rx@sut/Udp.NoPorts") && !covers("rx@sut/", "rx/Udp.NoPorts"));
        assert!(!covers("rx/Udp", "rx/Udp6.NoPorts") && !covers("tx/Udp", "rx/Udp.NoPorts"));
        assert!(covers("rx/snmp", "rx/Udp.NoPorts") && covers("snmp6", "rx/Udp6.NoPorts"));
        assert!(!covers("tx/snmp", "rx/Udp.NoPorts") && !covers("rx/snmp", "rx/Udp6.NoPorts"));
        assert!(!covers("rx/link.veth1", "rx/link.veth10.rx.packets"));
    }
}
