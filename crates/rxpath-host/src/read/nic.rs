//! Network devices as the kernel tells them over netlink, ioctl and bpf(2): all of it, typed, each fact with its gap.
//!
//! The question it answers: *what does the kernel say of this device beyond what its files say?* On the running
//! host the kernel is asked; over a captured tree the recorded answers are read from `netlink/device/NAME.json`
//! ([`crate::lab::capture`]). Nothing here changes or judges. What sysfs says stands in [`crate::read::sysfs::device`].

pub mod losses;
mod read;
mod recorded;
pub mod shared_port;

pub use read::{Qdiscs, Reader};
pub use recorded::{HOST_PATH, device_path, load, load_host, parse_device, parse_host};

use std::collections::BTreeMap;

use rxpath_core::{Fact, IntoMap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read::ioctl::{DriverInfo, FlowKind, FlowRules, HashFields, StampConfig};
use crate::read::netlink::XdpProgram;
use crate::read::netlink::audit::Audit;
use crate::read::netlink::ethtool::{
    Channels, Coalesce, Eee, Features, Fec, LinkModes, LinkState, Pause, Port, PrivateFlags, Rings,
    Rss, StandardStats, Timestamping,
};
use crate::read::netlink::neigh::NeighbourTable;
use crate::read::netlink::netdev::{Napi, PagePool, Queue, QueueStats, XdpAbilities};
use crate::read::netlink::netfilter::{Conntrack, Hook};
use crate::read::netlink::nft_tables::{NftChain, NftTable};
use crate::read::netlink::qdisc::QdiscLimit;
use crate::read::sysfs::device;
use crate::read::tcx::Tcx;
use crate::{HostError, Root};

/// One device. Its hardware address is not kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Nic {
    /// What rtnetlink says.
    pub link: Fact<LinkFacts>,
    /// Driver and firmware.
    pub driver: Fact<DriverInfo>,
    /// Offload features by the kernel's names.
    pub features: Fact<Features>,
    /// Queue counts.
    pub channels: Fact<Channels>,
    /// Ring sizes.
    pub rings: Fact<Rings>,
    /// Interrupt coalescing of the device.
    pub coalesce: Fact<Coalesce>,
    /// Interrupt coalescing of each queue.
    pub queue_coalesce: Fact<Vec<Coalesce>>,
    /// Pause frames.
    pub pause: Fact<Pause>,
    /// Energy-Efficient Ethernet.
    pub eee: Fact<Eee>,
    /// Forward error correction.
    pub fec: Fact<Fec>,
    /// Switches of the driver's own.
    pub private_flags: Fact<PrivateFlags>,
    /// Speed, duplex, modes.
    pub link_modes: Fact<LinkModes>,
    /// Whether there is a link, and why not.
    pub link_state: Fact<LinkState>,
    /// Kind of port.
    pub port: Fact<Port>,
    /// What it can stamp.
    pub timestamping: Fact<Timestamping>,
    /// What it stamps.
    pub stamp_config: Fact<StampConfig>,
    /// Indirection table, key, hash function.
    pub rss: Fact<Rss>,
    /// Numbers of additional RSS contexts.
    pub rss_contexts: Fact<Vec<u32>>,
    /// Which fields are hashed of each kind of flow.
    pub flow_hash: BTreeMap<FlowKind, Fact<HashFields>>,
    /// Flow rules.
    pub flow_rules: Fact<FlowRules>,
    /// Driver statistics by the driver's names, in its order.
    pub driver_stats: Fact<Vec<(String, u64)>>,
    /// Statistics that the standards define.
    pub standard_stats: Fact<StandardStats>,
    /// XDP abilities.
    pub xdp: Fact<XdpAbilities>,
    /// Queues and their NAPI instances.
    pub queues: Fact<Vec<Queue>>,
    /// NAPI instances and their interrupts.
    pub napis: Fact<Vec<Napi>>,
    /// Statistics of each queue.
    pub queue_stats: Fact<Vec<QueueStats>>,
    /// BPF programs that tcx runs.
    pub tcx: Fact<Tcx>,
    /// Queueing disciplines, the ingress one too.
    pub qdiscs: Fact<Vec<QdiscFacts>>,
}

/// A queueing discipline of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QdiscFacts {
    /// `tbf`, `fq`, `mq`, `noqueue`, `ingress`, `clsact`.
    pub kind: String,
    /// Whether it is the root of what the device sends.
    pub is_root: bool,
    /// How much may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<QdiscLimit>,
    /// What a token bucket lets pass, in bits a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Packets that went through, or that filters of an ingress one saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_total: Option<u64>,
    /// Packets dropped; wraps at 32 bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drops_total: Option<u64>,
    /// Times that a packet had to wait for its rate; wraps at 32 bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlimits_total: Option<u64>,
}

