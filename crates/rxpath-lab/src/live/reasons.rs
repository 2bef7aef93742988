//! What the kernel said when it dropped packets of this network namespace in the window: in addition to the counters.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

use rxpath_bpf::Probe;
use rxpath_bpf::drops::{Drop, Drops};
use rxpath_bpf::filter::Filter;
use rxpath_bpf::object::Loaded;
use rxpath_core::Side;
use rxpath_record::ledger::DropReason;

/// Reason, place, device, port.
type Key = (String, String, String, u16);

/// The running probe.
#[derive(Debug)]
pub(crate) struct Reasons {
    probe: Drops,
    begun: BTreeMap<Key, u64>,
}

fn counts(drops: Vec<Drop>) -> BTreeMap<Key, u64> {
    let mut all = BTreeMap::new();
    for drop in drops {
        let key = (drop.reason, drop.place, drop.dev.unwrap_or_default(), drop.port);
        *all.entry(key).or_insert(0) += drop.packets;
    }
    all
}

impl Reasons {
    /// Watches the drops of this network namespace; the reason where it can't.
    pub(crate) fn start() -> Result<Self, String> {
        let own =
            std::fs::metadata("/proc/thread-self/ns/net").map_err(|error| error.to_string())?;
        let filter = Filter { netns: own.ino() as u32, ..Filter::default() };
        let probe = Drops::start(&filter).map_err(|error| error.to_string())?;
        Ok(Self { probe, begun: BTreeMap::new() })
    }

    /// The object, for its cost.
    pub(super) fn loaded(&self) -> &Loaded {
        self.probe.loaded()
    }

    /// Drops that found no room.
    pub(super) fn lost(&self) -> u64 {
        self.probe.lost()
    }

    /// The window begins.
    pub(crate) fn begin(&mut self) {
        self.begun = self.probe.read().map(counts).unwrap_or_default();
    }

    /// The window ends: the most packets first.
    pub(crate) fn end(&self) -> Result<Vec<DropReason>, String> {
        let now = self.probe.read().map(counts).map_err(|error| error.to_string())?;
        let since = now.into_iter().map(|(key, count)| {
            let begun = self.begun.get(&key).copied().unwrap_or(0);
            let (reason, place, device, port) = key;
            let packets = count.saturating_sub(begun);
            DropReason { side: Side::Machine.to_string(), reason, place, device, port, packets }
        });
        let mut all: Vec<DropReason> = since.filter(|row| row.packets > 0).collect();
        all.sort_by(|a, b| b.packets.cmp(&a.packets).then_with(|| a.reason.cmp(&b.reason)));
        Ok(all)
    }
}
