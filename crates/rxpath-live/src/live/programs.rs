//! The programs of a deep look: loaded while the privilege is there, and in their places only while one is made.

use std::time::Duration;

use rxpath_bpf::Probe;
use rxpath_bpf::cost::CountedCost;
use rxpath_bpf::locks::Locks;
use rxpath_bpf::reads::Reads;
use rxpath_host::HostError;
use rxpath_host::read::identity::network_namespace;

/// Which thread reads which UDP socket, and who waits for the lock of one. Each may be missing, with its reason.
#[derive(Debug)]
pub struct Programs {
    pub(super) reads: Result<Reads, String>,
    pub(super) locks: Result<Locks, String>,
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

    /// CPU time that they took since they were loaded, the entries of their runs included. What cannot be read counts as none.
    pub(crate) fn cpu(&self) -> Duration {
        let reads = self.reads.as_ref().ok().map(|reads| reads as &dyn Probe);
        let locks = self.locks.as_ref().ok().map(|locks| locks as &dyn Probe);
        let whole_ns = |probe: &dyn Probe| {
            let mut cost = CountedCost::default();
            cost.update(probe.loaded()).map_or(0.0, |()| cost.whole_ns())
        };
        let ns: f64 = reads.into_iter().chain(locks).map(whole_ns).sum();
        Duration::try_from_secs_f64(ns / 1e9).unwrap_or_default()
    }
}

fn attached<P>(
    probe: Result<P, String>,
    attach: impl FnOnce(&mut P) -> Result<(), HostError>,
) -> Result<P, String> {
    let mut probe = probe?;
    attach(&mut probe).map_err(|error| error.to_string())?;
    Ok(probe)
}
