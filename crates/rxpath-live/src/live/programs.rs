//! The programs of a deep look: loaded while the privilege is there, and in their places only while one is made.

use std::time::Duration;

use rxpath_bpf::cost::CountedCost;
use rxpath_bpf::locks::Locks;
use rxpath_bpf::reads::Reads;
use rxpath_bpf::{Probe, probe};
use rxpath_host::HostError;
use rxpath_host::read::identity::network_namespace;

/// Which thread reads which UDP socket, and who waits for the lock of one. Each may be missing, with its reason.
#[derive(Debug)]
pub struct Programs {
    pub(super) reads: Result<Reads, String>,
    pub(super) locks: Result<Locks, String>,
}

/// CPU time of BPF programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramsCpu {
    /// In the programs.
    pub runs: Duration,
    /// Of the entries of these runs, an estimate.
    pub entries: Duration,
}

impl ProgramsCpu {
    /// Both.
    pub fn whole(self) -> Duration {
        self.runs + self.entries
    }

    /// What came after that reading.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            runs: self.runs.saturating_sub(before.runs),
            entries: self.entries.saturating_sub(before.entries),
        }
    }
}

impl Programs {
    /// Loads them for this network namespace. That takes `CAP_BPF` and `CAP_PERFMON`; attaching takes none.
    pub fn load() -> Self {
        let reads = network_namespace().and_then(|own| Reads::load(own as u32));
        let locks = Locks::load();
        Self {
            reads: reads.map_err(|error| error.to_string()),
            locks: locks.map_err(|error| error.to_string()),
        }
    }

    /// None, for this reason.
    pub fn none(why: &str) -> Self {
        Self { reads: Err(why.to_owned()), locks: Err(why.to_owned()) }
    }

    /// In their places. One that is refused is not tried again.
    pub(crate) fn attached(self) -> Self {
        Self {
            reads: attached(self.reads, Reads::attach),
            locks: attached(self.locks, Locks::attach),
        }
    }

    /// No longer in their places.
    pub(crate) fn detach(&mut self) {
        if let Ok(reads) = &mut self.reads {
            reads.detach();
        }
        if let Ok(locks) = &mut self.locks {
            locks.detach();
        }
    }

    /// CPU time that they took since they were loaded. What cannot be read counts as none.
    pub(crate) fn cpu(&self) -> ProgramsCpu {
        let mut all = ProgramsCpu::default();
        for probe in self.probes() {
            let mut cost = CountedCost::default();
            if cost.update(probe.loaded()).is_ok() {
                all.runs += from_ns(cost.run_ns);
                all.entries += from_ns(cost.entry_ns());
            }
        }
        all
    }

    /// Kernel memory of their maps.
    pub fn map_bytes(&self) -> u64 {
        probe::map_bytes(&self.probes())
    }

    fn probes(&self) -> Vec<&dyn Probe> {
        let reads = self.reads.as_ref().ok().map(|reads| reads as &dyn Probe);
        let locks = self.locks.as_ref().ok().map(|locks| locks as &dyn Probe);
        reads.into_iter().chain(locks).collect()
    }
}

fn from_ns(ns: f64) -> Duration {
    Duration::try_from_secs_f64(ns / 1e9).unwrap_or_default()
}

fn attached<P>(
    probe: Result<P, String>,
    attach: impl FnOnce(&mut P) -> Result<(), HostError>,
) -> Result<P, String> {
    let mut probe = probe?;
    attach(&mut probe).map_err(|error| error.to_string())?;
    Ok(probe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_programs_and_time_of_entries_stay_apart() {
        let cpu = |runs, entries| ProgramsCpu {
            runs: Duration::from_millis(runs),
            entries: Duration::from_millis(entries),
        };
        let since = cpu(30, 7).since(cpu(10, 2));
        assert_eq!((since, since.whole()), (cpu(20, 5), Duration::from_millis(25)));
        // A probe that is gone takes what it counted with it.
        assert_eq!(cpu(5, 1).since(cpu(10, 2)), ProgramsCpu::default());
    }

    #[test]
    fn programs_that_are_not_there_cost_nothing() {
        let none = Programs::none("not in this test");
        assert_eq!((none.cpu(), none.map_bytes()), (ProgramsCpu::default(), 0));
    }
}
