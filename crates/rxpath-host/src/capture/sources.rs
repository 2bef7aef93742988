//! Which files a capture holds.
//!
//! A file that a rule or a reader wants is one line here. Not captured, whatever the options: keys, socket tables
//! (`/proc/net/tcp`), routes and neighbours, command lines and environments of programs, serial numbers.

use std::borrow::Cow;

use crate::glob;
use crate::root::Root;
use crate::startup::{SCRIPTS, UDEV};

/// How a source is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Text, as it is.
    File,
    /// A version: `5.10.0.27` is no address.
    Version,
    /// Bytes without names in them.
    Binary,
    /// Everything below a directory.
    Below,
    /// Where a link points to.
    Link,
    /// A file of settings: comments are left out when names are replaced.
    Settings,
    /// The kernel's command line: only parameters that matter are kept when names are replaced.
    CommandLine,
    /// A start-up file: only the settings that it names are kept when names are replaced
    /// (`startup::names_only`).
    Startup,
}

/// One source.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path; `*` stands for any text within one part of it.
    pub pattern: Cow<'static, str>,
    /// How it is read.
    pub sort: Sort,
}

const FILES: [&str; 110] = [
    // The machine.
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/interrupts",
    "/proc/softirqs",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/schedstat",
    "/proc/swaps",
    "/proc/modules",
    "/proc/pressure/*",
    // The network's counters, none of single sockets.
    "/proc/net/dev",
    "/proc/net/netstat",
    "/proc/net/packet",
    "/proc/net/protocols",
    "/proc/net/psched",
    "/proc/net/ptype",
    "/proc/net/snmp",
    "/proc/net/snmp6",
    "/proc/net/sockstat",
    "/proc/net/sockstat6",
    "/proc/net/softnet_stat",
    "/proc/net/stat/nf_conntrack",
    "/proc/net/ip_tables_names",
    "/proc/net/ip6_tables_names",
    "/proc/net/arp_tables_names",
    // Interrupts.
    "/proc/irq/default_smp_affinity",
    "/proc/irq/*/smp_affinity_list",
    "/proc/irq/*/effective_affinity_list",
    "/proc/irq/*/affinity_hint",
    "/proc/irq/*/node",
    // Settings.
    "/proc/sys/kernel/tainted",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/bpf_stats_enabled",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/sched_*",
    "/proc/sys/kernel/soft_watchdog",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
    "/proc/sys/kernel/watchdog",
    "/proc/sys/kernel/watchdog_thresh",
    "/proc/sys/vm/min_free_kbytes",
    "/proc/sys/vm/stat_interval",
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/zone_reclaim_mode",
    "/proc/self/cgroup",
    "/proc/1/comm",
    "/proc/self/status",
    // CPUs.
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/offline",
    "/sys/devices/system/cpu/possible",
    "/sys/devices/system/cpu/present",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/nohz_full",
    "/sys/devices/system/cpu/smt/*",
    "/sys/devices/system/cpu/vulnerabilities/*",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/cpufreq/policy*/*",
    "/sys/devices/system/cpu/intel_pstate/*",
    "/sys/devices/system/cpu/amd_pstate/*",
    "/sys/devices/system/cpu/cpuidle/*",
    "/sys/devices/system/cpu/cpu*/topology/*",
    "/sys/devices/system/cpu/cpu*/cache/index*/level",
    "/sys/devices/system/cpu/cpu*/cache/index*/size",
    "/sys/devices/system/cpu/cpu*/cache/index*/shared_cpu_list",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/name",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/latency",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/usage",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/time",
    "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
    "/sys/devices/system/cpu/cpu*/thermal_throttle/*_count",
    "/sys/devices/system/node/online",
    "/sys/devices/system/node/node*/cpulist",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    // Kernel.
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/iommu_groups/*/type",
    "/sys/kernel/debug/sched/preempt",
    "/sys/kernel/debug/swiotlb/io_tlb_nslabs",
    "/sys/kernel/debug/swiotlb/io_tlb_used",
    "/sys/kernel/tracing/current_tracer",
    "/sys/kernel/tracing/kprobe_events",
    "/sys/kernel/tracing/uprobe_events",
    "/sys/kernel/realtime",
    "/sys/hypervisor/type",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/module/*/taint",
    "/sys/module/nf_conntrack/parameters/*",
    "/sys/module/pcie_aspm/parameters/policy",
    "/sys/module/haltpoll/parameters/*",
    "/sys/fs/cgroup/cpu.max",
    // Devices.
    "/sys/bus/virtio/devices/*/features",
    "/sys/class/net/*/queues/*/*",
    "/sys/class/net/*/statistics/*",
    "/sys/class/net/*/device/numa_node",
    "/sys/class/net/*/device/local_cpulist",
    "/sys/class/net/*/device/current_link_*",
    "/sys/class/net/*/device/max_link_*",
    "/sys/class/net/*/device/link/*",
    "/sys/class/net/*/device/msi_irqs/*",
    "/sys/class/net/*/device/../msi_irqs/*",
    "/sys/class/net/*/device/../numa_node",
    "/sys/class/net/*/device/../local_cpulist",
    "/sys/class/net/*/device/vendor",
    "/sys/class/net/*/device/device",
];

