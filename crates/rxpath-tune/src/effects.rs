//! Side effects of a change, and the other settings that it may change.
//!
//! The question it answers: *what else happens when this is written?* So that a plan can say it before, and the
//! journal can hold it.

mod copied;

use rxpath_host::pairs::Pairs;
use rxpath_host::read::sysfs::device::{receive_queues, stacked};
use rxpath_host::read::sysfs::irq;
use rxpath_host::{Group, Root, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

rxpath_core::named! {
    /// Something that a change does in addition to its purpose.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum Effect {
        /// The link is lost for up to some seconds.
        LinkBounce => "the link is lost for up to some seconds",
        /// Queues are made again: interrupts, affinities, steering masks and counters with them.
        QueuesRebuilt => "queues are recreated: interrupts, affinities and counters change",
        /// Other settings of the group may move with it.
        MovesOthers => "other settings of the group may change with it",
        /// It takes effect at the next interrupt.
        NextInterrupt => "takes effect at the next interrupt",
        /// Packets of one flow may be reordered while it is written.
        Reorders => "packets of a flow may be reordered for a moment",
        /// It weakens a protection.
        Security => "weakens a protection",
        /// More power is drawn.
        Power => "draws more power",
        /// CPU time is spent on waiting.
        BurnsCpu => "uses CPU time for polling",
        /// It holds for every socket and device of the host, or of the network namespace.
        HostWide => "applies to the whole host or network namespace",
    }
    /// What it means, in a few words.
    pub fn words(self) -> &'static str
}

/// Drivers whose queues are memory: no link is lost.
///
/// **Source** drivers/net: `veth_set_channels`, `virtnet_set_ringparam` (the queue is reset, the link stays), `tun`.
const VIRTUAL: [&str; 10] =
    ["veth", "virtio_net", "tun", "dummy", "ifb", "bridge", "bonding", "macvlan", "ipvlan", "vlan"];

/// What a write of `new` in place of `old` has as side effects, on a device of this driver.
pub fn effects(target: &Target, driver: Option<&str>, (old, new): (&str, &str)) -> Vec<Effect> {
    let is_virtual = driver.is_none_or(|driver| VIRTUAL.contains(&driver));
    match target {
        Target::Group { group, .. } => {
            let asked: Pairs = new.parse().unwrap_or_default();
            let bounces =
                !is_virtual && asked.iter().any(|(name, _)| (group.properties().bounces)(name));
            let other = match group {
                Group::Channels => Some(Effect::QueuesRebuilt),
                Group::Rings if !is_virtual => Some(Effect::QueuesRebuilt),
                Group::Features | Group::PrivFlags => Some(Effect::MovesOthers),
                Group::Rss | Group::FlowHash => Some(Effect::Reorders),
                _ => None,
            };
            bounces.then_some(Effect::LinkBounce).into_iter().chain(other).collect()
        }
        Target::Irq { .. } => vec![Effect::NextInterrupt],
        Target::Attr { attr, .. } if attr.ends_with("/rps_cpus") => vec![Effect::Reorders],
        Target::Attr { attr, .. } if attr.ends_with("_aspm") && new.trim() == "0" => {
            vec![Effect::Power]
        }
        Target::Attr { .. } | Target::QueueCoalesce { .. } | Target::Napi { .. } => Vec::new(),
        Target::Sysctl { key } => of_sysctl(key, old, new),
        Target::Sysfs { path } => of_file(&path.to_string_lossy(), new),
    }
}

fn of_sysctl(key: &str, old: &str, new: &str) -> Vec<Effect> {
    let number = |text: &str| text.trim().parse::<i64>().ok();
    // 1 is strict, 2 is loose, 0 is off (Documentation/networking/ip-sysctl.rst).
    let is_weaker =
        matches!((number(old), number(new)), (Some(1), Some(2 | 0)) | (Some(2), Some(0)));
    let polls = matches!(key, "net.core.busy_poll" | "net.core.busy_read");
    those([
        (is_weaker && key.ends_with("rp_filter"), Effect::Security),
        (polls && number(new).is_some_and(|us| us > 0), Effect::BurnsCpu),
        (!key.contains(".conf.") && !key.contains("/conf/"), Effect::HostWide),
    ])
}

