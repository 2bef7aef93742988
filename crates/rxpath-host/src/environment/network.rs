//! The network's settings: sysctls of the receive path and each device.

use rxpath_core::Fact;

use super::Facts;
use crate::procfs::sysctl;
use crate::sysfs::device;

/// Settings outside `net.core`, of which everything is collected.
const SYSCTLS: [&str; 19] = [
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.udp_early_demux",
    "net.ipv4.udp_l3mdev_accept",
    "net.ipv4.ip_early_demux",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.conf.default.rp_filter",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv6.conf.all.disable_ipv6",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_count",
    "net.bridge.bridge-nf-call-iptables",
    "kernel.sched_rt_runtime_us",
    "kernel.timer_migration",
];

/// Settings of `net.core` that every host is asked for, so that their absence is recorded.
const CORE: [&str; 14] = [
    "bpf_jit_enable",
    "busy_poll",
    "busy_read",
    "default_qdisc",
    "dev_weight",
    "flow_limit_cpu_bitmap",
    "netdev_budget",
    "netdev_budget_usecs",
    "netdev_max_backlog",
    "netdev_tstamp_prequeue",
    "rmem_default",
    "rmem_max",
    "rps_sock_flow_entries",
    "wmem_max",
];

pub(super) fn collect(facts: &mut Facts<'_>) {
    for name in CORE {
        let name = format!("net.core.{name}");
        facts.result(format!("sysctl.{name}"), sysctl::read(facts.root, &name));
    }
    for (path, value) in sysctl::walk(facts.root, "net/core").unwrap_or_default() {
        facts.put(format!("sysctl.{}", path.replace('/', ".")), value);
    }
    for name in SYSCTLS {
        facts.result(format!("sysctl.{name}"), sysctl::read(facts.root, name));
    }
    match device::names(facts.root) {
        Ok(names) => {
            for name in names {
                facts.result(format!("device.{name}"), device::read(facts.root, &name));
            }
        }
        Err(error) => facts.put("device", error.into_gap::<()>()),
    }
    facts.put("net.packet_taps", taps(facts));
}

/// Sockets that see every packet (`AF_PACKET`): each costs a filter run or a clone for each packet.
fn taps(facts: &Facts<'_>) -> Fact<usize> {
    match facts.root.text("/proc/net/packet") {
        Ok(text) => Fact::ok(text.lines().skip(1).filter(|line| !line.trim().is_empty()).count()),
        Err(error) => error.into_gap(),
    }
}
