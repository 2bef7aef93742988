//! Which values a sysctl of the receive path takes.
//!
//! The question it answers: *would the kernel take this, and does it still make sense?* It must not read the host: what
//! only this host knows is [`super::within`].

use super::{mask, number};

/// What a sysctl takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One number, both ends included.
    Number(i64, i64),
    /// Three numbers from this one up that do not fall: smallest, default or pressure, largest.
    Triple(i64),
    /// First and last port of a range.
    Ports,
    /// Single ports and ranges of them, or nothing.
    PortList,
    /// Bits of CPUs.
    Cpus,
    /// One word.
    Word,
}

const INT: i64 = i32::MAX as i64;
const UINT: i64 = u32::MAX as i64;
/// Of an unsigned long, as far as it makes sense for memory in bytes.
const LONG: i64 = 1 << 50;

/// Ranges of the kernel's own tables.
///
/// **Source** the `extra1` and `extra2` of net/core/sysctl_net_core.c, net/ipv4/sysctl_net_ipv4.c and kernel/sysctl.c
/// (6.18; `proc_dou8vec_minmax` without them takes 0 to 255).
const KERNEL: &[(&str, i64, i64)] = &[
    ("net.core.gro_normal_batch", 1, INT),
    ("net.core.netdev_unregister_timeout_secs", 1, 3600),
    ("net.core.txrehash", 0, 1),
    ("net.core.somaxconn", 0, INT),
    ("net.ipv4.fib_multipath_hash_fields", 1, 0xfff),
    ("net.ipv4.fib_multipath_hash_policy", 0, 3),
    ("net.ipv4.fib_multipath_use_neigh", 0, 1),
    ("net.ipv4.fib_notify_on_flag_change", 0, 2),
    ("net.ipv4.icmp_echo_enable_probe", 0, 1),
    ("net.ipv4.icmp_echo_ignore_all", 0, 1),
    ("net.ipv4.icmp_echo_ignore_broadcasts", 0, 1),
    ("net.ipv4.icmp_errors_use_inbound_ifaddr", 0, 1),
    ("net.ipv4.icmp_ignore_bogus_error_responses", 0, 1),
    ("net.ipv4.igmp_qrv", 1, INT),
    ("net.ipv4.ip_autobind_reuse", 0, 1),
    ("net.ipv4.ip_default_ttl", 1, 255),
    ("net.ipv4.ip_forward_update_priority", 0, 1),
    ("net.ipv4.ip_unprivileged_port_start", 0, 65_535),
    ("net.ipv4.raw_l3mdev_accept", 0, 1),
    ("net.ipv4.tcp_adv_win_scale", -31, 31),
    ("net.ipv4.tcp_app_win", 0, 31),
    ("net.ipv4.tcp_autocorking", 0, 255),
    ("net.ipv4.tcp_backlog_ack_defer", 0, 1),
    ("net.ipv4.tcp_child_ehash_entries", 0, 16 << 20),
    ("net.ipv4.tcp_comp_sack_nr", 0, 255),
    ("net.ipv4.tcp_dsack", 0, 255),
    ("net.ipv4.tcp_early_retrans", 0, 4),
    ("net.ipv4.tcp_ecn_fallback", 0, 1),
    ("net.ipv4.tcp_fastopen_blackhole_timeout_sec", 0, INT),
    ("net.ipv4.tcp_keepalive_probes", 0, 255),
    ("net.ipv4.tcp_l3mdev_accept", 0, 1),
    ("net.ipv4.tcp_migrate_req", 0, 1),
    ("net.ipv4.tcp_min_rtt_wlen", 0, 86_400),
    ("net.ipv4.tcp_min_snd_mss", 48, 65_535),
    ("net.ipv4.tcp_min_tso_segs", 1, 255),
    ("net.ipv4.tcp_mtu_probe_floor", 48, 65_535),
    ("net.ipv4.tcp_mtu_probing", 0, 255),
    ("net.ipv4.tcp_no_ssthresh_metrics_save", 0, 1),
    ("net.ipv4.tcp_orphan_retries", 0, 255),
    ("net.ipv4.tcp_pacing_ca_ratio", 0, 1000),
    ("net.ipv4.tcp_pacing_ss_ratio", 0, 1000),
    ("net.ipv4.tcp_pingpong_thresh", 1, 255),
    ("net.ipv4.tcp_plb_enabled", 0, 1),
    ("net.ipv4.tcp_plb_idle_rehash_rounds", 0, 31),
    ("net.ipv4.tcp_plb_rehash_rounds", 0, 31),
    ("net.ipv4.tcp_plb_cong_thresh", 0, 256),
    ("net.ipv4.tcp_recovery", 0, 255),
    ("net.ipv4.tcp_reflect_tos", 0, 1),
    ("net.ipv4.tcp_retries1", 0, 255),
    ("net.ipv4.tcp_retries2", 0, 255),
    ("net.ipv4.tcp_rto_max_ms", 1000, 120_000),
    ("net.ipv4.tcp_shrink_window", 0, 1),
    ("net.ipv4.tcp_syn_linear_timeouts", 0, 127),
    ("net.ipv4.tcp_syn_retries", 1, 127),
    ("net.ipv4.tcp_synack_retries", 0, 255),
    ("net.ipv4.tcp_tso_rtt_log", 0, 255),
    ("net.ipv4.tcp_tso_win_divisor", 0, 255),
    ("net.ipv4.tcp_tw_reuse", 0, 2),
    ("net.ipv4.udp_child_hash_entries", 0, 1 << 16),
    ("net.ipv4.udp_l3mdev_accept", 0, 1),
    ("kernel.bpf_stats_enabled", 0, 1),
    ("kernel.timer_migration", 0, 1),
    ("kernel.watchdog", 0, 1),
    ("kernel.nmi_watchdog", 0, 1),
    ("kernel.numa_balancing", 0, 3),
];