/// The effects that a write has.
fn those(all: [(bool, Effect); 3]) -> Vec<Effect> {
    all.into_iter().filter(|(has_it, _)| *has_it).map(|(_, effect)| effect).collect()
}

fn of_file(path: &str, new: &str) -> Vec<Effect> {
    let power = path.ends_with("/scaling_governor") && new.trim() == "performance"
        || path.ends_with("/energy_performance_preference") && new.trim() == "performance"
        || path.ends_with("/scaling_min_freq")
        || path.ends_with("/min_perf_pct")
        || path.contains("/cpuidle/") && new.trim() == "1"
        || path.ends_with("/pm_qos_resume_latency_us")
        || path.ends_with("/pcie_aspm/parameters/policy") && new.trim() == "performance";
    those([
        (power, Effect::Power),
        (path.ends_with("/guest_halt_poll_ns") && new.trim() != "0", Effect::BurnsCpu),
        (!path.starts_with("/sys/class/net/"), Effect::HostWide),
    ])
}

/// Settings that a write of this target may take along, so that undo can restore them with it.
pub fn coupled(target: &Target, root: &Root) -> Vec<Target> {
    match target {
        Target::Group { dev, group: Group::Channels | Group::Rings } => {
            let mut all = vec![Target::Group { dev: dev.clone(), group: Group::Rss }];
            all.extend(queue_attributes(dev, root));
            let irqs = irq::of_device(root, dev).unwrap_or_default();
            all.extend(irqs.into_iter().map(|irq| Target::Irq { irq }));
            all
        }
        // A jumbo MTU switches off what the driver can't do with it; a smaller one is that of the devices above, too
        // (net/8021q/vlan.c `vlan_device_event`, drivers/net/macvlan.c `macvlan_device_event`).
        Target::Group { dev, group: Group::Link } => {
            let above = stacked(root, dev, "upper_").into_iter();
            let above = above.map(|dev| Target::Group { dev, group: Group::Link });
            let own = Target::Group { dev: dev.clone(), group: Group::Features };
            std::iter::once(own).chain(above).collect()
        }
        // What a bond has off is taken off its ports (net/core/dev.c `netdev_sync_lower_features`).
        Target::Group { dev, group: Group::Features } => stacked(root, dev, "lower_")
            .into_iter()
            .map(|dev| Target::Group { dev, group: Group::Features })
            .collect(),
        Target::Group { dev, group: Group::Coalesce } => receive_queues(root, dev)
            .map(|queue| Target::QueueCoalesce { dev: dev.clone(), queue })
            .collect(),
        // A value for the device is one for each of its NAPI instances (net/core/dev.c
        // `netdev_set_defer_hard_irqs`, 6.13).
        Target::Attr { dev, attr } if !attr.contains('/') => receive_queues(root, dev)
            .map(|queue| Target::Napi { dev: dev.clone(), queue })
            .collect(),
        Target::Sysctl { key } => copied::copied(key, root),
        // CPUs that go away lose their interrupts to others.
        Target::Sysfs { path } if path.ends_with("smt/control") => {
            let all = root.list("/proc/irq").unwrap_or_default().into_iter();
            all.filter_map(|name| Some(Target::Irq { irq: name.parse().ok()? })).collect()
        }
        _ => Vec::new(),
    }
}

