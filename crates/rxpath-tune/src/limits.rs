//! What may be changed at all, and which values a setting can have.
//!
//! The question it answers: *is this a value that the setting can hold, and is it ours to change?* It is asked before
//! anything is written, so that a plan that was edited by hand fails whole and not halfway. The kernel has the last
//! word; these bounds are the kernel's own where it has some, and sane ones where it takes anything.

use rxpath_core::CpuList;
use rxpath_host::netlink::{ethtool, link_settings, napi};
use rxpath_host::pairs::Pairs;
use rxpath_host::setter::spread;
use rxpath_host::{Group, Target};

/// Longest text of a value: an RSS table of a large NIC has some thousand entries.
const TEXT_MAX: usize = 1 << 16;

/// Numbers that a sysctl takes: name, smallest, largest. A list of names ends the prefix search below.
///
/// **Source** the `extra1`/`extra2` of net/core/sysctl_net_core.c and net/ipv4/sysctl_net_ipv4.c (6.12); where the
/// kernel takes any int, the bound keeps to what still makes sense: a budget of seconds starves every task.
const NUMBERS: &[(&str, i64, i64)] = &[
    ("net.core.netdev_budget", 1, 10_000),
    ("net.core.netdev_budget_usecs", 100, 100_000),
    ("net.core.dev_weight", 1, 10_000),
    ("net.core.dev_weight_rx_bias", 1, 1000),
    ("net.core.dev_weight_tx_bias", 1, 1000),
    ("net.core.netdev_max_backlog", 1, 10_000_000),
    ("net.core.gro_normal_batch", 1, 1024),
    ("net.core.busy_poll", 0, 10_000),
    ("net.core.busy_read", 0, 10_000),
    ("net.core.skb_defer_max", 0, 65_536),
    ("net.core.netdev_tstamp_prequeue", 0, 1),
    ("net.core.rmem_default", 256, i32::MAX as i64),
    ("net.core.rmem_max", 256, i32::MAX as i64),
    ("net.core.wmem_default", 256, i32::MAX as i64),
    ("net.core.wmem_max", 256, i32::MAX as i64),
    ("net.core.somaxconn", 0, i32::MAX as i64),
    ("net.core.rps_sock_flow_entries", 0, 1 << 29),
    ("net.core.flow_limit_table_len", 1, 1 << 24),
    ("net.core.bpf_jit_enable", 0, 1),
    ("net.ipv4.ip_forward", 0, 1),
    ("net.ipv4.tcp_moderate_rcvbuf", 0, 1),
    ("net.ipv4.tcp_early_demux", 0, 1),
    ("net.ipv4.udp_early_demux", 0, 1),
    ("net.ipv4.ip_early_demux", 0, 1),
    ("net.ipv4.tcp_timestamps", 0, 2),
    ("net.ipv4.tcp_sack", 0, 1),
    ("net.ipv4.tcp_low_latency", 0, 1),
    ("net.ipv4.tcp_backlog_ack_defer", 0, 1),
    ("net.ipv4.tcp_max_syn_backlog", 1, i32::MAX as i64),
    ("net.ipv4.udp_rmem_min", 256, i32::MAX as i64),
    ("net.ipv4.udp_child_hash_entries", 0, 1 << 16),
    ("kernel.timer_migration", 0, 1),
    ("kernel.watchdog", 0, 1),
    ("kernel.nmi_watchdog", 0, 1),
    ("kernel.numa_balancing", 0, 3),
    ("kernel.sched_rt_runtime_us", -1, 1_000_000),
    ("vm.stat_interval", 0, 3600),
];

/// Sysctls of three numbers that must not fall: smallest, default or pressure, largest.
const TRIPLES: &[&str] =
    &["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mem", "net.ipv4.udp_mem"];

/// Sysctls of the receive path; what is not below one of them is not ours.
const SYSCTLS: &[&str] = &["net.core.", "net.ipv4.", "net.ipv6."];

