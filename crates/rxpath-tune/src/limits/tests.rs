//! Tests of this module.

use super::*;

fn may(name: &str) -> bool {
    may_change(&name.parse().unwrap()).is_ok()
}

#[test]
fn what_undo_could_not_bring_back_is_refused() {
    for key in ["net.ipv6.conf.all.disable_ipv6", "/proc/sys/net/ipv6/conf/eth0.5/disable_ipv6"] {
        assert!(may_change(&key.parse().unwrap()).unwrap_err().contains("undo"), "{key}");
    }
    for key in ["net.ipv4.conf.all.accept_source_route", "net.ipv6.conf.eth0.accept_source_route"] {
        assert!(may_change(&key.parse().unwrap()).unwrap_err().contains("guards"), "{key}");
    }
    let link: Target = "eth0/link".parse().unwrap();
    assert!(well_formed(&link, "mtu=1279").unwrap_err().contains("IPv6"));
    assert!(well_formed(&link, "mtu=1280").is_ok());
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
        "eth0/l1_aspm",
        "eth0/device/link/clkpm",
        "/sys/kernel/tracing/tracing_on",
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
        "kernel.bpf_stats_enabled",
        "eth0/device/link/l0s_aspm",
        "/sys/kernel/tracing/current_tracer",
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
        ("/sys/kernel/mm/ksm/run", "2", "9"),
        ("/sys/devices/system/cpu/smt/control", "off", "maybe"),
        ("/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us", "n/a", "-1"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "madvise", "always madvise"),
        ("/sys/module/haltpoll/parameters/guest_halt_poll_ns", "200000", "1000000001"),
        ("e0/device/link/l1_aspm", "0", "2"),
        ("net.core.rps_default_mask", "3", "zzz"),
        ("net.ipv4.ip_local_port_range", "1024 65535", "70000 80000"),
    ] {
        assert!(is(name, good), "{name} {good}");
        assert!(!is(name, bad), "{name} {bad}");
    }
}

#[test]
fn a_host_says_its_own_bounds() {
    let cpus = |text: &str| text.parse::<CpuList>().ok();
    let bounds = Bounds { cpus: cpus("0-3"), online: cpus("0-1"), ..Bounds::default() };
    let at = |name: &str, value: &str| within(&name.parse().unwrap(), ("0", value), &bounds);
    assert_eq!(at("irq/9", "1,2"), Ok(()));
    assert_eq!(at("irq/9", "77").unwrap_err(), "`77`: this host has no CPU 77, it has 0-3");
    assert!(at("irq/9", "2-3").unwrap_err().contains("none of them is online"));
    let bounds = Bounds { cpus: cpus("0-3"), ..Bounds::default() };
    let at = |name: &str, value: &str| within(&name.parse().unwrap(), ("0", value), &bounds);
    assert_eq!(at("e0/queues/rx-0/rps_cpus", "f"), Ok(()));
    assert_eq!(at("e0/queues/rx-0/rps_cpus", "0"), Ok(()));
    assert!(at("e0/queues/rx-0/rps_cpus", "10").unwrap_err().contains("no CPU 4"));
    assert!(at("net.core.rps_default_mask", "1,00000000").is_err());
    let policy: Target = "/sys/module/pcie_aspm/parameters/policy".parse().unwrap();
    let words = Some(vec!["default".into(), "performance".into()]);
    let bounds = Bounds { words, queues: Some(2), ..Bounds::default() };
    assert_eq!(within(&policy, ("default", "performance"), &bounds), Ok(()));
    assert!(
        within(&policy, ("default", "bogus"), &bounds)
            .unwrap_err()
            .contains("default, performance")
    );
    let bounds = Bounds { words: None, ..bounds };
    let rxqs: Target = "e0/queues/tx-0/xps_rxqs".parse().unwrap();
    assert_eq!(within(&rxqs, ("0", "3"), &bounds), Ok(()));
    assert!(within(&rxqs, ("0", "4"), &bounds).unwrap_err().contains("no receive queue 2"));
}

#[test]
fn a_device_says_its_own_bounds() {
    let pairs = |text: &str| text.parse::<Pairs>().unwrap();
    let bounds =
        Bounds { most: pairs("rx=4096 mtu=9000"), least: pairs("mtu=68"), ..Bounds::default() };
    let rings = |text| within(&"e0/rings".parse().unwrap(), ("rx=1", text), &bounds);
    assert_eq!(rings("rx=4096 tx=9999"), Ok(()));
    assert_eq!(rings("rx=4097").unwrap_err(), "rx=4097: the device takes at most 4096");
    assert_eq!(rings("mtu=1").unwrap_err(), "mtu=1: the device takes at least 68");
}