fn queue_attributes(dev: &str, root: &Root) -> Vec<Target> {
    let dir = format!("/sys/class/net/{dev}/queues");
    let mut all = Vec::new();
    for queue in root.list(&dir).unwrap_or_default() {
        let attributes: &[&str] = if queue.starts_with("rx-") {
            &["rps_cpus", "rps_flow_cnt"]
        } else {
            &["xps_cpus", "xps_rxqs"]
        };
        for attribute in attributes {
            let attr = format!("queues/{queue}/{attribute}");
            if root.exists(&format!("/sys/class/net/{dev}/{attr}")) {
                all.push(Target::Attr { dev: dev.into(), attr });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, driver: &str, old: &str, new: &str) -> Vec<Effect> {
        effects(&name.parse().unwrap(), Some(driver), (old, new))
    }

    #[test]
    fn real_nics_lose_their_link_and_memory_does_not() {
        assert!(of("e0/rings", "igb", "rx=256", "rx=512").contains(&Effect::LinkBounce));
        assert!(of("e0/link", "igb", "mtu=1500", "mtu=9000").contains(&Effect::LinkBounce));
        assert!(of("e0/features", "igb", "rx-lro=on", "rx-lro=off").contains(&Effect::LinkBounce));
        assert!(!of("e0/features", "igb", "rx-gro=on", "rx-gro=off").contains(&Effect::LinkBounce));
        assert!(
            !of("e0/coalesce", "igb", "rx-usecs=3", "rx-usecs=0").contains(&Effect::LinkBounce)
        );
        assert!(!of("v0/channels", "veth", "rx=1", "rx=2").contains(&Effect::LinkBounce));
        assert!(of("e0/link", "igb", "gro-max-size=1", "gro-max-size=2").is_empty());
    }

    #[test]
    fn a_protection_that_is_weakened_is_said() {
        let key = "net.ipv4.conf.all.rp_filter";
        assert_eq!(of(key, "", "1", "2"), [Effect::Security]);
        assert_eq!(of(key, "", "1", "0"), [Effect::Security]);
        assert!(of(key, "", "0", "1").is_empty());
        assert_eq!(of("net.core.busy_poll", "", "0", "50"), [Effect::BurnsCpu, Effect::HostWide]);
    }

    #[test]
    fn what_a_change_takes_along_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "sys/class/net/e0/queues/rx-0/rps_cpus",
            "sys/class/net/e0/queues/tx-0/xps_cpus",
            "sys/class/net/e0/device/msi_irqs/41",
            "sys/class/net/e0/upper_e0.1/ifindex",
            "sys/class/net/e0.1/upper_br0/ifindex",
            "sys/class/net/e0.1/lower_e0/ifindex",
            "sys/class/net/br0/lower_e0.1/ifindex",
            "proc/sys/net/ipv4/conf/e0.1/forwarding",
            "proc/sys/net/ipv6/conf/e0/forwarding",
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "0").unwrap();
        }
        let root = Root::tree(dir.path()).unwrap();
        let names = |name: &str| {
            let all = coupled(&name.parse().unwrap(), &root);
            all.iter().map(Target::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            names("e0/channels"),
            ["e0/rss", "e0/queues/rx-0/rps_cpus", "e0/queues/tx-0/xps_cpus", "irq/41"]
        );
        assert_eq!(names("e0/gro_flush_timeout"), ["e0/napi-0"]);
        assert_eq!(
            names("net.ipv4.ip_forward"),
            [
                "/proc/sys/net/ipv4/conf/e0.1/forwarding",
                "net.ipv4.conf.all.accept_redirects",
                "e0.1/features"
            ]
        );
        assert_eq!(names("e0/link"), ["e0/features", "e0.1/link", "br0/link"]);
        assert_eq!(names("br0/features"), ["e0.1/features", "e0/features"]);
        assert_eq!(names("net.ipv6.conf.all.forwarding"), ["net.ipv6.conf.e0.forwarding"]);
        assert!(names("net.ipv6.conf.all.proxy_ndp").is_empty());
        assert_eq!(
            names("net.ipv4.conf.default.rp_filter"),
            ["/proc/sys/net/ipv4/conf/e0.1/rp_filter"]
        );
        assert!(names("net.core.rmem_max").is_empty());
    }
}