/// Sysctls that guard something: reported, never changed.
const GUARDS: &[&str] = &["net.core.bpf_jit_harden", "net.ipv4.tcp_syncookies"];

/// Files of sysfs that are ours to change: where they begin and how they end.
const FILES: &[(&str, &str)] = &[
    ("/sys/devices/system/cpu/", "/scaling_governor"),
    ("/sys/devices/system/cpu/", "/energy_performance_preference"),
    ("/sys/devices/system/cpu/", "/scaling_min_freq"),
    ("/sys/devices/system/cpu/", "/scaling_max_freq"),
    ("/sys/devices/system/cpu/", "/cpufreq/boost"),
    ("/sys/devices/system/cpu/intel_pstate/", "/no_turbo"),
    ("/sys/devices/system/cpu/intel_pstate/", "/min_perf_pct"),
    ("/sys/devices/system/cpu/", "/smt/control"),
    ("/sys/devices/system/cpu/cpu", "/disable"),
    ("/sys/devices/system/cpu/cpu", "/power/pm_qos_resume_latency_us"),
    ("/sys/devices/system/clocksource/", "/current_clocksource"),
    ("/sys/module/pcie_aspm/parameters/", "/policy"),
    ("/sys/module/nf_conntrack/parameters/", "/hashsize"),
    ("/sys/kernel/mm/transparent_hugepage/", "/enabled"),
    ("/sys/kernel/mm/ksm/", "/run"),
];

/// What an attribute of a device takes.
#[derive(Clone, Copy)]
enum Takes {
    UpTo(i64),
    /// Bits of CPUs or queues.
    Mask,
}

/// Attributes of a device.
const ATTRIBUTES: &[(&str, Takes)] = &[
    ("napi_defer_hard_irqs", Takes::UpTo(10_000)),
    ("gro_flush_timeout", Takes::UpTo(1_000_000_000)),
    ("threaded", Takes::UpTo(2)),
    ("rps_cpus", Takes::Mask),
    ("rps_flow_cnt", Takes::UpTo(1 << 29)),
    ("xps_cpus", Takes::Mask),
    ("xps_rxqs", Takes::Mask),
];

/// Whether a setting is ours to change.
///
/// **Errors** in words: firewall rules, mitigations and guards are reported, never changed.
pub fn may_change(target: &Target) -> Result<(), String> {
    match target {
        Target::Sysctl { key } => {
            let dotted = key.replace('/', ".");
            if dotted.contains("netfilter") || dotted.contains("bridge-nf") {
                return Err("firewall settings are reported and never changed".into());
            }
            if GUARDS.contains(&dotted.as_str()) {
                return Err("it guards the host: reported and never changed".into());
            }
            let ours = SYSCTLS.iter().any(|prefix| dotted.starts_with(prefix))
                || NUMBERS.iter().any(|(name, ..)| *name == dotted);
            if ours { Ok(()) } else { Err("not a sysctl of the receive path".into()) }
        }
        Target::Sysfs { path } => {
            let path = path.to_string_lossy();
            if path.contains("/vulnerabilities") {
                return Err("mitigations are reported and never changed".into());
            }
            if path.starts_with("/sys/class/net/") {
                return Err("a device's attribute is named DEV/ATTRIBUTE".into());
            }
            let ours = |(begin, end): &(&str, &str)| path.starts_with(begin) && path.ends_with(end);
            if FILES.iter().any(ours) {
                Ok(())
            } else {
                Err("not a file that the receive path depends on".into())
            }
        }
        Target::Attr { attr, .. } if attribute(attr).is_some() => Ok(()),
        Target::Attr { .. } => {
            let names: Vec<&str> = ATTRIBUTES.iter().map(|(name, _)| *name).collect();
            Err(format!("expected one of {}", names.join(", ")))
        }
        Target::Group { .. }
        | Target::QueueCoalesce { .. }
        | Target::Napi { .. }
        | Target::Irq { .. } => Ok(()),
    }
}

