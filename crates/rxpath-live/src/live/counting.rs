//! What UDP's counters count as one datagram: packets that the kernel itself takes, and aggregates.

use rxpath_record::counters::Moved;
use rxpath_record::evidence::UdpCounting;

use super::places::{RECEIVED, sum};
use super::reads::Readings;

/// Segments by their ECN bits. **Source** net/ipv4/ip_input.c `ip_rcv_core`, net/ipv6/ip6_input.c `ip6_rcv_core`: these alone
/// count each segment of an aggregate.
const SEGMENTS: [&str; 8] = [
    "IpExt.InNoECTPkts",
    "IpExt.InECT0Pkts",
    "IpExt.InECT1Pkts",
    "IpExt.InCEPkts",
    "Ip6.InNoECTPkts",
    "Ip6.InECT0Pkts",
    "Ip6.InECT1Pkts",
    "Ip6.InCEPkts",
];
/// Less than this more segments than packets are no aggregates worth a word.
const AGGREGATES: f64 = 1.1;
/// Above this share of IP's packets TCP's aggregates hide those of UDP.
const TCP_RATIO: f64 = 0.05;

/// Datagrams that were counted as delivered and that no program read: the outer packets of tunnels. A lower bound, as more
/// time was watched for reads than for counters.
///
/// **Source** net/ipv4/udp.c `udp_queue_rcv_one_skb`: `encap_rcv` took it.
pub(super) fn taken_by_kernel(delivered: u64, reads: Option<&Readings>) -> u64 {
    let read = reads.map(|reads| reads.values().flat_map(|by| by.values()).sum::<u64>());
    read.map_or(0, |read| delivered.saturating_sub(read))
}

/// Of a window in which UDP counted so many datagrams, those taken by the kernel included.
pub(super) fn counting(moved: &Moved, counted: u64, taken_by_kernel: u64) -> UdpCounting {
    let of = |names: &[&str]| sum(moved, names).unwrap_or(0) as f64;
    let (packets, segments) = (of(&RECEIVED), of(&SEGMENTS));
    let tcp = of(&["Tcp.InSegs"]);
    let per_packet = segments / packets.max(1.0);
    // A socket without UDP_GRO gets each segment, and UDP counts more than IP's packets.
    let whole = counted as f64 <= packets && tcp <= TCP_RATIO * packets;
    UdpCounting {
        taken_by_kernel_packets: taken_by_kernel,
        segments_per_packet: (whole && per_packet >= AGGREGATES).then_some(per_packet),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(values: &[(&str, i64)]) -> Moved {
        let named = |(name, value): &(&str, i64)| (format!("machine/{name}"), *value);
        Moved { values: values.iter().map(named).collect(), ..Moved::default() }
    }

    #[test]
    fn aggregates_that_udp_counts_as_one_are_told() {
        let gro = [("Ip.InReceives", 1_250), ("IpExt.InNoECTPkts", 40_000)];
        assert_eq!(counting(&moved(&gro), 1_250, 0).segments_per_packet, Some(32.0));
        let split = "UDP counted each segment";
        assert_eq!(counting(&moved(&gro), 40_000, 0).segments_per_packet, None, "{split}");
        let tcp = [gro[0], gro[1], ("Tcp.InSegs", 600)];
        assert_eq!(counting(&moved(&tcp), 650, 0).segments_per_packet, None, "TCP's aggregates");
        let plain = [("Ip.InReceives", 1_250), ("IpExt.InNoECTPkts", 1_250)];
        assert_eq!(counting(&moved(&plain), 1_250, 0), UdpCounting::default());
    }

    #[test]
    fn what_nobody_read_was_taken_by_the_kernel() {
        let reads: Readings = [(7, [(1, 60), (2, 40)].into())].into();
        assert_eq!(taken_by_kernel(200, Some(&reads)), 100);
        assert_eq!(taken_by_kernel(90, Some(&reads)), 0, "reads before the counters' window");
        assert_eq!(taken_by_kernel(200, None), 0, "reads are not known");
    }
}
