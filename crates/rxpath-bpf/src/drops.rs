//! Packets that the kernel dropped: where, why, from which device, for which socket and process.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use rxpath_core::SortFew;
use rxpath_host::{HostError, Root};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::clock::monotonic_ns;
use crate::bytes::Fields;
use crate::cost::COSTS;
use crate::filter::Filter;
use crate::names::{Places, Reasons, socket_owners, transport_name};
use crate::object::{
    LOST, Loaded, MapEntry, ObjectSpec, WANTED, compiled, enumerators, map, parameters, program,
};
use crate::probe::Probe;

pub(crate) static SPEC: ObjectSpec = ObjectSpec {
    maps: &[map("drops", 32, 72), map("folded", 32, 72), LOST, WANTED, COSTS],
    programs: &[program("skb/kfree_skb", "drops", true)],
    ..compiled!("drops")
};

/// Parameters of the tracepoint, its own context included, when it passes the receiving socket: (context, skb,
/// location, reason, rx_sk) since 6.11 (c53795d48ee8).
const WITH_SOCKET: usize = 5;

/// The running probe.
#[derive(Debug)]
pub struct Drops {
    loaded: Loaded,
    reasons: Reasons,
    /// Read once, at the first drop.
    places: RefCell<Places>,
    /// The processes that had a socket when its first drop was seen.
    owners: RefCell<HashMap<u64, Vec<String>>>,
    /// How long it counted, up to the last pause, and since when it counts again.
    counted: Cell<(Duration, Option<Instant>)>,
}

/// The rows of the maps at one moment.
#[derive(Debug)]
pub struct DropRows {
    drops: Vec<MapEntry>,
    folded: Vec<MapEntry>,
}

/// Drops of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkbDrop {
    /// The kernel function that dropped, with the offset in it.
    pub place: String,
    /// The kernel's drop reason: `SOCKET_RCVBUFF`. **Source** `enum skb_drop_reason` of the running kernel's BTF.
    pub reason: String,
    /// Device; none where the packet had no device any more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dev: Option<String>,
    /// Device index in its namespace.
    pub ifindex: u32,
    /// Inode of the network namespace.
    pub netns: u32,
    /// Network protocol: `ip`, `ipv6`, `arp` or its EtherType; `none` if the packet has none.
    pub protocol: String,
    /// Transport protocol: `udp`, `tcp`, `icmp` or its number; none where the packet has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub transport: Option<String>,
    /// The packet's destination port; 0 where it has none, and in rows that are `folded`.
    pub port: u16,
    /// Inode of the socket that it was for; 0 where none was found.
    pub socket_inode: u64,
    /// Processes that had this socket, as `name (pid)`, when its drops were first read.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub processes: Vec<String>,
    /// The task in whose time the last one was dropped: the interrupted one, where a softirq dropped.
    pub dropped_in: String,
    /// Drops of many ports and sockets together, which did not fit in the map one by one.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub folded: bool,
    /// Packets (aggregates of GSO and GRO count as one).
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the first was dropped, CLOCK_MONOTONIC.
    pub first_ns: u64,
    /// When the last was.
    pub last_ns: u64,
}

impl Probe for Drops {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }
}

impl Drops {
    /// Loads, attaches, and begins to count.
    pub fn start(filter: &Filter) -> Result<Self, HostError> {
        let mut drops = Self::load(filter)?;
        drops.attach()?;
        drops.begin()?;
        Ok(drops)
    }

    /// Loads without attaching.
    pub fn load(filter: &Filter) -> Result<Self, HostError> {
        crate::can_run(&Root::host()).require("trace drops")?;
        let with_socket = parameters("kfree_skb")? >= WITH_SOCKET;
        let words = [u32::from(with_socket), filter.ifindex, filter.netns, u32::from(filter.port)];
        let mut constants: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        constants.extend(filter.owner());
        constants.extend(filter.wanted_cpus());
        let loaded = Loaded::load(&SPEC, &constants, &[filter.room()])?;
        filter.admit(&loaded)?;
        let (places, owners) = (RefCell::new(Places::open(&Root::host())), RefCell::default());
        let reasons = Reasons::from_pairs(enumerators("skb_drop_reason")?);
        Ok(Self { loaded, reasons, places, owners, counted: Cell::default() })
    }