/// Attributes of a network device itself; its addresses, alias and port ids are not among them.
const DEVICE: [&str; 21] = [
    "/sys/class/net/*/carrier",
    "/sys/class/net/*/carrier_changes",
    "/sys/class/net/*/duplex",
    "/sys/class/net/*/flags",
    "/sys/class/net/*/gro_flush_timeout",
    "/sys/class/net/*/ifindex",
    "/sys/class/net/*/iflink",
    "/sys/class/net/*/mtu",
    "/sys/class/net/*/napi_defer_hard_irqs",
    "/sys/class/net/*/operstate",
    "/sys/class/net/*/speed",
    "/sys/class/net/*/threaded",
    "/sys/class/net/*/tx_queue_len",
    "/sys/class/net/*/type",
    "/sys/class/net/*/uevent",
    "/sys/class/net/*/queues/*/byte_queue_limits/*",
    "/sys/class/net/*/bonding/mode",
    "/sys/class/net/*/bonding/xmit_hash_policy",
    "/sys/class/net/*/bridge/vlan_filtering",
    "/sys/class/net/*/bridge/multicast_snooping",
    "/sys/class/net/bonding_masters",
];

/// Counters, which are read a second time into `later/`.
pub const COUNTERS: [&str; 10] = [
    // Before 5.10 softnet_stat does not name the CPUs.
    "/sys/devices/system/cpu/online",
    "/proc/uptime",
    "/proc/stat",
    "/proc/net/netstat",
    "/proc/net/snmp",
    "/proc/net/snmp6",
    "/proc/net/softnet_stat",
    "/sys/class/net/*/statistics/*",
    "/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count",
    "/sys/fs/cgroup/cpu.stat",
];

const VERSIONS: [&str; 2] = ["/proc/sys/kernel/osrelease", "/proc/sys/kernel/version"];

const BINARY: [&str; 5] = [
    "/proc/config.gz",
    "/boot/config-*",
    "/lib/modules/*/config",
    "/usr/lib/modules/*/config",
    "/sys/class/net/*/device/config",
];

const BELOW: [&str; 2] = ["/proc/sys/net", "/proc/sys/fs/epoll"];

const LINKS: [&str; 8] = [
    "/sys/class/net/*/device/driver",
    "/sys/class/net/*/device/driver/module",
    "/sys/class/net/*/device/iommu_group",
    "/sys/class/net/*/master",
    "/sys/class/net/*/upper_*",
    "/sys/class/net/*/lower_*",
    "/proc/self/ns/*",
    "/proc/1/ns/net",
];

/// Directories of sysctl.d(5), the one that hides the others first. `/lib` is `/usr/lib` wherever systemd runs.
pub const SYSCTL_DIRS: [&str; 4] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];

/// The file that procps reads, and systemd does not unless it is linked into one of the directories.
pub const SYSCTL_CONF: &str = "/etc/sysctl.conf";

/// Directories of systemd.link(5), the one that hides the others first.
pub const LINK_DIRS: [&str; 4] = [
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
];

const SETTINGS: [&str; 7] = [
    SYSCTL_CONF,
    "/etc/modprobe.d/*.conf",
    "/etc/tuned/active_profile",
    "/etc/tuned/profile_mode",
    "/etc/default/irqbalance",
    "/etc/sysconfig/irqbalance",
    "/etc/os-release",
];

