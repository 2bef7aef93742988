//! What the devices of this namespace received and lost, loopback left out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use rxpath_core::IntoMap;
use rxpath_host::read::netlink::NetworkLink;
use rxpath_record::counters::name;

use crate::live::Around;
use crate::lowest::{is_loopback, lowest};

/// What one device counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    packets: u64,
    /// Found no free descriptor, by each of [`name::RING`].
    ring: [u64; name::RING.len()],
    /// Damaged: length, checksum of the frame, alignment (`rx.errors`).
    damaged: u64,
    /// `rx.dropped`: refused behind the ring.
    dropped: u64,
}

impl Counts {
    fn of(link: &NetworkLink) -> Self {
        let stat = |name: &str| link.stat(name).unwrap_or(0);
        Self {
            packets: stat("rx.packets"),
            ring: name::RING.map(stat),
            damaged: stat("rx.errors"),
            dropped: stat("rx.dropped"),
        }
    }

    /// What moved since; nothing where a counter was set back.
    fn since(self, before: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            ring: std::array::from_fn(|at| self.ring[at].saturating_sub(before.ring[at])),
            damaged: self.damaged.saturating_sub(before.damaged),
            dropped: self.dropped.saturating_sub(before.dropped),
        }
    }

    /// Packets without a free descriptor: some drivers count the same ones under two names.
    fn without_descriptor(self) -> u64 {
        self.ring.into_iter().max().unwrap_or(0)
    }
}

/// Which devices there are and how they stand: settings are judged by that.
#[derive(Debug, Default)]
struct Standing {
    devices: BTreeMap<u32, Device>,
    /// How often that changed.
    changes: u64,
}

/// How a device stands.
#[derive(Debug, PartialEq, Eq)]
struct Device {
    name: String,
    /// See [`NetworkLink::state`].
    state: u32,
    /// A carrier that was lost and is back may have another speed.
    carrier_changes: Option<u32>,
}

impl Standing {
    fn of<'a>(links: impl Iterator<Item = &'a NetworkLink>) -> Self {
        let device = |link: &NetworkLink| Device {
            name: link.name.clone(),
            state: link.state(),
            carrier_changes: link.carrier_changes,
        };
        Self { devices: links.map(|link| (link.index, device(link))).into_map(), changes: 0 }
    }

    /// The devices as they are now.
    fn becomes(&mut self, now: Self) {
        self.changes += u64::from(self.devices != now.devices);
        self.devices = now.devices;
    }
}

/// The devices at the beginning of a window.
#[derive(Debug)]
pub struct Links {
    standing: Standing,
    before: BTreeMap<u32, Counts>,
    /// When each device was first seen, for totals.
    first: BTreeMap<u32, Counts>,
    at: Instant,
}

/// A device that lost packets since watching began, before any kernel function saw them.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    /// Its name.
    pub device: String,
    /// Which counters.
    pub source: &'static str,
    /// Why, in a word.
    pub reason: &'static str,
    /// Per second of the window.
    pub pps: f64,
    /// Since watching began.
    pub total: u64,
}

/// The devices over a window.
#[derive(Clone, Debug, Default)]
pub struct LinkRates {
    /// Packets that the lowest devices took, per second; after the driver's merging (LRO), before GRO.
    pub received_pps: f64,
    /// Without a free descriptor, per second.
    pub ring_pps: f64,
    /// Damaged, per second.
    pub damaged_pps: f64,
    /// `rx.dropped` of the same devices, per second: no protocol wanted them, or no memory; the backlog's drops once more.
    pub dropped_pps: f64,
    /// The same since watching began.
    pub dropped_total: u64,
    /// Each device's packets, per second of the window.
    pub by_device: BTreeMap<String, f64>,
    /// Devices of kind `veth`, which sysfs has no driver for.
    pub veths: BTreeSet<String>,
    /// Packets that each device counted since it was made.
    pub total_by_device: BTreeMap<String, u64>,
    /// Rows for the drops: what no tracepoint sees.
    pub lost: Vec<Lost>,
    /// Why there is nothing.
    pub gap: Option<String>,
}

impl Links {
    /// From the devices as they are at the beginning.
    pub fn start(around: &Around) -> Self {
        let counts = |link: &NetworkLink| (link.index, Counts::of(link));
        let before: BTreeMap<u32, Counts> =
            of(around).map_or_else(|_| BTreeMap::new(), |all| all.map(counts).into_map());
        let standing = of(around).map(Standing::of).unwrap_or_default();
        Self { standing, first: before.clone(), before, at: around.at }
    }

    /// In how many windows a device came, went, or changed its name or state.
    pub fn changes(&self) -> u64 {
        self.standing.changes
    }