/// Where the kernel takes any number, or any byte, what still makes sense: a budget of seconds starves every task.
const OURS: &[(&str, i64, i64)] = &[
    ("net.core.netdev_budget", 1, 10_000),
    ("net.core.netdev_budget_usecs", 100, 100_000),
    ("net.core.dev_weight", 1, 10_000),
    ("net.core.dev_weight_rx_bias", 1, 1000),
    ("net.core.dev_weight_tx_bias", 1, 1000),
    ("net.core.netdev_max_backlog", 1, 10_000_000),
    ("net.core.busy_poll", 0, 10_000),
    ("net.core.busy_read", 0, 10_000),
    ("net.core.skb_defer_max", 0, 65_536),
    ("net.core.netdev_tstamp_prequeue", 0, 1),
    ("net.core.tstamp_allow_data", 0, 1),
    ("net.core.high_order_alloc_disable", 0, 1),
    ("net.core.bpf_jit_kallsyms", 0, 1),
    ("net.core.rmem_default", 256, INT),
    ("net.core.rmem_max", 256, INT),
    ("net.core.wmem_default", 256, INT),
    ("net.core.wmem_max", 256, INT),
    ("net.core.optmem_max", 256, INT),
    ("net.core.rps_sock_flow_entries", 0, 1 << 29),
    ("net.core.flow_limit_table_len", 1, 1 << 24),
    ("net.core.bpf_jit_enable", 0, 1),
    ("net.core.max_skb_frags", 1, 45),
    ("net.ipv4.ip_forward", 0, 1),
    ("net.ipv4.tcp_moderate_rcvbuf", 0, 1),
    ("net.ipv4.tcp_early_demux", 0, 1),
    ("net.ipv4.udp_early_demux", 0, 1),
    ("net.ipv4.ip_early_demux", 0, 1),
    ("net.ipv4.tcp_ecn", 0, 5),
    ("net.ipv4.tcp_timestamps", 0, 2),
    ("net.ipv4.tcp_sack", 0, 1),
    ("net.ipv4.tcp_window_scaling", 0, 1),
    ("net.ipv4.tcp_slow_start_after_idle", 0, 1),
    ("net.ipv4.tcp_no_metrics_save", 0, 1),
    ("net.ipv4.tcp_abort_on_overflow", 0, 1),
    ("net.ipv4.tcp_low_latency", 0, 1),
    ("net.ipv4.tcp_fastopen", 0, 0xffff),
    ("net.ipv4.tcp_fin_timeout", 1, 3600),
    ("net.ipv4.tcp_keepalive_time", 1, 32_767),
    ("net.ipv4.tcp_keepalive_intvl", 1, 32_767),
    ("net.ipv4.tcp_max_syn_backlog", 1, INT),
    ("net.ipv4.tcp_max_orphans", 0, INT),
    ("net.ipv4.tcp_max_tw_buckets", 0, INT),
    ("net.ipv4.tcp_max_reordering", 1, 65_535),
    ("net.ipv4.tcp_reordering", 1, 65_535),
    ("net.ipv4.tcp_base_mss", 48, 65_535),
    ("net.ipv4.tcp_limit_output_bytes", 0, INT),
    ("net.ipv4.tcp_notsent_lowat", 0, UINT),
    ("net.ipv4.tcp_rto_min_us", 1, 120_000_000),
    ("net.ipv4.tcp_comp_sack_delay_ns", 0, 1_000_000_000),
    ("net.ipv4.tcp_comp_sack_slack_ns", 0, 1_000_000_000),
    ("net.ipv4.tcp_challenge_ack_limit", 0, INT),
    ("net.ipv4.udp_rmem_min", 256, INT),
    ("net.ipv4.udp_wmem_min", 256, INT),
    ("net.ipv4.ipfrag_high_thresh", 0, LONG),
    ("net.ipv4.ipfrag_low_thresh", 0, LONG),
    ("net.ipv4.ipfrag_time", 1, 3600),
    ("net.ipv4.ipfrag_max_dist", 0, INT),
    ("net.ipv6.ip6frag_high_thresh", 0, LONG),
    ("net.ipv6.ip6frag_low_thresh", 0, LONG),
    ("net.ipv6.ip6frag_time", 1, 3600),
    ("kernel.sched_rt_runtime_us", -1, 1_000_000),
    ("vm.stat_interval", 0, 3600),
];