/// The other end of a veth, or the device below one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OtherEnd {
    /// Its index, in its own namespace.
    pub ifindex: u32,
    /// Whether that is another namespace.
    pub is_elsewhere: bool,
    /// MTU in bytes.
    pub mtu_bytes: u32,
}

/// What rtnetlink says of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkFacts {
    /// Index in its namespace.
    pub ifindex: u32,
    /// Whether it is administratively up.
    pub is_up: bool,
    /// `IFF_*`.
    pub flags: u32,
    /// Driver kind where rtnetlink knows it: `veth`, `bridge`; `None` for hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// MTU in bytes.
    pub mtu_bytes: u32,
    /// Smallest and largest MTU that the driver takes, in bytes; 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu_range_bytes: Option<(u32, u32)>,
    /// Transmit queues that exist.
    pub tx_queues_count: u32,
    /// Receive queues that exist.
    pub rx_queues_count: u32,
    /// Root qdisc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<String>,
    /// Whether it has a carrier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carrier: Option<bool>,
    /// Index of the bridge, bond or team that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_ifindex: Option<u32>,
    /// How many want every packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promiscuity_count: Option<u32>,
    /// How many want every multicast packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allmulti_count: Option<u32>,
    /// Largest packet that is handed to the driver for segmentation, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gso_max_bytes: Option<u32>,
    /// Most that the driver takes for segmentation, in bytes (5.19).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tso_max_bytes: Option<u32>,
    /// The other end of a veth, or the device below; `None` where there is none or it may not be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_end: Option<OtherEnd>,
    /// Largest packet that GRO builds, in bytes (5.19).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gro_max_bytes: Option<u32>,
    /// The same for IPv4, in bytes (6.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gro_ipv4_max_bytes: Option<u32>,
    /// XDP programs on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub xdp_programs: Vec<XdpProgram>,
}

/// What netlink reports of the whole namespace, and of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostAnswers {
    /// Functions on netfilter's hooks, in the order in which they are called.
    pub netfilter_hooks: Fact<Vec<Hook>>,
    /// Tables of nftables.
    pub nft_tables: Fact<Vec<NftTable>>,
    /// Chains of nftables on its hooks.
    pub nft_chains: Fact<Vec<NftChain>>,
    /// Tables of neighbours.
    pub neighbour_tables: Fact<Vec<NeighbourTable>>,
    /// Counters of connection tracking.
    pub conntrack: Fact<Conntrack>,
    /// Pools of receive buffers.
    pub page_pools: Fact<Vec<PagePool>>,
    /// The audit system.
    pub audit: Fact<Audit>,
    /// Size of a page (sysconf(3)).
    pub page_bytes: Fact<u64>,
}

/// Every device of a host by name: asked from the kernel when `root` is the running host, read from the records when
/// it is a captured tree.
///
/// **Errors** when the devices can't be listed; what goes wrong with one device is its gaps.
pub fn all(root: &Root) -> Result<BTreeMap<String, Nic>, HostError> {
    // Before the devices: an instant near to that of the counters in /proc, however long drivers take.
    let qdiscs = if root.is_live() { Some(Reader::open()?.qdiscs()) } else { None };
    let mut nics = named(root, &device::names(root)?)?;
    if let Some(qdiscs) = qdiscs {
        for nic in nics.values_mut() {
            nic.qdiscs = qdiscs.of(nic);
        }
    }
    Ok(nics)
}

/// These devices, each asked or recorded as in [`all`], but of the running host without queueing disciplines.
///
/// **Errors** when the kernel gives no netlink socket at all.
pub fn named(root: &Root, names: &[String]) -> Result<BTreeMap<String, Nic>, HostError> {
    let mut reader = if root.is_live() { Some(Reader::open()?) } else { None };
    let answers = names.iter().map(|name| {
        let nic = match reader.as_mut() {
            Some(reader) => reader.device(name),
            None => load(root, name).unwrap_or_else(|e| Nic::all_gaps(&e.to_string())),
        };
        (name.clone(), nic)
    });
    Ok(answers.into_map())
}

/// What netlink reports of the whole namespace, asked or recorded as in [`all`].
pub fn host(root: &Root, devices: &[String]) -> HostAnswers {
    let answers = if root.is_live() {
        Reader::open().map(|mut reader| reader.host(devices))
    } else {
        load_host(root)
    };
    answers.unwrap_or_else(|error| recorded::all_gaps(&error.to_string()))
}
