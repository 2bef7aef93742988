//! Rules and programs that drop three of four on purpose.

use crate::cause::{Cause, Made, cause};
use crate::grade::Said;
use crate::host::Host;

const FILTER: &[Said] = &[Said("filter", "")];
/// By counters alone it looks like other errors of UDP's.
const UDP_OTHER: &[Said] = &[Said("refused", "a filter of the socket")];
/// What only BPF or a driver sees.
const HOOK: &[Said] =
    &[Said("nothing", "ingress"), Said("nothing", "XDP"), Said("nothing", "bridge")];

pub fn causes() -> Vec<Cause> {
    vec![
        cause("nft_input", "nft's input chain", FILTER, |host| {
            nft(host, "ip", "filter hook input priority 0", RULE)
        }),
        cause("nft_prerouting", "nft's prerouting chain at raw", FILTER, |host| {
            nft(host, "ip", "filter hook prerouting priority -300", RULE)
        }),
        cause("nft_ipv6", "nft's input chain, IPv6", FILTER, nft_ipv6),
        cause("nft_rate_limit", "nft lets 1000 a second pass of 5000", FILTER, nft_rate_limit),
        cause("nft_reject", "nft rejects with ICMP", FILTER, |host| {
            nft(
                host,
                "ip",
                "filter hook input priority 0",
                "udp dport 9700 numgen inc mod 4 < 3 reject",
            )
        }),
        cause(
            "nft_invalid_state",
            "nft drops what connection tracking calls new",
            FILTER,
            |host| {
                nft(host, "ip", "filter hook input priority 0", "udp dport 9700 ct state new drop")
            },
        ),
        cause("iptables_raw", "iptables' raw table", FILTER, iptables_raw),
        cause("iptables_hashlimit", "iptables' hashlimit by source", FILTER, iptables_hashlimit),
        cause(
            "iptables_owner_set",
            "iptables' set of blocked sources, as fail2ban makes",
            FILTER,
            ip_set,
        ),
        cause("nft_ingress", "nft's ingress hook of the device", FILTER, |host| {
            nft(host, "netdev", "filter hook ingress device w0 priority 0", RULE)
        })
        .or(HOOK),
        cause("nft_bridge", "nft's bridge family", FILTER, nft_bridge).or(HOOK),
        cause("macvlan_ingress", "nft's ingress hook of a macvlan", FILTER, macvlan_ingress)
            .or(HOOK),
        cause("tc_bpf", "a BPF program at tc ingress", FILTER, |host| {
            program(host, "at=tc dev=w0")
        })
        .or(HOOK),
        cause(
            "tc_u32_redirect",
            "u32 at ingress sends three of four to a device that is down",
            &[Said("filter", ""), Said("refused", "")],
            tc_redirect,
        )
        .or(HOOK),
        cause(
            "ingress_policer_ifb",
            "ingress traffic is shaped by tbf on an ifb device, which drops",
            &[Said("filter", ""), Said("refused", "")],
            ifb,
        )
        .or(HOOK),
        cause("xdp_generic", "a generic XDP program", FILTER, |host| {
            program(host, "at=xdp dev=w0")
        })
        .or(HOOK),
        cause("xdp_native", "an XDP program in the driver", FILTER, |host| {
            program(host, "at=xdp-native dev=w0")
        })
        .or(HOOK),
        cause("socket_filter", "SO_ATTACH_FILTER", FILTER, socket_filter).or(UDP_OTHER),
        cause(
            "cgroup_bpf",
            "a BPF program of the reader's control group, as IPAddressDeny=",
            FILTER,
            cgroup_bpf,
        )
        .or(UDP_OTHER),
        cause("xfrm_policy", "an IPsec policy blocks the port", FILTER, xfrm_policy).or(UDP_OTHER),
        cause(
            "rp_filter",
            "the reverse path filter: sources without a route back",
            FILTER,
            rp_filter,
        ),
        cause(
            "nat_to_nobody",
            "DNAT to an address that is not there, on a host that does not forward",
            &[Said("refused", ""), Said("filter", "")],
            |host| {
                nft(
                    host,
                    "ip",
                    "nat hook prerouting priority -100",
                    "udp dport 9700 dnat to 10.77.1.1",
                )
            },
        ),
        cause(
            "redirect_to_closed_port",
            "nft redirects the port to one where nobody listens",
            &[Said("no-listener", "")],
            redirect,
        ),
        cause(
            "nfqueue_without_program",
            "iptables hands packets to a queue that no program reads",
            FILTER,
            |host| {
                dropping(
                    host,
                    "iptables -A INPUT -p udp --dport 9700 -j NFQUEUE --queue-num 3",
                    "iptables -F",
                )
            },
        ),
    ]
}

/// A reader with time, a load, a script that begins the drops and one that ends them.
pub fn dropping(host: &mut Host, begin: &str, end: &'static str) -> Result<Made, String> {
    host.read("at=10.88.0.2:9700 work=5")?;
    host.sh("rx", begin)?;
    host.send("rate=5000")?;
    Ok(Made::with("the rule goes", move |host| host.sh("rx", end)))
}

const RULE: &str = "udp dport 9700 numgen inc mod 4 < 3 drop";

fn nft(host: &mut Host, family: &str, chain: &str, rule: &str) -> Result<Made, String> {
    let begin =
        format!("nft -f - <<E\ntable {family} t {{ chain c {{ type {chain}; {rule}; }}; }}\nE");
    dropping(host, &begin, "nft flush ruleset")
}

