//! What a device's driver tells over netlink and ioctl: queues, rings, coalescing, RSS, offloads, link.
//!
//! A captured tree has no driver to ask: there each fact is absent with that reason, unless the capture holds it.

use std::collections::BTreeMap;

use rxpath_core::Fact;
use rxpath_host::HostError;
use rxpath_host::error::fact;
use rxpath_host::netlink::Netlink;
use rxpath_host::netlink::ethtool::{Channels, Features, Rings};
use rxpath_host::netlink::ioctl;
use rxpath_host::root::Root;

/// Driver and firmware.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// Name.
    pub name: String,
    /// Its version; the kernel's own since 5.x for drivers of the tree.
    pub version: String,
    /// Firmware's version.
    pub firmware: String,
    /// Where it sits: `0000:3b:00.0`.
    pub bus: String,
}

/// Interrupt coalescing; a part that the driver leaves out is `None`.
///
/// **Source** `ETHTOOL_A_COALESCE_*`, linux/ethtool_netlink.h.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coalesce {
    /// Microseconds from the first packet to the interrupt.
    pub rx_usecs: Option<u32>,
    /// Packets until the interrupt.
    pub rx_max_frames: Option<u32>,
    /// Microseconds from a transmission to its completion interrupt.
    pub tx_usecs: Option<u32>,
    /// Transmissions until the interrupt.
    pub tx_max_frames: Option<u32>,
    /// Moderation follows the load: `rx_usecs` is then a momentary value and no setting.
    pub adaptive_rx: Option<bool>,
    /// The same for transmission.
    pub adaptive_tx: Option<bool>,
    /// The timer restarts with each completion instead of each event (5.15).
    pub cqe_mode_rx: Option<bool>,
}

/// Receive-side scaling.
#[derive(Clone, Debug, PartialEq)]
pub struct Rss {
    /// `toeplitz`, `xor` or `crc32`; `None` when the driver does not say.
    pub function: Option<String>,
    /// Queue of each hash value: entry `hash % length`.
    pub table: Vec<u32>,
    /// The hash key in hexadecimal.
    pub key: Fact<String>,
    /// What is done to the fields before they are hashed (6.8).
    pub transformation: Option<String>,
}

/// Flow control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// Negotiated with the other end.
    pub autoneg: Option<bool>,
    /// Stops sending when the other end asks.
    pub rx: Option<bool>,
    /// Asks the other end to stop.
    pub tx: Option<bool>,
    /// Pause frames sent, where the driver counts them.
    pub tx_pause_packets: Option<u64>,
    /// Pause frames received, where the driver counts them.
    pub rx_pause_packets: Option<u64>,
}

/// Energy-Efficient Ethernet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Eee {
    /// Switched on.
    pub enabled: Option<bool>,
    /// In force on the link.
    pub active: Option<bool>,
}

/// What a device's driver tells.
#[derive(Clone, Debug)]
pub struct Nic {
    /// Driver and firmware.
    pub driver: Fact<Driver>,
    /// Offload features.
    pub features: Fact<Features>,
    /// Queue counts.
    pub channels: Fact<Channels>,
    /// Ring sizes.
    pub rings: Fact<Rings>,
    /// Interrupt coalescing.
    pub coalesce: Fact<Coalesce>,
    /// RSS table and key.
    pub rss: Fact<Rss>,
    /// Fields that RSS hashes by kind of packet: `udp4` → `sdfn`.
    pub hash_fields: BTreeMap<String, Fact<String>>,
    /// Flow control.
    pub pause: Fact<Pause>,
    /// Energy-Efficient Ethernet.
    pub eee: Fact<Eee>,
    /// Flow rules in force.
    pub flow_rules: Fact<u32>,
    /// Private flags of the driver.
    pub private_flags: Fact<BTreeMap<String, bool>>,
    /// The driver's own counters.
    pub counters: Fact<BTreeMap<String, u64>>,
}

impl Nic {
    /// A device about which nothing is known, and why.
    pub fn unknown(why: &str) -> Self {
        Self {
            driver: Fact::absent(why),
            features: Fact::absent(why),
            channels: Fact::absent(why),
            rings: Fact::absent(why),
            coalesce: Fact::absent(why),
            rss: Fact::absent(why),
            hash_fields: BTreeMap::new(),
            pause: Fact::absent(why),
            eee: Fact::absent(why),
            flow_rules: Fact::absent(why),
            private_flags: Fact::absent(why),
            counters: Fact::absent(why),
        }
    }
}

/// Where devices are asked.
pub(super) enum Source {
    /// The running kernel.
    Kernel(Box<Result<Netlink, HostError>>),
    /// A captured tree.
    Tree,
}

impl Source {
    pub(super) fn open(root: &Root) -> Self {
        if root.is_live() { Self::Kernel(Box::new(Netlink::generic())) } else { Self::Tree }
    }

    pub(super) fn read(&mut self, dev: &str) -> Nic {
        let netlink = match self {
            Self::Tree => return Nic::unknown("not in this captured tree"),
            Self::Kernel(netlink) => match netlink.as_mut() {
                Ok(netlink) => netlink,
                Err(error) => return Nic::unknown(&error.to_string()),
            },
        };
        let driver = ioctl::driver_info(dev).map(|info| Driver {
            name: info.driver,
            version: info.version,
            firmware: info.firmware,
            bus: info.bus,
        });
        Nic {
            driver: fact(driver),
            features: fact(netlink.features(dev)),
            channels: fact(netlink.channels(dev)),
            rings: fact(netlink.rings(dev)),
            counters: fact(ioctl::driver_stats(dev)).map(|all| all.into_iter().collect()),
            ..Nic::unknown("not read")
        }
    }
}
