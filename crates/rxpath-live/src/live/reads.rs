//! Which threads read which of this namespace's UDP sockets in the window, as far as the kernel was asked.

use std::collections::BTreeMap;

use rxpath_bpf::Probe;
use rxpath_bpf::reads::{ReadBy, Reads};
use rxpath_core::IntoMap;
use rxpath_core::number::grouped;
use rxpath_host::read::identity::network_namespace;

/// Datagrams by thread, by the inode of each socket that was read.
pub(crate) type Readings = BTreeMap<u32, BTreeMap<i32, u64>>;

/// The running probe.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) probe: Reads,
    /// What was read by the window's beginning, where that is known.
    begun: Option<Vec<ReadBy>>,
    /// Why this window has no readings. The probe goes on: the next window may have them.
    pub(super) failed: Option<String>,
}

impl Reading {
    /// Watches this network namespace; the reason where it can't.
    pub(super) fn start() -> Result<Self, String> {
        let probe = network_namespace()
            .and_then(|own| Reads::start(own as u32))
            .map_err(|error| error.to_string())?;
        Ok(Self::of(probe))
    }

    /// Of a probe that runs.
    pub(super) fn of(probe: Reads) -> Self {
        Self { probe, begun: None, failed: None }
    }

    /// The window begins.
    pub(super) fn begin(&mut self) {
        (self.begun, self.failed) = (self.probe.read().ok(), None);
    }

    /// The window ends. Where it has no readings it keeps the reason.
    pub(super) fn end(&mut self) -> Option<Readings> {
        let read = self.of_window();
        self.failed = read.as_ref().err().cloned();
        read.ok()
    }

    /// With readings missing nothing is reported: a thread that is left out would pass for one that did not read.
    fn of_window(&self) -> Result<Readings, String> {
        let now = self.probe.read().map_err(|error| error.to_string())?;
        match self.probe.lost().map_err(|error| error.to_string())? {
            0 => since(self.begun.as_deref(), &now),
            lost => Err(format!("{} reads found no room in the map", grouped(lost))),
        }
    }
}

/// Without the first reading all since the probe's start would pass for the window's.
fn since(begun: Option<&[ReadBy]>, now: &[ReadBy]) -> Result<Readings, String> {
    let begun = begun.ok_or("its first reading failed")?;
    let before: BTreeMap<(u64, i32, i32), u64> =
        begun.iter().map(|read| ((read.inode, read.tid, read.pid), read.datagrams)).into_map();
    let mut all = Readings::new();
    for read in now {
        let old = before.get(&(read.inode, read.tid, read.pid)).copied().unwrap_or(0);
        let datagrams = read.datagrams.saturating_sub(old);
        let inode = u32::try_from(read.inode).ok().filter(|inode| *inode != 0);
        if let Some(inode) = inode.filter(|_| datagrams > 0) {
            *all.entry(inode).or_default().entry(read.tid).or_insert(0) += datagrams;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_before_the_window_is_not_in_it() {
        let read = |inode, tid, datagrams| ReadBy { inode, tid, pid: 10, datagrams };
        let begun = [read(7, 11, 100), read(8, 12, 5)];
        let now = [read(7, 11, 150), read(8, 12, 5), read(7, 13, 9), read(0, 14, 3)];
        let window = since(Some(&begun), &now).unwrap();
        assert_eq!(window, [(7, [(11, 50), (13, 9)].into())].into());
    }

    #[test]
    fn without_its_first_reading_a_window_has_no_readers() {
        let now = [ReadBy { inode: 7, tid: 11, pid: 10, datagrams: 150 }];
        assert_eq!(since(None, &now).unwrap_err(), "its first reading failed");
    }
}
