//! What the kernel said when it dropped packets of this network namespace in the window: in addition to the counters.

use std::collections::BTreeMap;

use rxpath_bpf::drops::{DropRows, Drops, SkbDrop};
use rxpath_bpf::filter::Filter;
use rxpath_core::{PathSide, SortFew};
use rxpath_host::read::identity::network_namespace;
use rxpath_record::ledger::DropReason;

/// Reason, place, device, port.
type Key = (String, String, String, u16);

/// The running probe.
#[derive(Debug)]
pub(crate) struct Reasons {
    pub(super) probe: Drops,
    /// Rows at both ends of the window, where they could be read. Their names are looked up when the window is over: that takes
    /// 30 to 260 ms.
    begun: Option<DropRows>,
    ended: Result<DropRows, String>,
}

type Counts = BTreeMap<Key, u64>;

fn counts(drops: Vec<SkbDrop>) -> Counts {
    let mut all = Counts::new();
    for drop in drops {
        let key = (drop.reason, drop.place, drop.dev.unwrap_or_default(), drop.port);
        *all.entry(key).or_insert(0) += drop.packets;
    }
    all
}

impl Reasons {
    /// Watches the drops of this network namespace; the reason where it can't.
    pub(crate) fn start() -> Result<Self, String> {
        let probe = network_namespace()
            .and_then(|own| Drops::start(&Filter { netns: own as u32, ..Filter::default() }))
            .map_err(|error| error.to_string())?;
        Ok(Self { probe, begun: None, ended: Err("its window did not end".into()) })
    }

    /// The window begins.
    pub(crate) fn begin(&mut self) {
        self.begun = self.probe.rows().ok();
    }

    /// The window ends.
    pub(crate) fn end(&mut self) {
        self.ended = self.probe.rows().map_err(|error| error.to_string());
    }

    /// The window's, the most packets first.
    pub(crate) fn read(&self) -> Result<Vec<DropReason>, String> {
        let named = |rows| self.probe.named(rows).map(counts).map_err(|error| error.to_string());
        let begun = self.begun.as_ref().and_then(|rows| named(rows).ok());
        since(begun.as_ref(), named(self.ended.as_ref().map_err(Clone::clone)?)?)
    }
}

/// Without the first reading all since the probe's start would pass for the window's.
fn since(begun: Option<&Counts>, now: Counts) -> Result<Vec<DropReason>, String> {
    let begun = begun.ok_or("its first reading failed")?;
    let since = now.into_iter().map(|(key, count)| {
        let before = begun.get(&key).copied().unwrap_or(0);
        let (reason, place, device, port) = key;
        let packets = count.saturating_sub(before);
        DropReason { side: PathSide::Machine.to_string(), reason, place, device, port, packets }
    });
    let mut all: Vec<DropReason> = since.filter(|row| row.packets > 0).collect();
    all.sort_few_by(|a, b| b.packets.cmp(&a.packets).then_with(|| a.reason.cmp(&b.reason)));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_its_first_reading_a_window_has_no_reasons() {
        let key = || -> Key { ("NO_SOCKET".into(), "udp_rcv".into(), "eth0".into(), 9) };
        let counts = |packets: u64| Counts::from([(key(), packets)]);
        assert_eq!(since(None, counts(50)).unwrap_err(), "its first reading failed");
        let rows = since(Some(&counts(40)), counts(50)).unwrap();
        assert!(matches!(rows.as_slice(), [row] if row.packets == 10), "{rows:?}");
        assert!(since(Some(&counts(50)), counts(50)).unwrap().is_empty());
    }
}
