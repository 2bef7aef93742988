//! `/sys/class/net/DEV`: attributes, queues with their steering masks, statistics.
//!
//! **Source** net/core/net-sysfs.c; Documentation/ABI/testing/sysfs-class-net and -queues, -statistics.
//! **Caveat** a sysfs shows the namespace that it was mounted in, see [`Root::thread_netns`].

use std::collections::BTreeMap;

use rxpath_core::{CpuList, Fact, IntoMap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::fact;
use crate::parse::{ParseError, shorten};
use crate::{HostError, Root};

const NET: &str = "/sys/class/net";

/// A network device as sysfs shows it. Its address is not read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SysfsDevice {
    /// Name.
    pub name: String,
    /// Interface index.
    pub ifindex: Fact<u32>,
    /// Index of the other end or the device below; its own when there is none.
    pub iflink: Fact<u32>,
    /// `up`, `down`, `unknown`, ...
    pub operstate: Fact<String>,
    /// MTU in bytes.
    pub mtu_bytes: Fact<u32>,
    /// Link speed in Mb/s; -1 when unknown.
    pub speed_mbps: Fact<i64>,
    /// Driver, NUMA node, threads and queues.
    #[serde(flatten)]
    pub steering: Steering,
    /// Length of the transmit queue in packets.
    pub tx_queue_len_packets: Fact<u32>,
    /// Empty polls before interrupts are enabled again (5.8 and later).
    pub napi_defer_hard_irqs: Fact<u32>,
    /// GRO flush and poll timer, in ns.
    pub gro_flush_timeout_ns: Fact<u64>,
    /// `statistics/*` by name (`rtnl_link_stats64`).
    pub statistics: BTreeMap<String, u64>,
}

/// A receive queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RxQueue {
    /// Number.
    pub index: u32,
    /// CPUs that RPS spreads to; empty is off.
    pub rps_cpus: Fact<CpuList>,
    /// Entries of the queue's flow table (RFS).
    pub rps_flow_count: Fact<u64>,
}

/// A transmit queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TxQueue {
    /// Number.
    pub index: u32,
    /// CPUs that use it (XPS); devices with one queue have none (`ENOENT`).
    pub xps_cpus: Fact<CpuList>,
}

/// A bitmap of sysfs, `00000000,00000003`, as a CPU list.
///
/// **Errors** what is not groups of at most 8 hexadecimal digits.
pub fn parse_mask(text: &str) -> Result<CpuList, ParseError> {
    let groups: Vec<&str> = text.trim().split(',').collect();
    let mut cpus = Vec::new();
    for (at, group) in groups.iter().rev().enumerate() {
        let bits = Some(group)
            .filter(|group| group.len() <= 8)
            .and_then(|group| u32::from_str_radix(group, 16).ok())
            .ok_or_else(|| {
                ParseError::new(1, format!("`{}` is no bitmap", shorten(text.trim())))
            })?;
        cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| at as u32 * 32 + bit));
    }
    Ok(CpuList(cpus))
}

/// Names of the devices.
pub fn names(root: &Root) -> Result<Vec<String>, HostError> {
    // bonding_masters is a file among the directories.
    let is_device = |name: &String| is_name(name) && root.is_dir(&format!("{NET}/{name}"));
    Ok(root.list(NET)?.into_iter().filter(is_device).collect())
}

/// Whether a device can have this name (net/core/dev.c `dev_valid_name`): a captured tree may hold any.
fn is_name(name: &str) -> bool {
    const IFNAMSIZ: usize = 16;
    !name.is_empty()
        && name.len() < IFNAMSIZ
        && !matches!(name, "." | "..")
        && !name.contains(|c: char| c == '/' || c == ':' || c.is_ascii_whitespace() || c == '\u{b}')
}

/// Reads one device.
///
/// **Errors** [`HostError::Missing`] when there is no such device; an attribute that it lacks is a gap.
pub fn read(root: &Root, name: &str) -> Result<SysfsDevice, HostError> {
    let base = base(root, name)?;
    let path = |attribute: &str| format!("{base}/{attribute}");
    Ok(SysfsDevice {
        name: name.to_owned(),
        ifindex: fact(root.number(&path("ifindex"))),
        iflink: fact(root.number(&path("iflink"))),
        operstate: fact(root.value(&path("operstate"))),
        mtu_bytes: fact(root.number(&path("mtu"))),
        speed_mbps: fact(root.number(&path("speed"))),
        steering: steering(root, name)?,
        tx_queue_len_packets: fact(root.number(&path("tx_queue_len"))),
        napi_defer_hard_irqs: fact(root.number(&path("napi_defer_hard_irqs"))),
        gro_flush_timeout_ns: fact(root.number(&path("gro_flush_timeout"))),
        statistics: statistics_of(root, name),
    })
}

/// What a device's packets are spread by, and whose it is: the part of it that a reader of queues looks at again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steering {
    /// Driver's name.
    pub driver: Fact<String>,
    /// NUMA node of the device; -1 when the platform does not say.
    pub numa_node: Fact<i32>,
    /// NAPI in kernel threads: 0 or 1 (5.12 and later).
    pub threaded: Fact<u32>,
    /// Receive queues.
    pub rx_queues: Vec<RxQueue>,
    /// Transmit queues.
    pub tx_queues: Vec<TxQueue>,
}