    /// Puts the program into place. It counts from [`Drops::begin`] on.
    pub fn attach(&mut self) -> Result<(), HostError> {
        self.loaded.attach()
    }

    /// Begins to count.
    pub fn begin(&self) -> Result<(), HostError> {
        self.loaded.begin()?;
        let (counted, since) = self.counted.get();
        self.counted.set((counted, since.or_else(|| Some(Instant::now()))));
        Ok(())
    }

    /// Counts nothing until [`Drops::begin`].
    pub fn pause(&self) -> Result<(), HostError> {
        self.counted.set((self.counted(), None));
        self.loaded.pause()
    }

    /// How long it counted so far: divide its counts by this. The caller that duty-cycles it does other work between
    /// the cycles, for milliseconds on a busy machine.
    pub fn counted(&self) -> Duration {
        let (counted, since) = self.counted.get();
        counted + since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Takes the program from its hook. It can be put into place again.
    pub fn detach(&mut self) {
        self.loaded.detach_some(&["kfree_skb"]);
    }

    /// Packets that were counted so far, less those forgotten.
    pub fn packets(&self) -> Result<u64, HostError> {
        let of = |map: &str| -> Result<u64, HostError> {
            let entries = self.loaded.entries(map)?;
            Ok(entries.iter().map(|(_, value)| Fields::of(value).u64()).sum())
        };
        Ok(of("drops")? + of("folded")?)
    }

    /// Removes rows without a drop for this long from the kernel, so that a trace over days keeps room for new rows.
    /// Later drops of the same kind are counted from 0.
    pub fn forget(&self, quiet: Duration) -> Result<(), HostError> {
        let since =
            monotonic_ns().saturating_sub(u64::try_from(quiet.as_nanos()).unwrap_or(u64::MAX));
        for map in ["drops", "folded"] {
            for (key, value) in self.loaded.entries(map)? {
                if last_ns(&value) < since {
                    self.loaded.take(map, &key)?;
                }
            }
        }
        Ok(())
    }

    /// Everything since the start, the most packets first: [`Drops::rows`] by name.
    pub fn read(&self) -> Result<Vec<SkbDrop>, HostError> {
        self.named(&self.rows()?)
    }

    /// What was counted up to now, without a search for names: for the ends of a window.
    pub fn rows(&self) -> Result<DropRows, HostError> {
        Ok(DropRows {
            drops: self.loaded.entries("drops")?,
            folded: self.loaded.entries("folded")?,
        })
    }

    /// These rows, the most packets first.
    ///
    /// **Cost** reads `/proc/kallsyms` (some 30 ms) when a place drops for the first time, and the descriptors of all
    /// processes when a socket does.
    pub fn named(&self, rows: &DropRows) -> Result<Vec<SkbDrop>, HostError> {
        let DropRows { drops: entries, folded } = rows;
        let mut places = self.places.borrow_mut();
        places.learn(entries.iter().chain(folded).map(|(key, _)| Fields::of(key).u64()))?;
        let mut owners = self.owners.borrow_mut();
        let inodes: BTreeSet<u64> =
            entries.iter().map(|(key, _)| inode(key)).filter(|inode| *inode != 0).collect();
        // Of removed rows.
        owners.retain(|inode, _| inodes.contains(inode));
        let new: Vec<u64> =
            inodes.into_iter().filter(|inode| !owners.contains_key(inode)).collect();
        if !new.is_empty() {
            let found = socket_owners(&Root::host(), &new);
            owners.extend(new.into_iter().map(|inode| (inode, Vec::new())));
            owners.extend(found);
        }
        let mut drops: Vec<SkbDrop> =
            entries.iter().map(|(key, value)| row(key, value, &places, &self.reasons)).collect();
        let folded = folded.iter().map(|(key, value)| row(key, value, &places, &self.reasons));
        drops.extend(folded.map(|row| SkbDrop { folded: true, ..row }));
        for drop in &mut drops {
            drop.processes = owners.get(&drop.socket_inode).cloned().unwrap_or_default();
        }
        drops.sort_few_by(|a, b| b.packets.cmp(&a.packets).then_with(|| a.place.cmp(&b.place)));
        Ok(drops)
    }
}

/// `struct drop_key`: the socket, behind the place.
fn inode(key: &[u8]) -> u64 {
    Fields::of(key).array::<2>()[1]
}

/// `struct drop_row`: when the last one was dropped.
fn last_ns(value: &[u8]) -> u64 {
    Fields::of(value).array::<4>()[3]
}

/// An EtherType. **Source** include/uapi/linux/if_ether.h; a packet that the kernel made may have none.
fn protocol_name(ether_type: u16) -> String {
    match ether_type {
        0 => "none".into(),
        0x0800 => "ip".into(),
        0x86dd => "ipv6".into(),
        0x0806 => "arp".into(),
        other => format!("{other:#06x}"),
    }
}

/// `struct drop_key` and `struct drop_row`.
fn row(key: &[u8], value: &[u8], places: &Places, reasons: &Reasons) -> SkbDrop {
    let mut k = Fields::of(key);
    let (location, socket_inode) = (k.u64(), k.u64());
    let (reason, ifindex, netns, protocol, port) = (k.u32(), k.u32(), k.u32(), k.u16(), k.u16());
    let mut f = Fields::of(value);
    let [packets, bytes, first_ns, last_ns] = f.array::<4>();
    let (pid, transport) = (f.u32(), f.u32());
    let (comm, dev) = (f.text(16), f.text(16));
    SkbDrop {
        place: places.name(location),
        reason: reasons.name(reason),
        dev: Some(dev).filter(|dev| !dev.is_empty()),
        ifindex,
        netns,
        protocol: protocol_name(protocol),
        transport: transport_name(transport),
        port,
        socket_inode,
        folded: false,
        processes: Vec::new(),
        dropped_in: format!("{comm} ({pid})"),
        packets,
        bytes,
        first_ns,
        last_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_is_read_by_place() {
        let mut key = [0xffff_ffff_8100_0010_u64.to_ne_bytes(), 77u64.to_ne_bytes()].concat();
        for word in [6u32, 3, 4_026_531_840] {
            key.extend(word.to_ne_bytes());
        }
        key.extend([0x0800u16.to_ne_bytes(), 4321u16.to_ne_bytes()].concat());
        let mut value: Vec<u8> =
            [9u64, 540, 100, 200].iter().flat_map(|n| n.to_ne_bytes()).collect();
        value.extend([42u32.to_ne_bytes(), 17u32.to_ne_bytes()].concat());
        value.extend(b"victim\0\0\0\0\0\0\0\0\0\0veth0\0\0\0\0\0\0\0\0\0\0\0");
        let reasons = Reasons::from_pairs([(6, "SKB_DROP_REASON_SOCKET_RCVBUFF")]);
        let drop = row(&key, &value, &Places::default(), &reasons);
        assert_eq!(drop.place, crate::names::UNNAMED);
        assert_eq!((drop.reason.as_str(), drop.port, drop.packets), ("SOCKET_RCVBUFF", 4321, 9));
        assert_eq!((drop.protocol.as_str(), drop.transport.as_deref()), ("ip", Some("udp")));
        assert_eq!((drop.dev.as_deref(), drop.dropped_in.as_str()), (Some("veth0"), "victim (42)"));
        assert_eq!((inode(&key), last_ns(&value)), (77, 200));
    }

    #[test]
    fn a_packet_without_a_protocol_has_no_number_for_it() {
        let named = [0, 0x0800, 0x88cc].map(protocol_name);
        assert_eq!(named, ["none", "ip", "0x88cc"]);
    }
}