/// Those that are not one number, and for all devices: the part after `conf.DEV.` or `neigh.DEV.`.
const OTHERS: &[(&str, Kind)] = &[
    // net/ipv4/sysctl_net_ipv4.c: `tcp_rmem` and `tcp_wmem` have SYSCTL_ONE below, the pools are unsigned longs.
    ("net.ipv4.tcp_rmem", Kind::Triple(1)),
    ("net.ipv4.tcp_wmem", Kind::Triple(1)),
    ("net.ipv4.tcp_mem", Kind::Triple(0)),
    ("net.ipv4.udp_mem", Kind::Triple(0)),
    ("net.ipv4.ip_local_port_range", Kind::Ports),
    ("net.ipv4.ip_local_reserved_ports", Kind::PortList),
    ("net.core.rps_default_mask", Kind::Cpus),
    ("net.core.flow_limit_cpu_bitmap", Kind::Cpus),
    ("net.core.default_qdisc", Kind::Word),
    ("net.ipv4.tcp_congestion_control", Kind::Word),
];

/// Of each device (net/ipv4/devinet.c `devinet_sysctl`, net/ipv6/addrconf.c `addrconf_sysctl`), and of neighbours.
const OF_DEVICE: &[(&str, i64, i64)] = &[
    ("rp_filter", 0, 2),
    ("forwarding", 0, 1),
    ("accept_local", 0, 1),
    ("accept_redirects", 0, 1),
    ("accept_source_route", -1, 1),
    ("arp_announce", 0, 2),
    ("arp_filter", 0, 1),
    ("arp_ignore", 0, 8),
    ("arp_notify", 0, 1),
    ("disable_ipv6", 0, 1),
    ("log_martians", 0, 1),
    ("route_localnet", 0, 1),
    ("send_redirects", 0, 1),
    ("src_valid_mark", 0, 1),
    ("hop_limit", -1, 255),
    ("mtu", 1280, 65_575),
    ("gc_stale_time", 0, INT),
    ("unres_qlen", 0, INT),
    ("unres_qlen_bytes", 0, INT),
];