/// Names that hold keys, or addresses as their whole content.
const SECRET: [&str; 6] =
    ["tcp_fastopen_key", "stable_secret", "netdev_rss_key", "address", "broadcast", "bridge_id"];

/// All sources.
pub fn all() -> Vec<Source> {
    let mut all = vec![Source { pattern: "/proc/cmdline".into(), sort: Sort::CommandLine }];
    let in_dirs = |dirs: [&str; 4], extension: &str, sort| {
        dirs.map(|dir| Source { pattern: format!("{dir}/*.{extension}").into(), sort })
    };
    all.extend(in_dirs(SYSCTL_DIRS, "conf", Sort::Settings));
    all.extend(in_dirs(LINK_DIRS, "link", Sort::Settings));
    // A distribution's own too, because only those that name a setting are kept.
    all.extend(in_dirs(UDEV, "rules", Sort::Startup));
    let lists: [(&[&'static str], Sort); 8] = [
        (&VERSIONS, Sort::Version),
        (&FILES, Sort::File),
        (&DEVICE, Sort::File),
        (&BINARY, Sort::Binary),
        (&BELOW, Sort::Below),
        (&LINKS, Sort::Link),
        (&SETTINGS, Sort::Settings),
        (&SCRIPTS, Sort::Startup),
    ];
    for (patterns, sort) in lists {
        all.extend(
            patterns.iter().map(|pattern| Source { pattern: Cow::Borrowed(*pattern), sort }),
        );
    }
    all
}

/// Whether a capture takes this path, lists it on the way to one that it takes, or holds it below a directory that it
/// takes whole: what a rule reads and a capture does not take is judged differently from a tree.
pub fn takes(path: &str) -> bool {
    all().iter().any(|source| {
        let wanted: Vec<&str> = source.pattern.split('/').collect();
        let parts: Vec<&str> = path.split('/').collect();
        let fits = wanted.iter().zip(&parts).all(|(wanted, part)| glob::is_match(wanted, part));
        fits && (parts.len() <= wanted.len() || source.sort == Sort::Below)
    })
}

/// Whether a file's name says that it holds a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    SECRET.contains(&name)
}

/// The paths that a pattern stands for; a link at the end need not lead anywhere.
pub fn expand(root: &Root, pattern: &str) -> Vec<String> {
    glob::expand(pattern, |dir| root.list(dir).unwrap_or_default())
}

/// The part of a binary file that is kept: the first 256 bytes of PCI configuration hold what is read, and what
/// follows can hold the device's serial number (its address).
pub fn cut(mut bytes: Vec<u8>) -> Vec<u8> {
    const PCI_CONFIG: usize = 4096;
    if bytes.len() == PCI_CONFIG {
        bytes.truncate(256);
    }
    bytes
}

/// A settings file without its comments: they are where people write about themselves.
pub(crate) fn without_comments(text: &str) -> String {
    let kept = text.lines().filter(|line| !line.trim_start().starts_with(['#', ';']));
    kept.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["proc", "sys/class/net/eth0", "sys/class/net/eth1", "sys/class/net/lo"] {
            std::fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        let root = Root::tree(dir.path()).unwrap();
        let found = expand(&root, "/sys/class/net/eth*/mtu");
        assert_eq!(found, ["/sys/class/net/eth0/mtu", "/sys/class/net/eth1/mtu"]);
        assert_eq!(expand(&root, "/proc/stat"), ["/proc/stat"]);
        assert!(expand(&root, "/no/*/thing").is_empty());
    }

    #[test]
    fn comments_and_serial_numbers_are_cut() {
        let text = "# set by Ann\nnet.core.rmem_max = 1\n  ; more\n";
        assert_eq!(without_comments(text), "net.core.rmem_max = 1\n");
        assert_eq!(cut(vec![0; 4096]).len(), 256);
        assert_eq!(cut(vec![0; 5000]).len(), 5000);
    }

    #[test]
    fn no_pattern_leads_to_an_address_or_a_key() {
        for source in all() {
            let name = source.pattern.rsplit('/').next().unwrap();
            assert!(!["address", "dev_id", "phys_port_id", "ifalias"].contains(&name));
        }
        assert!(is_secret("tcp_fastopen_key") && is_secret("address"));
    }
}
