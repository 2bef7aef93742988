use super::*;
use crate::plan::{HostMark, tests::step};

fn plan() -> Plan {
    let mut plan = Plan::new("2026-01-01T00:00:00Z".into(), HostMark::default());
    plan.steps = vec![
        step("eth0/rings", "rx=256 cqe-size=64", "rx=4096 cqe-size=128"),
        step("eth0/coalesce", "rx-usecs=50 adaptive-rx=on", "rx-usecs=8 adaptive-rx=off"),
        step("eth0/rss", "hfunc=xor", "hfunc=toeplitz"),
        step("eth0/queues/rx-0/rps_cpus", "0", "3"),
        step("eth0/napi_defer_hard_irqs", "0", "2"),
        step("net.core.rmem_max", "212992", "4194304"),
        step("net.ipv4.tcp_rmem", "4096 131072 6291456", "4096 131072 33554432"),
        step("/sys/devices/system/cpu/smt/control", "on", "off"),
        step("/sys/module/nf_conntrack/parameters/hashsize", "1", "2"),
    ];
    plan
}

fn shown(home: Home) -> String {
    let (drafts, out) = drafts(&plan(), home, &Matching::default());
    let drafts =
        drafts.iter().map(|draft| format!("== {}{}\n{}", draft.place, draft.name, draft.text));
    let out = out.iter().map(|left| format!("-- {}: {}\n", left.what, left.why));
    drafts.chain(out).collect()
}

#[test]
fn drafts_are_complete_or_say_what_is_missing() {
    for (name, home) in [
        ("sysctl", Home::Sysctl),
        ("link", Home::Link),
        ("udev", Home::Udev),
        ("cmdline", Home::Cmdline),
        ("ansible", Home::Ansible),
    ] {
        insta::assert_snapshot!(name, shown(home));
    }
}

#[test]
fn an_empty_plan_makes_no_file() {
    let plan = Plan { steps: Vec::new(), ..plan() };
    for home in [Home::Sysctl, Home::Link, Home::Udev, Home::Cmdline, Home::Ansible] {
        assert_eq!(drafts(&plan, home, &Matching::default()), (Vec::new(), Vec::new()));
    }
}

#[test]
fn quotes_are_kept_apart_in_yaml() {
    assert_eq!(quoted("it's"), "'it''s'");
}

#[test]
fn what_keeps_a_plan_over_a_restart_is_counted() {
    let expected = [("sysctl.d", 2), ("link", 1), ("udev", 2), ("cmdline", 3)];
    assert_eq!(homes(&plan()), expected);
    assert!(homes(&Plan { steps: Vec::new(), ..plan() }).is_empty());
}

/// What `check` reads of udev rules is what is drafted here.
#[test]
fn a_drafted_rule_is_read_back() {
    use rxpath_host::Root;
    use rxpath_host::read::startup;

    let (drafts, _) = drafts(&plan(), Home::Udev, &Matching::default());
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("sys/class/net/eth0/mtu", "1500"),
        ("proc/uptime", "1 1"),
        ("etc/udev/rules.d/90-rxpath.rules", drafts[0].text.as_str()),
    ] {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let lines = startup::read(&Root::tree(dir.path()).unwrap()).0;
    for file in ["rps_cpus", "napi_defer_hard_irqs"] {
        assert!(lines.iter().any(|line| line.mentions_file("eth0", file)), "{file}: {lines:?}");
    }
}

/// The kernel reads its command line before there is a device, and takes every dot of a key for a slash.
#[test]
fn sysctls_of_one_device_are_not_for_the_command_line() {
    let keys = [
        ("net.ipv4.conf.eth0.rp_filter", false),
        ("/proc/sys/net/ipv4/conf/eth0.1/rp_filter", false),
        ("net.ipv6.neigh.eth0.gc_stale_time", false),
        ("net.ipv4.conf.all.rp_filter", true),
        ("net.ipv4.tcp_rmem", true),
    ];
    for (key, is_drafted) in keys {
        let plan = Plan { steps: vec![step(key, "0", "2")], ..plan() };
        let (drafts, left) = drafts(&plan, Home::Cmdline, &Matching::default());
        assert_eq!(
            (drafts.len(), left.len()),
            (usize::from(is_drafted), usize::from(!is_drafted)),
            "{key}"
        );
    }
}