    /// The rates of the window that ends now; a device that came or was reset in it counts from the next on.
    pub fn until(&mut self, around: &Around) -> LinkRates {
        let now = match of(around) {
            Ok(now) => now,
            Err(why) => return LinkRates { gap: Some(why), ..LinkRates::default() },
        };
        let span_s = around.at.duration_since(self.at).as_secs_f64().max(1e-3);
        self.at = around.at;
        self.standing.becomes(of(around).map(Standing::of).unwrap_or_default());
        let lowest = lowest(around.links.as_deref().unwrap_or_default());
        let mut rates = LinkRates::default();
        let mut counted = BTreeMap::new();
        for link in now {
            let counts = Counts::of(link);
            counted.insert(link.index, counts);
            let first = *self.first.entry(link.index).or_insert(counts);
            let moved = counts.since(self.before.get(&link.index).copied().unwrap_or(counts));
            rates.by_device.insert(link.name.clone(), moved.packets as f64 / span_s);
            if link.kind.as_deref() == Some("veth") {
                rates.veths.insert(link.name.clone());
            }
            rates.total_by_device.insert(link.name.clone(), counts.packets);
            if lowest.contains(&link.index) {
                rates.add(&link.name, moved, counts.since(first), span_s);
            }
        }
        self.first.retain(|index, _| counted.contains_key(index));
        self.before = counted;
        rates
    }
}

/// All devices but loopback.
fn of(around: &Around) -> Result<impl Iterator<Item = &NetworkLink>, String> {
    let links = around.links.as_ref().map_err(Clone::clone)?;
    Ok(links.iter().filter(|link| !is_loopback(link)))
}

impl LinkRates {
    fn add(&mut self, device: &str, moved: Counts, total: Counts, span_s: f64) {
        let per_s = |count: u64| count as f64 / span_s;
        self.received_pps += per_s(moved.packets);
        self.ring_pps += per_s(moved.without_descriptor());
        self.damaged_pps += per_s(moved.damaged);
        self.dropped_pps += per_s(moved.dropped);
        self.dropped_total += total.dropped;
        let kinds = [
            (
                moved.without_descriptor(),
                total.without_descriptor(),
                "no free descriptor",
                "rtnetlink rx missed, fifo or over errors",
            ),
            (
                moved.damaged,
                total.damaged,
                "damaged frame",
                "rtnetlink rx errors (length, CRC, frame)",
            ),
        ];
        for (moved, total, reason, source) in kinds {
            if total > 0 {
                let device = device.to_owned();
                self.lost.push(Lost { device, source, reason, pps: per_s(moved), total });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_come_go_or_change_their_state_are_counted_by_window() {
        const UP: u32 = 1;
        const RUNNING: u32 = 1 << 6;
        const PROMISCUOUS: u32 = 1 << 8;
        let link = |index, flags, carriers| NetworkLink {
            index,
            flags,
            name: format!("eth{index}"),
            carrier_changes: Some(carriers),
            ..NetworkLink::default()
        };
        let mut standing = Standing::of([link(2, UP, 0)].iter());
        for (links, changes, what) in [
            (vec![link(2, UP, 0)], 0, "as before"),
            (vec![link(2, UP | PROMISCUOUS, 0)], 0, "tcpdump changes no setting"),
            (vec![link(2, UP | RUNNING, 0)], 1, "it is operational"),
            (vec![link(2, UP | RUNNING, 2)], 2, "the carrier was away within a window"),
            (vec![link(2, UP | RUNNING, 2), link(3, 0, 0), link(4, 0, 0)], 3, "two came"),
            (vec![link(2, UP | RUNNING, 2)], 4, "they went"),
            (
                vec![NetworkLink { name: "lan0".into(), ..link(2, UP | RUNNING, 2) }],
                5,
                "another name",
            ),
        ] {
            standing.becomes(Standing::of(links.iter()));
            assert_eq!(standing.changes, changes, "{what}");
        }
    }

    #[test]
    fn one_loss_under_two_names_counts_once_and_what_no_protocol_wanted_is_no_ring_loss() {
        let stats = vec![
            ("rx.packets", 10),
            ("rx.missed_errors", 4),
            ("rx.fifo_errors", 4),
            ("rx.errors", 2),
            ("rx.length_errors", 2),
            ("rx.dropped", 300),
        ];
        let counts = Counts::of(&NetworkLink { stats, ..NetworkLink::default() });
        assert_eq!(counts, Counts { packets: 10, ring: [4, 4, 0], damaged: 2, dropped: 300 });
        let mut rates = LinkRates::default();
        rates.add("eth0", counts, counts, 2.0);
        assert_eq!((rates.received_pps, rates.dropped_pps), (5.0, 150.0));
        assert_eq!((rates.ring_pps, rates.damaged_pps), (2.0, 1.0));
        let rows: Vec<(&str, u64)> = rates.lost.iter().map(|row| (row.reason, row.total)).collect();
        assert_eq!(rows, [("no free descriptor", 4), ("damaged frame", 2)]);
        assert_eq!(counts.since(Counts { packets: 99, ..counts }).packets, 0, "it was set back");
    }

    #[test]
    fn a_loss_counts_although_another_name_has_more_from_before() {
        let counts = |missed, fifo| {
            let stats = vec![("rx.missed_errors", missed), ("rx.fifo_errors", fifo)];
            Counts::of(&NetworkLink { stats, ..NetworkLink::default() })
        };
        let before = counts(1000, 20);
        assert_eq!(counts(1000, 50).since(before).without_descriptor(), 30);
        assert_eq!(counts(1030, 50).since(before).without_descriptor(), 30, "the same packets");
    }
}