/// What an attribute takes, when it stands where the kernel has it.
fn attribute(attr: &str) -> Option<Takes> {
    let parts: Vec<&str> = attr.split('/').collect();
    let (is_queue, name) = match parts.as_slice() {
        [name] => (None, *name),
        ["queues", queue, name] => (Some(*queue), *name),
        _ => return None,
    };
    let number = |prefix| is_queue.and_then(|q: &str| q.strip_prefix(prefix)?.parse::<u32>().ok());
    let place = match name {
        "rps_cpus" | "rps_flow_cnt" => number("rx-").is_some(),
        "xps_cpus" | "xps_rxqs" => number("tx-").is_some(),
        _ => is_queue.is_none(),
    };
    ATTRIBUTES.iter().find(|(known, _)| place && *known == name).map(|(_, takes)| *takes)
}

/// Whether a value has the form that the setting takes, and lies within its bounds.
pub fn well_formed(target: &Target, value: &str) -> Result<(), String> {
    if value.len() > TEXT_MAX || value.contains(['\n', '\0']) {
        return Err(format!("a value is one line of at most {TEXT_MAX} bytes"));
    }
    match target {
        Target::Sysctl { key } => sysctl(&key.replace('/', "."), value),
        Target::Sysfs { .. } if value.trim().is_empty() => Err("the value is empty".into()),
        Target::Sysfs { .. } => Ok(()),
        Target::Attr { attr, .. } => match attribute(attr) {
            Some(Takes::UpTo(max)) => number(value, 0, max),
            Some(Takes::Mask) => {
                rxpath_host::sysfs::device::parse_mask(value).map(drop).map_err(|_| {
                    format!("`{value}` is no mask: expected hexadecimal like 3 or 00000003")
                })
            }
            None => Ok(()),
        },
        Target::Irq { .. } => cpus(value),
        Target::Group { group, .. } => pairs(value).and_then(|pairs| of_group(*group, &pairs)),
        Target::QueueCoalesce { .. } => {
            pairs(value).and_then(|pairs| of_group(Group::Coalesce, &pairs))
        }
        Target::Napi { .. } => pairs(value).and_then(|p| napi::check(&p).map_err(|e| e.reason())),
    }
}

fn pairs(value: &str) -> Result<Pairs, String> {
    let pairs: Pairs = value.parse().map_err(|e| format!("{e}"))?;
    if pairs.is_empty() { Err("no NAME=VALUE".into()) } else { Ok(pairs) }
}

fn of_group(group: Group, pairs: &Pairs) -> Result<(), String> {
    match group {
        Group::Link => link_settings::check(pairs),
        Group::Rss | Group::FlowHash => spread::check(group, pairs),
        _ => ethtool::group::check(group, pairs),
    }
    .map_err(|error| error.reason())
}

fn sysctl(key: &str, value: &str) -> Result<(), String> {
    if let Some((_, min, max)) = NUMBERS.iter().find(|(name, ..)| *name == key) {
        return number(value, *min, *max);
    }
    if TRIPLES.contains(&key) {
        let numbers: Result<Vec<u64>, _> = value.split_whitespace().map(str::parse).collect();
        return match numbers {
            Ok(numbers)
                if numbers.len() == 3
                    && numbers.is_sorted()
                    && i32::try_from(numbers[2]).is_ok() =>
            {
                Ok(())
            }
            _ => Err(format!(
                "`{value}`: expected three numbers that do not fall: 4096 131072 6291456"
            )),
        };
    }
    if value.trim().is_empty() { Err("the value is empty".into()) } else { Ok(()) }
}

fn number(value: &str, min: i64, max: i64) -> Result<(), String> {
    match value.trim().parse::<i64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(()),
        _ => Err(format!("`{value}`: expected a number from {min} to {max}")),
    }
}