/// Names and ranges from the kernel, which a test compares with the running kernel.
pub fn kernel_ranges() -> impl Iterator<Item = (&'static str, i64, i64)> {
    KERNEL.iter().copied()
}

/// Whether a sysctl stands here by its own name, whatever it begins with.
pub(super) fn is_listed(key: &str) -> bool {
    KERNEL.iter().chain(OURS).any(|(name, ..)| *name == key)
}

fn kind(key: &str) -> Option<Kind> {
    let range = |(_, min, max): &(&str, i64, i64)| Kind::Number(*min, *max);
    if let Some((_, kind)) = OTHERS.iter().find(|(name, _)| *name == key) {
        return Some(*kind);
    }
    if let Some(row) = KERNEL.iter().chain(OURS).find(|(name, ..)| *name == key) {
        return Some(range(row));
    }
    let parts: Vec<&str> = key.split('.').collect();
    match parts.as_slice() {
        // A device's name may hold dots.
        ["net", "ipv4" | "ipv6", "conf" | "neigh", _, .., name] => {
            OF_DEVICE.iter().find(|(known, ..)| known == name).map(range)
        }
        _ => None,
    }
}

/// Whether a value is one that the sysctl takes; one that is not known here may be any line, see [`like`].
pub(super) fn check(key: &str, value: &str) -> Result<(), String> {
    match kind(key) {
        Some(Kind::Number(min, max)) => number(value, min, max),
        Some(Kind::Triple(min)) => triple(value, min),
        Some(Kind::Ports) => ports(value),
        Some(Kind::PortList) => port_list(value),
        Some(Kind::Cpus) => mask(value),
        Some(Kind::Word) => word(value),
        None if value.trim().is_empty() => Err("the value is empty".into()),
        None => Ok(()),
    }
}

/// Whether a value has the form of the one that is there, for sysctls that are not known here: as many numbers, each an
/// int or unsigned int; or words.
pub(super) fn like(key: &str, now: &str, value: &str) -> Result<(), String> {
    if kind(key).is_some() {
        return Ok(());
    }
    let numbers = |text: &str| -> Option<Vec<i64>> {
        text.split_whitespace().map(|word| word.parse().ok()).collect()
    };
    match numbers(now).filter(|now| !now.is_empty()) {
        None if value.trim().is_empty() => Err("the value is empty".into()),
        None => value.split_whitespace().try_for_each(word),
        Some(now) => {
            let fit = |all: &Vec<i64>| {
                all.len() == now.len() && all.iter().all(|n| (-INT - 1..=UINT).contains(n))
            };
            let words = format!("`{value}`: expected {} whole number(s), as it has now", now.len());
            numbers(value).filter(fit).map(drop).ok_or(words)
        }
    }
}

fn triple(value: &str, min: i64) -> Result<(), String> {
    let numbers: Result<Vec<i64>, _> = value.split_whitespace().map(str::parse).collect();
    let fit = |all: &Vec<i64>| {
        all.len() == 3 && all.is_sorted() && all.iter().all(|n| (min..=INT).contains(n))
    };
    numbers.ok().filter(fit).map(drop).ok_or_else(|| {
        format!(
            "`{value}`: expected three numbers from {min} to {INT} that do not fall: 4096 131072 6291456"
        )
    })
}

/// **Source** net/ipv4/sysctl_net_ipv4.c `ipv4_local_port_range`: 1 to 65535, the first not above the last.
fn ports(value: &str) -> Result<(), String> {
    let numbers: Result<Vec<u16>, _> = value.split_whitespace().map(str::parse).collect();
    match numbers.as_deref() {
        Ok([first, last]) if *first >= 1 && first <= last => Ok(()),
        _ => Err(format!("`{value}`: expected two ports from 1 to 65535, the lower one first")),
    }
}

/// **Source** kernel/sysctl.c `proc_do_large_bitmap`: `8080,9148-9160`.
fn port_list(value: &str) -> Result<(), String> {
    let is_range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        matches!((first.parse::<u16>(), last.parse::<u16>()), (Ok(a), Ok(b)) if a <= b)
    };
    if value.trim().is_empty() || value.trim().split(',').all(is_range) {
        return Ok(());
    }
    Err(format!("`{value}`: expected ports up to 65535 like 8080,9148-9160"))
}

