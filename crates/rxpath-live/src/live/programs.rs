//! The programs of a deep look: loaded while the privilege is there, and in their places only while one is made.

use std::collections::BTreeMap;
use std::time::Duration;

use rxpath_bpf::cost::CountedCost;
use rxpath_bpf::locks::Locks;
use rxpath_bpf::reads::Reads;
use rxpath_bpf::{Probe, probe};
use rxpath_host::HostError;
use rxpath_host::read::identity::network_namespace;

use crate::watch::Unloaded;

/// What deep looks do not know without the program of reads, and without those of locks.
const READERS: &str = "readers of UDP sockets in deep looks";
const LOCK_WAITS: &str = "waits for sockets' locks in deep looks";
/// Readers that a deep look has room for: 3 MB. With the maps of windows on two CPUs, all are below 16 MB also when it is full.
const READERS_MOST: u32 = 32_768;

/// Which thread reads which UDP socket, and who waits for the lock of one. Each may be missing, with its reason.
#[derive(Debug)]
pub struct Programs {
    pub(super) reads: Result<Reads, String>,
    pub(super) locks: Result<Locks, String>,
}

/// Programs that were refused their places, for the next deep look.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    reads: Option<Reads>,
    locks: Option<Locks>,
    /// What is not known without them, with the reason.
    pub(crate) why: BTreeMap<&'static str, String>,
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
    /// Loads them for this network namespace, and says which did not load. That takes `CAP_BPF` and `CAP_PERFMON`; attaching
    /// takes none.
    pub fn load() -> (Self, Vec<Unloaded>) {
        let mut unloaded = Vec::new();
        let reads = network_namespace().and_then(|own| Reads::load(own as u32, READERS_MOST));
        let reads = loaded(READERS, reads, &mut unloaded);
        let locks = loaded(LOCK_WAITS, Locks::load(), &mut unloaded);
        (Self { reads, locks }, unloaded)
    }

    /// None, for this reason.
    pub fn none(why: &str) -> Self {
        Self { reads: Err(why.to_owned()), locks: Err(why.to_owned()) }
    }

    /// Those that are in their places, and those that are not: the kernel may be short of something for a moment only.
    pub(crate) fn attached(self) -> (Self, Refused) {
        let mut refused = Refused::default();
        let keep = (&mut refused.reads, &mut refused.why);
        let reads = attached(READERS, self.reads, keep, Reads::attach);
        let keep = (&mut refused.locks, &mut refused.why);
        let locks = attached(LOCK_WAITS, self.locks, keep, Locks::attach);
        (Self { reads, locks }, refused)
    }

    /// With those that were refused their places.
    pub(crate) fn with(self, refused: Refused) -> Self {
        Self {
            reads: refused.reads.map_or(self.reads, Ok),
            locks: refused.locks.map_or(self.locks, Ok),
        }
    }

    /// No longer in their places.
    pub(crate) fn detach(&mut self) {
        self.reads.iter_mut().for_each(Reads::detach);
        self.locks.iter_mut().for_each(Locks::detach);
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

    /// Kernel memory of their maps now.
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

fn loaded<P>(
    what: &'static str,
    probe: Result<P, HostError>,
    unloaded: &mut Vec<Unloaded>,
) -> Result<P, String> {
    probe.map_err(|error| {
        unloaded.push(Unloaded::of(what, &error));
        error.to_string()
    })
}

/// In its place. One that is refused is kept, with the reason.
fn attached<P>(
    what: &'static str,
    probe: Result<P, String>,
    (kept, whys): (&mut Option<P>, &mut BTreeMap<&'static str, String>),
    attach: impl FnOnce(&mut P) -> Result<(), HostError>,
) -> Result<P, String> {
    let mut probe = probe?;
    let Err(error) = attach(&mut probe) else { return Ok(probe) };
    *kept = Some(probe);
    let why = error.to_string();
    whys.insert(what, why.clone());
    Err(why)
}

#[cfg(test)]
mod tests {
    use nix::libc;

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
    fn a_probe_that_is_refused_its_place_is_kept_and_one_that_did_not_load_has_nothing_to_keep() {
        let attach = |probe: Result<u8, String>, errno: Option<i32>| {
            let (mut kept, mut whys) = (None, BTreeMap::new());
            let answer =
                |_: &mut u8| errno.map_or(Ok(()), |no| Err(HostError::kernel("attach", no)));
            let probe = attached(READERS, probe, (&mut kept, &mut whys), answer);
            (probe.ok(), kept, whys.len())
        };
        assert_eq!(attach(Ok(7), None), (Some(7), None, 0));
        assert_eq!(attach(Ok(7), Some(libc::EMFILE)), (None, Some(7), 1));
        assert_eq!(attach(Err("no BTF".into()), None), (None, None, 0));
    }

    #[test]
    fn what_did_not_load_says_what_it_needs() {
        let mut unloaded = Vec::new();
        assert_eq!(loaded(READERS, Ok(7), &mut unloaded), Ok(7));
        assert!(unloaded.is_empty());
        let short: Result<u8, HostError> = Err(HostError::kernel("load", libc::ENOMEM));
        assert!(loaded(READERS, short, &mut unloaded).is_err());
        let [one] = unloaded.as_slice() else { panic!("{unloaded:?}") };
        assert_eq!((one.what, one.needs), (READERS, Unloaded::RESTART));
    }

    #[test]
    fn programs_that_are_not_there_cost_nothing() {
        let none = Programs::none("not in this test");
        assert_eq!((none.cpu(), none.map_bytes()), (ProgramsCpu::default(), 0));
    }
}
