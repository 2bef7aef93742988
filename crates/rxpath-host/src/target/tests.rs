//! Tests of this module.

use super::*;
use proptest::prelude::*;

const KNOBS: [&str; 16] = [
    "net.core.rmem_max",
    "/proc/sys/one",
    "/proc/sys/net/ipv4/conf/eth0.1/rp_filter",
    "/sys/devices/system/cpu/smt/control",
    "eth0/napi_defer_hard_irqs",
    "eth0/queues/rx-0/rps_cpus",
    "eth0/rings/rx",
    "eth0.7/features/rx-gro",
    "eth0/coalesce/rx-usecs",
    "eth0/coalesce/queue-3/rx-usecs",
    "eth0/coalesce",
    "eth0/napi-2/irq-suspend-timeout",
    "eth0/flow-hash/udp4",
    "eth0/link/mtu",
    "eth0/link-modes/1000baseT/Full",
    "irq/24",
];

#[test]
fn a_sysctl_of_a_device_moves_with_it() {
    let moved = |name: &str, dev: &str| {
        let target: Target = name.parse().unwrap();
        (target.device().map(str::to_owned), target.on_device(dev).to_string())
    };
    let eth0 = Some("eth0".to_owned());
    let rp_filter = "net.ipv4.conf.eth0.rp_filter";
    assert_eq!(moved(rp_filter, "wan0"), (eth0.clone(), "net.ipv4.conf.wan0.rp_filter".into()));
    let slashed = "/proc/sys/net/ipv4/conf/wan0.7/rp_filter";
    assert_eq!(moved(rp_filter, "wan0.7"), (eth0, slashed.into()));
    assert_eq!(moved(slashed, "eth0"), (Some("wan0.7".into()), rp_filter.into()));
    for other in
        ["net.ipv4.conf.all.rp_filter", "net.ipv4.neigh.default.gc_thresh1", "net.ipv4.ip_forward"]
    {
        assert_eq!(moved(other, "wan0"), (None, other.to_owned()));
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    for name in KNOBS {
        let knob: Knob = name.parse().unwrap();
        assert_eq!(knob.to_string(), name);
    }
    let knob: Knob = "/proc/sys/net/core/rmem_max".parse().unwrap();
    assert_eq!(knob.to_string(), "net.core.rmem_max");
    assert_eq!("irq/24".parse(), Ok(Target::Irq { irq: 24 }));
}

#[test]
fn what_is_no_setting_is_refused() {
    for name in [
        "",
        "eth0",
        "/etc/passwd",
        "/sys/../etc/passwd",
        "eth0/../../x",
        "irq/x",
        "a b",
        "net..core",
        "eth0/rings/",
        "eth0/napi-x",
        "eth0/coalesce/queue-x/rx-usecs",
        "a=b.c",
        "averyverylongname/rings/rx",
        "/proc/1/mem",
        "eth0/",
        "./rings/rx",
        "../rings/rx",
        "net.core.",
        ".net.core",
        "/proc/sys/",
        "/proc/sys//etc/passwd",
        "/proc/sys//etc/x.conf",
        "/proc/sys/.etc.passwd",
        "/proc/sys/...",
        "/proc/sys/a/../b",
        "/proc/sys/net//core/rmem_max",
        "/proc/sys/net/ipv4/conf/./eth0.1",
        "/proc/sys/net/core/",
        "/sys/",
        "/sys//etc/passwd",
        "/sys/kernel/./mm",
        "/sys/class/net/../../..",
        "eth0/queues//rx-0/rps_cpus",
    ] {
        assert!(name.parse::<Knob>().is_err(), "{name}");
    }
    assert!("eth0/rings/rx".parse::<Target>().is_err(), "a part is no whole target");
    let refused = "/proc/sys//etc/passwd".parse::<Target>().unwrap_err().to_string();
    assert_eq!(
        refused,
        "`/proc/sys//etc/passwd` is not a setting: a part of it is empty, `.` or `..`; \
         expected net.core.NAME or a path below /proc/sys or /sys"
    );
    // A plan and a journal hold the same names.
    assert!(serde_json::from_str::<Target>("\"/proc/sys//etc/passwd\"").is_err());
}

#[test]
fn the_error_and_the_reference_name_each_group() {
    let refused = "eth0".parse::<Knob>().unwrap_err().to_string();
    let page = include_str!("../../../../docs/reference/settings.md");
    let groups = Group::ALL.map(Group::name);
    assert!(refused.contains(&groups.join(", ")), "{refused}");
    for group in groups {
        assert!(page.contains(&format!("`eth0/{group}/")), "docs/reference/settings.md: {group}");
    }
}

#[test]
fn a_name_with_a_blank_is_typed_as_it_is_shown() {
    let text = |name: &str| name.parse::<Knob>().unwrap().text("on");
    for name in ["tx%20push", "a%3Db", "50%25", "legacy-rx"] {
        assert_eq!(text(&format!("eth0/priv-flags/{name}")), format!("{name}=on"));
    }
    assert_eq!(text("eth0/priv-flags/50%"), "50%25=on");
    assert_eq!(text("eth0/threaded"), "on");
    let refused = "eth0/priv-flags/tx push".parse::<Knob>().unwrap_err().to_string();
    assert!(refused.ends_with("no blanks and no =; write %20 and %3D for them"), "{refused}");
}

#[test]
fn a_renamed_device_keeps_its_settings() {
    let target: Target = "eth0/queues/rx-0/rps_cpus".parse().unwrap();
    assert_eq!(target.on_device("lan0").to_string(), "lan0/queues/rx-0/rps_cpus");
}

#[test]
fn dotted_names_are_paths() {
    assert_eq!(sysctl_path("net.ipv4.ip_forward"), Path::new("/proc/sys/net/ipv4/ip_forward"));
    let vlan: Target = "/proc/sys/net/ipv4/conf/eth0.1/rp_filter".parse().unwrap();
    assert_eq!(vlan.path().unwrap(), Path::new("/proc/sys/net/ipv4/conf/eth0.1/rp_filter"));
}

#[test]
fn no_sysctl_is_outside_of_its_tree() {
    for key in ["/etc/passwd", ".etc.passwd", "net/../../../etc/passwd", "../etc/passwd"] {
        let path = sysctl_path(key);
        assert!(path.starts_with("/proc/sys") && path.iter().all(|part| part != ".."), "{path:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_back_or_refused(name in "[a-z0-9./ =-]{0,40}") {
        if let Ok(knob) = name.parse::<Knob>() {
            let again: Knob = knob.to_string().parse().unwrap();
            prop_assert_eq!(again, knob);
        }
    }
}