fn word(value: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.:,".contains(c);
    if !value.is_empty() && value.chars().all(fits) {
        return Ok(());
    }
    Err(format!("`{value}`: expected one word"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_name_stands_twice() {
        let names = KERNEL.iter().chain(OURS).map(|(name, ..)| *name);
        let mut names: Vec<&str> = names.chain(OTHERS.iter().map(|(name, _)| *name)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(KERNEL.iter().chain(OURS).chain(OF_DEVICE).all(|(_, min, max)| min < max));
    }

    #[test]
    fn each_kind_has_its_form() {
        for (key, good, bad) in [
            ("net.ipv4.ip_local_port_range", "32768 60999", "70000 80000"),
            ("net.ipv4.ip_local_port_range", "1\t65535", "0 65535"),
            ("net.ipv4.ip_local_port_range", "9 9", "60999 32768"),
            ("net.ipv4.ip_local_port_range", "9 9", "9"),
            ("net.ipv4.ip_local_reserved_ports", "", "65536"),
            ("net.ipv4.ip_local_reserved_ports", "8080,9148-9160", "9160-9148"),
            ("net.ipv4.tcp_mem", "0 1 2", "3 2 1"),
            ("net.ipv4.tcp_rmem", "1 2 3", "0 2 3"),
            ("net.core.rps_default_mask", "3", "zzz"),
            ("net.core.flow_limit_cpu_bitmap", "00000000,3", "-1"),
            ("net.core.default_qdisc", "fq_codel", "fq codel"),
            ("net.ipv4.conf.eth0.rp_filter", "2", "3"),
            ("net.ipv4.conf.eth0.1.rp_filter", "0", "x"),
            ("net.ipv4.tcp_syn_retries", "127", "128"),
            ("net.ipv4.tcp_adv_win_scale", "-31", "-32"),
        ] {
            assert_eq!(check(key, good), Ok(()), "{key}={good}");
            assert!(check(key, bad).is_err(), "{key}={bad}");
        }
    }

    #[test]
    fn what_is_not_known_here_keeps_its_form() {
        let key = "net.ipv4.cipso_cache_bucket_size";
        assert_eq!(like(key, "10", "20"), Ok(()));
        for bad in ["", "ten", "1 2", "4294967296", "-2147483649", "1.5"] {
            assert!(like(key, "10", bad).is_err(), "{bad}");
        }
        for bad in ["", " ", "a;b", "$(x)"] {
            assert!(like("net.ipv4.x", "reno bbr", bad).is_err(), "{bad}");
        }
        assert_eq!(like("net.ipv4.x", "reno", "reno bbr"), Ok(()));
        assert_eq!(like("net.ipv4.x", "reno", "bbr"), Ok(()));
        assert_eq!(like("net.core.rmem_max", "1", "known by name"), Ok(()), "the table's matter");
    }

    proptest! {
        /// What is accepted lies in the range, and all of the range is accepted.
        #[test]
        fn a_number_is_taken_exactly_within_its_range(row in 0..KERNEL.len() + OURS.len(), by in -3i64..4, edge: bool, any: i64) {
            let (key, min, max) = *KERNEL.iter().chain(OURS).nth(row).unwrap();
            for value in [if edge { min + by } else { max + by }, any] {
                prop_assert_eq!(check(key, &value.to_string()).is_ok(), (min..=max).contains(&value), "{}={}", key, value);
            }
        }

        #[test]
        fn triples_that_are_taken_ascend(text in "[0-9 -]{0,40}") {
            if check("net.ipv4.tcp_rmem", &text).is_ok() {
                let all: Vec<i64> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
                prop_assert!(all.len() == 3 && 1 <= all[0] && all[0] <= all[1] && all[1] <= all[2] && all[2] <= INT);
            }
        }

        #[test]
        fn any_text_is_judged(row in 0..OTHERS.len(), text in ".{0,40}") {
            let _ = (check(OTHERS[row].0, &text), like("net.ipv4.x", &text, &text));
        }
    }
}
