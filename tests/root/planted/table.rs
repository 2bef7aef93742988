//! The faults: how each is planted, and the rule that must find it.

use super::holds::{self, Held};
use super::traffic::{self, Stop};

/// One fault.
#[derive(Clone, Copy)]
pub struct Fault {
    pub name: &'static str,
    /// The rule that must find it.
    pub rule: &'static str,
    pub goal: Option<&'static str>,
    /// Other rules that the same fault concerns.
    pub also: &'static [&'static str],
    /// Commands in the receiver and in the sender.
    pub rx: &'static str,
    pub tx: &'static str,
    /// What stays in the receiver and in the sender.
    pub rx_hold: Option<fn() -> Held>,
    pub tx_hold: Option<fn() -> Held>,
    /// Traffic from the receiver and from the sender.
    pub rx_load: Option<fn(&Stop)>,
    pub tx_load: Option<fn(&Stop)>,
}

const fn fault(rule: &'static str, name: &'static str, rx: &'static str) -> Fault {
    Fault {
        name,
        rule,
        goal: None,
        also: &[],
        rx,
        tx: "",
        rx_hold: None,
        tx_hold: None,
        rx_load: None,
        tx_load: None,
    }
}

impl Fault {
    const fn goal(mut self, goal: &'static str) -> Self {
        self.goal = Some(goal);
        self
    }

    const fn also(mut self, rules: &'static [&'static str]) -> Self {
        self.also = rules;
        self
    }

    const fn tx(mut self, script: &'static str) -> Self {
        self.tx = script;
        self
    }

    const fn hold(mut self, hold: fn() -> Held) -> Self {
        self.rx_hold = Some(hold);
        self
    }

    const fn peer_holds(mut self, hold: fn() -> Held) -> Self {
        self.tx_hold = Some(hold);
        self
    }

    const fn sends(mut self, load: fn(&Stop)) -> Self {
        self.rx_load = Some(load);
        self
    }

    const fn gets(mut self, load: fn(&Stop)) -> Self {
        self.tx_load = Some(load);
        self
    }
}

/// Every fault.
pub fn all() -> impl Iterator<Item = Fault> {
    [SETTINGS, TRAFFIC, FILTERS, DEVICES].into_iter().flatten().copied()
}

/// Sysctls of the namespace.
const SETTINGS: &[Fault] = &[
    fault("tcp-rmem", "short TCP windows", "echo 4096 131072 212992 > /proc/sys/net/ipv4/tcp_rmem"),
    fault(
        "tcp-wmem",
        "short TCP send buffers",
        "echo 4096 16384 65536 > /proc/sys/net/ipv4/tcp_wmem",
    ),
    fault("tcp-sack", "no selective acknowledgements", "echo 0 > /proc/sys/net/ipv4/tcp_sack"),
    fault("tcp-timestamps", "no TCP timestamps", "echo 0 > /proc/sys/net/ipv4/tcp_timestamps"),
    fault(
        "tcp-moderate-rcvbuf",
        "fixed receive buffers",
        "echo 0 > /proc/sys/net/ipv4/tcp_moderate_rcvbuf",
    ),
    fault(
        "starving-settings",
        "no window scaling",
        "echo 0 > /proc/sys/net/ipv4/tcp_window_scaling",
    ),
    fault(
        "starving-settings",
        "windows that begin small",
        "echo 4096 4096 33554432 > /proc/sys/net/ipv4/tcp_rmem",
    )
    .also(&["tcp-rmem"]),
    fault("starving-settings", "accept queues of one", "echo 1 > /proc/sys/net/core/somaxconn"),
    fault(
        "starving-settings",
        "no cookies and one request",
        "echo 0 > /proc/sys/net/ipv4/tcp_syncookies; echo 1 > /proc/sys/net/ipv4/tcp_max_syn_backlog",
    ),
    fault(
        "protocol-limits",
        "one local port",
        "echo 40000 40000 > /proc/sys/net/ipv4/ip_local_port_range",
    ),
    fault(
        "protocol-limits",
        "no memory for fragments",
        "echo 0 > /proc/sys/net/ipv4/ipfrag_low_thresh; echo 0 > /proc/sys/net/ipv4/ipfrag_high_thresh",
    ),
    fault(
        "protocol-limits",
        "no memory for IPv6 fragments",
        "echo 0 > /proc/sys/net/ipv6/ip6frag_low_thresh; echo 0 > /proc/sys/net/ipv6/ip6frag_high_thresh",
    ),
    fault(
        "protocol-limits",
        "fragments that do not wait",
        "echo 0 > /proc/sys/net/ipv4/ipfrag_time",
    ),
    fault(
        "protocol-limits",
        "one byte on the way",
        "echo 1 > /proc/sys/net/ipv4/tcp_limit_output_bytes",
    ),
    fault(
        "protocol-limits",
        "probing from 48 bytes on",
        "echo 48 > /proc/sys/net/ipv4/tcp_base_mss; echo 2 > /proc/sys/net/ipv4/tcp_mtu_probing",
    ),
    fault("protocol-limits", "two hops", "echo 2 > /proc/sys/net/ipv4/ip_default_ttl"),
    fault("protocol-limits", "two IPv6 hops", "echo 2 > /proc/sys/net/ipv6/conf/all/hop_limit"),
    fault(
        "protocol-limits",
        "pacing at a hundredth",
        "echo 1 > /proc/sys/net/ipv4/tcp_pacing_ca_ratio",
    ),
    fault(
        "protocol-limits",
        "a wakeup for each byte",
        "echo 1 > /proc/sys/net/ipv4/tcp_notsent_lowat",
    ),
    fault(
        "protocol-limits",
        "no patience with order",
        "echo 1 > /proc/sys/net/ipv4/tcp_reordering",
    ),
    fault("protocol-limits", "one retry", "echo 1 > /proc/sys/net/ipv4/tcp_retries2"),
    fault(
        "neighbour-settings",
        "no queue for neighbours",
        "echo 0 > /proc/sys/net/ipv4/neigh/veth/unres_qlen_bytes",
    ),
    fault(
        "neighbour-settings",
        "neighbours for 1 ms",
        "echo 1 > /proc/sys/net/ipv4/neigh/veth/base_reachable_time_ms",
    ),
    fault(
        "neighbour-settings",
        "nobody asked for neighbours",
        "echo 0 > /proc/sys/net/ipv4/neigh/veth/mcast_solicit",
    ),
];

