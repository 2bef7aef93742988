//! What the probes cost, and what they lost.

use std::collections::BTreeMap;

use rxpath_bpf::probe::Probe;
use rxpath_host::HostError;
use rxpath_record::watch::ProbeShare;

use super::super::cost::{GROUPS, Part};
use super::super::unloaded::Unloaded;
use super::Probes;

impl Probes {
    /// What all but the drops cost so far, and what these did.
    pub(super) fn spent_ns(&mut self) -> [f64; GROUPS] {
        let mut meter = std::mem::take(&mut self.meter);
        let spent_ns = meter.spent_ns(&self.parts());
        self.meter = meter;
        spent_ns
    }

    pub(super) fn packets(&self) -> u64 {
        let packets = self.stages.as_ref().and_then(|stages| stages.packets().ok());
        packets.unwrap_or_default()
    }

    /// The objects that run.
    fn parts(&self) -> Vec<Part<'_>> {
        let mut parts =
            vec![Part { probe: &self.account, group: 0 }, Part { probe: &self.polls, group: 0 }];
        parts.extend(self.stages.iter().map(|probe| Part { probe, group: 0 }));
        parts.extend(self.drops.probe().map(|probe| Part { probe: probe as &dyn Probe, group: 1 }));
        parts
    }

    pub(super) fn cost(&mut self, lost_count: u64) -> ProbeShare {
        let mut meter = std::mem::take(&mut self.meter);
        let cost = meter.until_now(&self.parts());
        self.meter = meter;
        ProbeShare { lost_count, ..cost }
    }

    /// What found no room in the maps of each so far.
    pub(super) fn lost(&self) -> Result<BTreeMap<&'static str, u64>, HostError> {
        let of = |part: &Part<'_>| Ok((part.probe.name(), part.probe.lost()?));
        self.parts().iter().map(of).collect()
    }

    /// The same, as of the last window.
    pub fn lost_count(&self) -> BTreeMap<&'static str, u64> {
        self.seen.lost_count.clone()
    }

    /// Those that did not load, of which a restart may have more.
    pub fn unloaded(&self) -> &[Unloaded] {
        &self.unloaded
    }
}
