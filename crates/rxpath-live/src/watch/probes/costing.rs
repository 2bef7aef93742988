//! What the probes cost, and what they lost.

use std::collections::BTreeMap;
use std::time::Duration;

use rxpath_bpf::cost::{FEW, timed_of};
use rxpath_bpf::probe::Probe;
use rxpath_host::HostError;
use rxpath_record::watch::ProbeShare;

use super::super::cost::{GROUPS, Part};
use super::Probes;

/// Of less counted time no rate is taken.
const ENOUGH: Duration = Duration::from_millis(50);

/// How runs of the programs are timed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// One of so many.
    one_of: u32,
    /// For how long was counted, and the runs until then, when that was decided.
    counted: Duration,
    runs: u64,
}

impl Default for Timing {
    /// As objects are loaded: few.
    fn default() -> Self {
        Self { one_of: FEW, counted: Duration::ZERO, runs: 0 }
    }
}

impl Probes {
    /// What all but the drops cost so far, and what these did.
    pub(super) fn spent_ns(&mut self) -> [f64; GROUPS] {
        let mut meter = std::mem::take(&mut self.meter);
        let spent_ns = meter.spent_ns(&self.parts());
        self.meter = meter;
        spent_ns
    }

    /// Has each run timed while the programs run seldom, by what they did since the turn before ended. So much was counted.
    pub(super) fn time_runs(&mut self, counted: Duration) {
        let runs = self.meter.runs();
        let timing = self.timing;
        let since = counted.saturating_sub(timing.counted);
        if since < ENOUGH {
            return;
        }
        let runs_per_s = runs.saturating_sub(timing.runs) as f64 / since.as_secs_f64();
        let one_of = timed_of(timing.one_of, runs_per_s);
        self.timing = Timing { one_of, counted, runs };
        for part in self.parts().iter().filter(|_| one_of != timing.one_of) {
            // One for which it fails is timed as before: its rows say how many runs were.
            let _ = part.probe.loaded().time_one_of(one_of);
        }
    }

    pub(super) fn packets(&self) -> u64 {
        let packets = self.stages.as_ref().and_then(|stages| stages.packets().ok());
        packets.unwrap_or_default()
    }

    /// The objects that run.
    fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = vec![Part { probe: &self.account, group: 0 }];
        parts.extend(self.stages.iter().map(|probe| Part { probe, group: 0 }));
        parts.extend(self.drops.probe.iter().map(|probe| Part { probe, group: 1 }));
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
        let polls = self.polls.lost(self.account.loaded())?;
        let mut lost = BTreeMap::from([("polls", polls)]);
        for part in self.parts() {
            lost.insert(part.probe.name(), part.probe.lost()?);
        }
        Ok(lost)
    }
}
