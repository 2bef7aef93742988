//! The number for all settings moves with settings, and with nothing else.

use rxpath_tune::HostFacts;

use crate::fixture::{Bench, Overlay};

fn of(facts: &HostFacts) -> String {
    facts.fingerprint().digest
}

fn with(bench: &Bench, files: &[(&str, &str)]) -> String {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    bench.with(&Overlay { files, ..Overlay::default() }, of)
}

#[test]
fn counters_change_nothing_and_settings_do() {
    let bench = Bench::new();
    let usual = with(&bench, &[]);
    assert_eq!(usual.len(), 64);
    for (path, text) in [
        ("/sys/class/net/eth0/statistics/rx_packets", "99999999"),
        ("/proc/loadavg", "9.00 9.00 9.00 3/100 4242"),
        ("/proc/uptime", "5.0 5.0"),
        ("/proc/700/comm", "tuned"),
        ("/proc/irq/120/effective_affinity_list", "3"),
    ] {
        assert_eq!(with(&bench, &[(path, text)]), usual, "{path}");
    }
    let mut seen = vec![usual];
    for (path, text) in [
        ("/proc/sys/net/core/rmem_max", "425984"),
        ("/proc/sys/kernel/osrelease", "6.13.0"),
        ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "ff"),
        ("/sys/class/net/eth0/mtu", "9000"),
        ("/proc/irq/120/smp_affinity_list", "3"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave"),
    ] {
        let now = with(&bench, &[(path, text)]);
        assert!(!seen.contains(&now), "{path} makes no difference");
        seen.push(now);
    }
}