/// Losses and damage that counters show.
const TRAFFIC: &[Fault] = &[
    fault("socket-rcvbuf-actual", "a reader of datagrams that is away", "")
        .hold(holds::unread_datagrams)
        .gets(traffic::to_port_9999),
    fault("somaxconn", "a listener that does not accept", "")
        .hold(holds::deaf_listener)
        .also(&["tcp-retransmits"])
        .gets(traffic::connections),
    fault(
        "syn-backlog",
        "requests without cookies",
        "echo 0 > /proc/sys/net/ipv4/tcp_syncookies; echo 8 > /proc/sys/net/ipv4/tcp_max_syn_backlog",
    )
    .hold(holds::deaf_listener)
    .also(&["starving-settings", "tcp-retransmits"])
    .gets(traffic::half_connections),
    fault("tcp-receive-losses", "segments with gaps, and no room for them", "")
        .hold(holds::unread_connections)
        .gets(traffic::gaps),
    fault("tcp-retransmits", "a path that loses a fifth", "")
        .tx("nft add table inet f; nft add chain inet f c '{ type filter hook input priority 0; }'; \
             nft add rule inet f c meta l4proto tcp numgen random mod 100 lt 20 drop")
        .peer_holds(holds::read_connections)
        .sends(traffic::bulk_to_sender),
    fault("checksum-errors", "damaged datagrams", "").gets(traffic::wrong_udp_checksums),
    fault("checksum-errors", "damaged segments", "").gets(traffic::wrong_tcp_checksums),
    fault("checksum-errors", "damaged headers", "")
        .also(&["ip-input-errors"])
        .gets(traffic::wrong_header_checksums),
    fault("udp-no-ports", "datagrams that nobody waits for", "").gets(traffic::to_port_9999),
    fault("ip-input-errors", "packets that were cut", "").gets(traffic::cut_packets),
    fault("ip-input-errors", "a protocol that nobody speaks", "").gets(traffic::unknown_protocol),
    fault("ip-input-errors", "packets for somebody else", "").gets(traffic::for_others),
    fault("ip-input-errors", "no route for what is forwarded", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        .gets(traffic::for_others),
    fault(
        "ip-input-errors",
        "packets at their last hop",
        "echo 1 > /proc/sys/net/ipv4/ip_forward; ip route add 10.99.0.0/24 dev veth",
    )
    .gets(traffic::last_hop),
    fault(
        "ip-input-errors",
        "too large for the next link",
        "echo 1 > /proc/sys/net/ipv4/ip_forward; ip route add 10.99.0.0/24 dev veth mtu lock 600",
    )
    .gets(traffic::not_to_be_fragmented),
    fault("ip-input-errors", "fragments that overlap", "").gets(traffic::overlapping_fragments),
    fault("ip-input-errors", "fragments without memory", "echo 0 > /proc/sys/net/ipv4/ipfrag_low_thresh; echo 0 > /proc/sys/net/ipv4/ipfrag_high_thresh")
        .also(&["protocol-limits"])
        .gets(traffic::lone_fragments),
    fault("rp-filter", "strict paths", "echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter")
        .gets(traffic::from_elsewhere),
    fault("device-drops", "frames that nobody understands", "").gets(traffic::unknown_frames),
    fault("device-drops", "a tun whose reader is away", "ip tuntap add mode tun tun7; ip addr add 10.78.0.1/24 dev tun7; ip link set tun7 up")
        .hold(holds::unread_tun)
        .also(&["qdisc-drops"])
        .sends(traffic::into_tun),
    fault("device-drops", "packets too large for the other end", "ip link set veth mtu 9000")
        .also(&["mtu-fit"])
        .sends(traffic::large_replies),
    fault("packet-taps", "a socket that sees every packet", "")
        .goal("throughput")
        .hold(holds::packet_socket),
];

/// Firewalls and programs before the sockets.
const FILTERS: &[Fault] = &[
    fault(
        "ip-undelivered",
        "a policy that drops",
        "nft add table inet f; nft add chain inet f c '{ type filter hook input priority 0; policy drop; }'",
    )
    .gets(traffic::plain_frames),
    fault(
        "ip-undelivered",
        "a rule before tracking that drops",
        "nft add table ip f; nft add chain ip f c '{ type filter hook prerouting priority -300; }'; nft add rule ip f c udp dport 9999 drop",
    )
    .gets(traffic::plain_frames),
    fault(
        "ip-undelivered",
        "a rule that drops datagrams",
        "nft add table inet f; nft add chain inet f c '{ type filter hook input priority 0; }'; nft add rule inet f c meta l4proto udp counter drop",
    )
    .hold(holds::read_datagrams)
    .gets(traffic::to_port_9999),
    fault(
        "ip-undelivered",
        "a blackhole",
        "echo 1 > /proc/sys/net/ipv4/ip_forward; ip route add blackhole 10.99.0.0/24",
    )
    .gets(traffic::for_others),
    fault(
        "ingress-drops",
        "nftables that drops at ingress",
        "nft add table netdev f; nft add chain netdev f c '{ type filter hook ingress device veth priority 0; policy drop; }'",
    )
    .gets(traffic::plain_frames),
    fault("ingress-drops", "a filter of tc that drops", "tc qdisc add dev veth clsact")
        .hold(holds::tc_drop)
        .gets(traffic::plain_frames),
    fault("ingress-drops", "a tcx program that drops", "")
        .hold(holds::tcx_drop)
        .gets(traffic::plain_frames),
    fault("ingress-drops", "an XDP program that drops", "")
        .hold(holds::xdp_native_drop)
        .gets(traffic::plain_frames),
    fault("xdp-attached", "a generic XDP program that drops", "")
        .hold(holds::xdp_generic_drop)
        .gets(traffic::plain_frames),
    fault("xdp-attached", "generic XDP", "").hold(holds::xdp_generic_pass),
    fault(
        "ingress-drops",
        "a detour to a device that is down",
        "ip link add ifb7 type ifb; tc qdisc add dev veth handle ffff: ingress; \
         tc filter add dev veth parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb7",
    )
    .gets(traffic::plain_frames),
    fault(
        "firewall-length",
        "300 rules",
        "nft add table inet f; nft add chain inet f c '{ type filter hook input priority 0; }'; \
         for n in $(seq 300); do echo \"add rule inet f c udp dport $n accept\"; done | nft -f -",
    ),
    fault(
        "conntrack-active",
        "tracked flows",
        "nft add table inet f; nft add chain inet f c '{ type filter hook input priority 0; }'; nft add rule inet f c ct state established accept",
    )
    .goal("throughput")
    .hold(holds::read_datagrams)
    .gets(traffic::to_port_9999),
    fault(
        "ebtables-bridge-nf",
        "bridged frames in the firewall",
        "ip link add br7 type bridge; ip link set br7 up; echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables",
    )
    .goal("throughput"),
];

/// Devices, their queues and offloads.
const DEVICES: &[Fault] = &[
    fault("nic-promisc-rxall", "a promiscuous veth", "ip link set veth promisc on"),
    fault(
        "nic-promisc-rxall",
        "a promiscuous macvlan",
        "ip link add mv7 link veth type macvlan mode bridge; ip link set mv7 up promisc on",
    ),
    fault("offload-tso-gso", "no TSO", "").goal("throughput").hold(holds::no_tso),
    fault("offload-tso-gso", "no GSO", "").goal("throughput").hold(holds::no_gso),
    fault(
        "offload-gro",
        "a tunnel without GRO",
        "ip link add vx7 mtu 1450 type vxlan id 7 dev veth dstport 4789 remote 10.77.0.1; ip link set vx7 up",
    )
    .goal("throughput")
    .hold(holds::no_gro_of_vxlan),
    fault("joined-size", "GRO of 1000 bytes", "ip link set veth gro_max_size 1000"),
    fault("joined-size", "GSO of 2000 bytes", "ip link set veth gso_max_size 2000"),
    fault("mtu-fit", "an MTU above that of the other end", "ip link set veth mtu 9000"),
    fault(
        "mtu-fit",
        "two ends here that differ",
        "ip link add a7 type veth peer name b7; ip link set a7 mtu 3000 up; ip link set b7 up",
    ),
    fault(
        "mtu-fit",
        "an overlay larger than the device below",
        "ip link add vx7 mtu 1450 type vxlan id 7 dev veth dstport 4789 remote 10.77.0.1; ip link set vx7 up; ip link set veth mtu 1400",
    ),
    fault("qdisc-limit", "a queue of one packet", "tc qdisc replace dev veth root pfifo limit 1"),
    fault("qdisc-limit", "a queue of a device without one", "tc qdisc replace dev veth root pfifo_fast; ip link set veth txqueuelen 0"),
    fault("qdisc-limit", "a queue of 100 bytes", "tc qdisc replace dev veth root bfifo limit 100"),
    fault("qdisc-limit", "a bucket of half a packet", "tc qdisc replace dev veth root tbf rate 1gbit burst 100kb limit 700"),
    fault(
        "qdisc-limit",
        "a class with a queue of one packet",
        "tc qdisc replace dev veth root handle 1: htb default 1; tc class add dev veth parent 1: classid 1:1 htb rate 1gbit; \
         tc qdisc add dev veth parent 1:1 pfifo limit 1",
    ),
    fault("qdisc-drops", "a shaper that drops", "tc qdisc replace dev veth root tbf rate 1mbit burst 2kb limit 5kb")
        .sends(traffic::replies),
    fault("qdisc-shaper", "a shaper under a test", "tc qdisc replace dev veth root tbf rate 1mbit burst 2kb limit 50kb")
        .goal("throughput")
        .also(&["qdisc-drops"])
        .sends(traffic::replies),
    fault(
        "ifb-redirect",
        "a detour through ifb",
        "ip link add ifb7 type ifb; ip link set ifb7 up; tc qdisc add dev veth handle ffff: ingress; \
         tc filter add dev veth parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb7",
    )
    .goal("throughput")
    .hold(holds::read_datagrams)
    .gets(traffic::to_port_9999),
    fault("gro-flush-timeout", "a flush after a second", "echo 1000000000 > /sys/class/net/veth/gro_flush_timeout")
        .goal("latency"),
    fault("napi-defer-hard-irqs", "interrupts put off without a timer", "echo 2 > /sys/class/net/veth/napi_defer_hard_irqs"),
];

/// Namespaces without a fault.
pub const HEALTHY: &[Fault] = &[
    fault("", "nothing", ""),
    fault("", "nothing, for throughput", "").goal("throughput"),
    fault("", "nothing, for latency", "").goal("latency"),
    fault("", "datagrams both ways", "")
        .hold(holds::read_datagrams)
        .peer_holds(holds::read_datagrams)
        .gets(traffic::to_port_9999)
        .sends(traffic::replies),
    fault("", "bulk", "").peer_holds(holds::read_connections).sends(traffic::bulk_to_sender),
    fault(
        "",
        "a bridge, an overlay, a macvlan, an ifb and a firewall",
        "ip link add br7 type bridge; ip link add a7 type veth peer name b7; ip link set a7 master br7; \
         for dev in br7 a7 b7; do ip link set $dev up; done; \
         ip link add vx7 mtu 1450 type vxlan id 7 dev veth dstport 4789 remote 10.77.0.1; ip link set vx7 up; \
         ip link add mv7 link veth type macvlan mode bridge; ip link set mv7 up; \
         ip link add ifb7 type ifb; ip link set ifb7 up; \
         tc qdisc add dev veth clsact; tc qdisc replace dev veth root pfifo limit 1000; \
         nft add table inet f; nft add chain inet f c '{ type filter hook input priority 0; policy drop; }'; \
         nft add rule inet f c udp dport 9999 accept; nft add rule inet f c meta l4proto icmp accept",
    )
    .hold(holds::read_datagrams)
    .gets(traffic::to_port_9999),
];