fn cpus(value: &str) -> Result<(), String> {
    match value.trim().parse::<CpuList>() {
        Ok(list) if !list.0.is_empty() => Ok(()),
        _ => Err(format!("`{value}`: expected CPUs like 0-3,8")),
    }
}

/// Whether a value is within what this device says of itself: ring sizes, queue counts, MTU.
pub fn within(value: &str, limits: &Pairs) -> Result<(), String> {
    let Ok(pairs) = value.parse::<Pairs>() else { return Ok(()) };
    for (name, text) in pairs.iter() {
        let Some(max) = limits.get(name).and_then(|max| max.parse::<u64>().ok()) else { continue };
        if text.parse::<u64>().is_ok_and(|number| number > max) {
            return Err(format!("{name}={text}: the device takes at most {max}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(name: &str) -> bool {
        may_change(&name.parse().unwrap()).is_ok()
    }

    fn is(name: &str, value: &str) -> bool {
        well_formed(&name.parse().unwrap(), value).is_ok()
    }

    #[test]
    fn firewalls_and_mitigations_are_never_changed() {
        for name in [
            "net.netfilter.nf_conntrack_max",
            "net.bridge.bridge-nf-call-iptables",
            "net.core.bpf_jit_harden",
            "net.ipv4.tcp_syncookies",
            "/sys/devices/system/cpu/vulnerabilities/meltdown",
            "kernel.modprobe",
            "kernel.randomize_va_space",
            "/sys/kernel/debug/x",
            "/sys/class/net/eth0/mtu",
            "eth0/address",
            "eth0/queues/rx-0/xps_cpus",
            "eth0/queues/rx-x/rps_cpus",
            "vm.overcommit_memory",
        ] {
            assert!(!may(name), "{name}");
        }
        for name in [
            "net.core.rmem_max",
            "net.ipv4.conf.eth0.rp_filter",
            "/proc/sys/net/ipv4/conf/eth0.1/rp_filter",
            "eth0/rings",
            "eth0/queues/rx-0/rps_cpus",
            "eth0/threaded",
            "irq/24",
            "kernel.timer_migration",
            "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
        ] {
            assert!(may(name), "{name}");
        }
    }

    #[test]
    fn values_are_held_within_their_bounds() {
        for (name, good, bad) in [
            ("net.core.netdev_budget", "600", "300000"),
            ("net.core.netdev_max_backlog", "1000", "-1"),
            ("net.ipv4.tcp_rmem", "4096 131072 6291456", "4096 131072 1"),
            ("net.ipv4.tcp_rmem", "1\t2\t3", "1 2"),
            ("eth0/gro_flush_timeout", "20000", "1000000001"),
            ("eth0/queues/rx-0/rps_cpus", "3", "0-1"),
            ("irq/24", "0-3", ""),
            ("irq/24", "2", "x"),
            ("eth0/rings", "rx=512", "rx=-1"),
            ("eth0/rings", "rx=512 tx=1", "rx"),
            ("eth0/features", "rx-gro=off", "rx-gro=maybe"),
            ("eth0/link", "mtu=9000", "mtu=big"),
            ("eth0/rss", "indir=equal:4", "indir=equal:x"),
            ("eth0/flow-hash", "udp4=sdfn", "udp4=xyz"),
            ("eth0/napi-0", "threaded=1", "threaded=on"),
            ("eth0/coalesce/queue-0", "rx-usecs=8", "rx-usecs=8us"),
            ("net.ipv4.tcp_congestion_control", "cubic", "a\nb"),
        ] {
            assert!(is(name, good), "{name} {good}");
            assert!(!is(name, bad), "{name} {bad}");
        }
    }

    #[test]
    fn a_device_says_its_own_bounds() {
        let limits: Pairs = "rx=4096".parse().unwrap();
        assert!(within("rx=4096 tx=9999", &limits).is_ok());
        let error = within("rx=4097", &limits).unwrap_err();
        assert_eq!(error, "rx=4097: the device takes at most 4096");
    }
}