fn nft_ipv6(host: &mut Host) -> Result<Made, String> {
    host.read("at=[fd00:88::2]:9700")?;
    host.sh("rx", &format!("nft -f - <<E\ntable ip6 t {{ chain c {{ type filter hook input priority 0; {RULE}; }}; }}\nE"))?;
    host.send("to=[fd00:88::2]:9700 rate=5000")?;
    Ok(Made::with("the rule goes", |host| host.sh("rx", "nft flush ruleset")))
}

fn nft_rate_limit(host: &mut Host) -> Result<Made, String> {
    nft(
        host,
        "ip",
        "filter hook input priority 0",
        "udp dport 9700 limit rate over 1000/second drop",
    )
}

fn iptables_raw(host: &mut Host) -> Result<Made, String> {
    let rule =
        "PREROUTING -p udp --dport 9700 -m statistic --mode nth --every 4 --packet 0 -j ACCEPT";
    dropping(
        host,
        &format!(
            "iptables -t raw -A {rule}; iptables -t raw -A PREROUTING -p udp --dport 9700 -j DROP"
        ),
        "iptables -t raw -F",
    )
}

fn iptables_hashlimit(host: &mut Host) -> Result<Made, String> {
    dropping(
        host,
        "iptables -A INPUT -p udp --dport 9700 -m hashlimit --hashlimit-above 1000/sec --hashlimit-mode srcip --hashlimit-name h -j DROP",
        "iptables -F",
    )
}

fn ip_set(host: &mut Host) -> Result<Made, String> {
    nft(
        host,
        "ip",
        "filter hook input priority 0",
        "ip saddr { 10.88.0.1, 10.99.0.0/16 } udp dport 9700 drop",
    )
}

/// The address moves to a bridge over the device.
pub const BRIDGE: &str = "ip link add br0 type bridge; ip link set w0 master br0; ip addr flush dev w0; \
     ip link set br0 address 02:00:00:00:08:02 up; ip addr add 10.88.0.2/24 dev br0; \
     ip neigh replace 10.88.0.1 lladdr 02:00:00:00:08:01 dev br0";

fn nft_bridge(host: &mut Host) -> Result<Made, String> {
    host.sh("rx", BRIDGE)?;
    nft(host, "bridge", "filter hook prerouting priority 0", RULE)
}

pub const MACVLAN: &str = "ip addr flush dev w0; ip link add mv0 link w0 address 02:00:00:00:08:0a type macvlan mode bridge; \
     ip link set mv0 up; ip addr add 10.88.0.2/24 dev mv0; ip neigh replace 10.88.0.1 lladdr 02:00:00:00:08:01 dev mv0";

fn macvlan_ingress(host: &mut Host) -> Result<Made, String> {
    host.sh("rx", MACVLAN)?;
    host.sh("tx", "ip neigh replace 10.88.0.2 lladdr 02:00:00:00:08:0a dev w1")?;
    nft(host, "netdev", "filter hook ingress device mv0 priority 0", RULE)
}

fn program(host: &mut Host, words: &str) -> Result<Made, String> {
    let reader = host.read("work=5")?;
    let _ = reader;
    let program = host.other("rx", "attach", words)?;
    host.send("rate=5000")?;
    Ok(Made::with("the program goes", move |host| {
        host.end_other(program);
        Ok(())
    }))
}

fn tc_redirect(host: &mut Host) -> Result<Made, String> {
    let begin = "ip link add ifb0 type ifb; tc qdisc add dev w0 handle ffff: ingress; \
        tc filter add dev w0 parent ffff: protocol ip u32 match ip sport 5001 0xffff action mirred egress redirect dev ifb0";
    host.read("work=5")?;
    host.sh("rx", begin)?;
    host.frames("rate=3000 sport=5001")?;
    host.frames("rate=1000")?;
    Ok(Made::with("the filter goes", |host| host.sh("rx", "tc qdisc del dev w0 ingress")))
}

fn ifb(host: &mut Host) -> Result<Made, String> {
    let begin = "ip link add ifb0 type ifb; ip link set ifb0 up; tc qdisc add dev w0 handle ffff: ingress; \
        tc filter add dev w0 parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0; \
        tc qdisc add dev ifb0 root tbf rate 1mbit burst 10k limit 20k";
    dropping(host, begin, "tc qdisc replace dev ifb0 root tbf rate 1gbit burst 1m limit 20m")
}

fn socket_filter(host: &mut Host) -> Result<Made, String> {
    host.read("filter=4")?;
    host.send("rate=5000")?;
    Ok(Made::with("no filter", |host| host.read_instead("work=5")))
}

fn cgroup_bpf(host: &mut Host) -> Result<Made, String> {
    let group = host.group("unified", &[])?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let script = format!("echo $$ > {group}/cgroup.procs; exec {} as read work=5", own.display());
    host.program("rx", &["sh", "-c", &script], true)?;
    let program = host.other("rx", "attach", &format!("at=cgroup path={group}"))?;
    host.send("rate=5000")?;
    Ok(Made::with("the program goes", move |host| {
        host.end_other(program);
        Ok(())
    }))
}

fn xfrm_policy(host: &mut Host) -> Result<Made, String> {
    dropping(
        host,
        "ip xfrm policy add proto udp dport 9700 dir in action block",
        "ip xfrm policy flush",
    )
}

fn rp_filter(host: &mut Host) -> Result<Made, String> {
    host.read("work=5")?;
    host.sh("rx", "sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.w0.rp_filter=1; ip route add 172.16.0.0/16 dev lo")?;
    host.frames("rate=4000 src=172.16.3.4")?;
    host.frames("rate=1000")?;
    Ok(Made::with("the route back", |host| host.sh("rx", "ip route replace 172.16.0.0/16 dev w0")))
}

fn redirect(host: &mut Host) -> Result<Made, String> {
    nft(host, "ip", "nat hook prerouting priority -100", "udp dport 9700 redirect to :9777")
}