/// The queues of a device with their masks.
///
/// **Errors** as [`read`].
pub fn steering(root: &Root, name: &str) -> Result<Steering, HostError> {
    let base = base(root, name)?;
    let path = |attribute: &str| format!("{base}/{attribute}");
    let driver = root.link(&path("device/driver"));
    let mask = |file: String| fact(root.parsed(&path(&file), parse_mask));
    Ok(Steering {
        driver: fact(
            driver.map(|to| to.file_name().unwrap_or_default().to_string_lossy().into_owned()),
        ),
        numa_node: fact(root.number(&path("device/numa_node"))),
        threaded: fact(root.number(&path("threaded"))),
        rx_queues: receive_queues(root, name)
            .map(|index| RxQueue {
                index,
                rps_cpus: mask(format!("queues/rx-{index}/rps_cpus")),
                rps_flow_count: fact(
                    root.number(&path(&format!("queues/rx-{index}/rps_flow_cnt"))),
                ),
            })
            .collect(),
        tx_queues: queues(root, name, "tx-")
            .map(|index| TxQueue { index, xps_cpus: mask(format!("queues/tx-{index}/xps_cpus")) })
            .collect(),
    })
}

/// The device's directory.
fn base(root: &Root, name: &str) -> Result<String, HostError> {
    let base = format!("{NET}/{name}");
    if name.is_empty() || name.contains('/') || name.starts_with('.') || !root.is_dir(&base) {
        return Err(HostError::Missing { path: root.path(&base) });
    }
    Ok(base)
}

/// The receive queues of a device, in order.
pub fn receive_queues(root: &Root, name: &str) -> impl Iterator<Item = u32> {
    queues(root, name, "rx-")
}

/// The devices above (`upper_`) or below (`lower_`) a device, and those above or below them.
///
/// **Source** the links that net/core/dev.c `netdev_adjacent_sysfs_add` makes.
pub fn stacked(root: &Root, name: &str, prefix: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut next = vec![name.to_owned()];
    while let Some(name) = next.pop() {
        let entries = root.list(&format!("{NET}/{name}")).unwrap_or_default();
        for other in entries.iter().filter_map(|entry| entry.strip_prefix(prefix)) {
            if other != name && !found.iter().any(|known| known == other) {
                found.push(other.to_owned());
                next.push(other.to_owned());
            }
        }
    }
    found
}

fn queues(root: &Root, name: &str, prefix: &str) -> impl Iterator<Item = u32> + use<> {
    let names = root.list(&format!("{NET}/{name}/queues")).unwrap_or_default();
    let mut numbers: Vec<u32> =
        names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.into_iter()
}

/// Its statistics by name; empty where they cannot be listed.
pub fn statistics_of(root: &Root, name: &str) -> BTreeMap<String, u64> {
    let dir = format!("{NET}/{name}/statistics");
    let read = |name: String| root.number(&format!("{dir}/{name}")).ok().map(|it| (name, it));
    root.list(&dir).unwrap_or_default().into_iter().filter_map(read).into_map()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn masks_are_read() {
        assert_eq!(parse_mask("00000000\n").unwrap().0, Vec::<u32>::new());
        assert_eq!(parse_mask("3").unwrap().0, [0, 1]);
        assert_eq!(parse_mask("00000002,00000001").unwrap().0, [0, 33]);
        for text in ["", "x", "1,,2", "123456789", "-1"] {
            assert!(parse_mask(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_loopback_device_is_read() {
        let root = Root::host();
        assert!(names(&root).unwrap().contains(&"lo".to_owned()));
        let lo = read(&root, "lo").unwrap();
        assert_eq!(lo.mtu_bytes, Fact::ok(65_536));
        assert!(lo.steering.driver.gap().is_some(), "lo has no driver, and that is said");
        assert!(lo.statistics.contains_key("rx_packets"));
        assert_eq!(lo.steering.rx_queues[0].rps_cpus.value().map(|cpus| cpus.0.len()), Some(0));
        for name in ["../cpu", "", "no-such-dev", "."] {
            assert!(matches!(read(&root, name), Err(HostError::Missing { .. })), "{name}");
        }
    }

    #[test]
    fn devices_above_and_below_are_found_through_those_between() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "br0/lower_bond0",
            "bond0/lower_eth0",
            "bond0/lower_eth1",
            "eth0/upper_bond0",
            "bond0/upper_br0",
        ] {
            std::fs::create_dir_all(dir.path().join("sys/class/net").join(path)).unwrap();
        }
        let root = Root::tree(dir.path()).unwrap();
        let mut below = stacked(&root, "br0", "lower_");
        below.sort_unstable();
        assert_eq!(below, ["bond0", "eth0", "eth1"]);
        assert_eq!(stacked(&root, "eth0", "upper_"), ["bond0", "br0"]);
        assert!(stacked(&root, "eth0", "lower_").is_empty());
    }

    proptest! {
        #[test]
        fn what_the_kernel_would_write_reads_back(cpus in proptest::collection::btree_set(0u32..300, 0..40)) {
            let list = CpuList(cpus.into_iter().collect());
            prop_assert_eq!(parse_mask(&list.to_mask()).unwrap(), list);
        }
    }
}
