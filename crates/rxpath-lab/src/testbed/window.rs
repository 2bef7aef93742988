//! The measured window of a trial: CPU time and counters at both of its ends.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use rxpath_core::{Nanos, Warning};
use rxpath_live::observe::{Between, CpuSnapshot, Ours};
use rxpath_record::counters::{Moved, Snapshot};
use rxpath_record::hosts::{ControlCost, HostStart};

use super::Testbed;
use super::seat::Seat;
use crate::error::LabError;

/// What is measured over a window.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The processes of the sending programs, of each sender.
    pub loads: Vec<Vec<i32>>,
    /// The processes of the receiving programs, of each receiver; none where nobody receives.
    pub serves: Vec<Vec<i32>>,
    /// Further processes of the trial, each with the host on which it runs.
    pub others: Vec<(Seat, i32)>,
    /// Length of the window.
    pub length: Nanos,
}

impl Measured {
    /// The processes of all programs.
    pub fn leaders(&self) -> Vec<i32> {
        self.loads.iter().chain(&self.serves).flatten().copied().collect()
    }
}

/// What happened in a window.
#[derive(Debug, Default)]
pub struct Windowed {
    /// CPU time of the receiver's host; of several that of the first.
    pub between: Between,
    /// CPU time of each receiver's host, where there are several.
    pub of_receivers: Vec<Between>,
    /// Of these, those on whose machine no earlier one is.
    pub distinct_receivers: Vec<usize>,
    /// CPU time of the senders' hosts, where they are others.
    pub of_senders: Vec<Between>,
    /// For each receiver the name of each sender's host, if that is another machine than the receiver's.
    pub apart: Vec<Vec<Option<String>>>,
    /// The cost of measuring on each host, by its name.
    pub costs: BTreeMap<String, ControlCost>,
    /// Counters of both sides.
    pub moved: Moved,
    /// When each sender began, by its name; those that said it.
    pub starts: BTreeMap<String, HostStart>,
    /// What makes it worthless, whatever was measured: the host, and what happened there.
    pub faults: Vec<String>,
    /// Clocks that jumped in the trial, which makes it worthless too: the host, and by how much.
    pub jumps: Vec<String>,
    /// What to know of it otherwise.
    pub warnings: Vec<Warning>,
    /// How far the clocks of senders and of receivers may have been from an even pace, the worst of each. **Unit** ns.
    pub uneven_ns: [u64; 2],
    /// Time between the two readings of the first receiver's host, which lie inside the window. **Unit** s.
    pub moved_s: f64,
}

impl Windowed {
    /// CPU time of each receiver's host; of one machine for all of them.
    pub fn receivers(&self) -> &[Between] {
        if self.of_receivers.is_empty() {
            std::slice::from_ref(&self.between)
        } else {
            &self.of_receivers
        }
    }

    /// CPU time of each machine that receives, once.
    pub fn receiving_machines(&self) -> impl Iterator<Item = &Between> {
        let several = self.distinct_receivers.iter();
        let several = several.filter_map(move |at| self.of_receivers.get(*at));
        several.chain(self.of_receivers.is_empty().then_some(&self.between))
    }

    /// CPU time of a receiver's host.
    pub fn of_receiver(&self, receiver: usize) -> &Between {
        self.of_receivers.get(receiver).unwrap_or(&self.between)
    }

    /// CPU time of one receiver's host and of those of these senders.
    #[must_use]
    pub fn alone(&self, receiver: usize, senders: &[usize]) -> Self {
        let apart = self.apart.get(receiver).map(|all| picked(all, senders));
        Self {
            between: self.of_receiver(receiver).clone(),
            of_senders: picked(&self.of_senders, senders),
            apart: apart.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// Those at these places, as far as they are there.
fn picked<T: Clone>(all: &[T], places: &[usize]) -> Vec<T> {
    places.iter().filter_map(|at| all.get(*at).cloned()).collect()
}

/// A window that hosts begin by themselves; none where it begins by an order.
pub type WindowAhead<'a> = Option<Box<dyn Window + 'a>>;

/// A window that has begun, or that hosts begin by themselves.
pub trait Window {
    /// Its begin on the testbed's clock.
    fn start_ns(&self) -> u64;

    /// The load has settled: it begins as early as all hosts can, if it lies ahead and all of them take that. False while hosts
    /// are too slow for that: it is to be called again.
    ///
    /// # Errors
    /// [`LabError::Interrupted`] when `stop` is set.
    fn settled(&mut self, _stop: &AtomicBool) -> Result<bool, LabError> {
        Ok(true)
    }

    /// Counts a process of the receiver's host as the trial's own from now on.
    fn include(&mut self, pid: i32);

    /// Ends it, now or when its length is over.
    ///
    /// # Errors
    /// Of a host that no longer answers.
    fn close(self: Box<Self>, testbed: &dyn Testbed) -> Result<Windowed, LabError>;
}

/// Time from one reading to another of the same host. **Unit** s.
pub fn seconds(first: &Snapshot, last: &Snapshot) -> f64 {
    (last.t_ns - first.t_ns) as f64 / 1e9
}

/// A window of this host.
pub struct LocalWindow {
    ours: Ours,
    from: CpuSnapshot,
    first: Snapshot,
}

impl LocalWindow {
    /// Begins it: CPU time first, then the counters.
    pub fn open(measured: &Measured, snapshot: impl FnOnce() -> Snapshot) -> Self {
        let mut ours = Ours::with_children(std::process::id() as i32, &measured.leaders());
        ours.pids.extend(measured.others.iter().map(|(_, pid)| pid));
        let from = CpuSnapshot::take(&ours);
        Self { first: snapshot(), ours, from }
    }
}

impl Window for LocalWindow {
    fn start_ns(&self) -> u64 {
        self.from.t_ns
    }

    fn include(&mut self, pid: i32) {
        self.ours.pids.push(pid);
    }

    fn close(self: Box<Self>, testbed: &dyn Testbed) -> Result<Windowed, LabError> {
        let last = testbed.snapshot();
        let between = Between::marks(&self.from, &CpuSnapshot::of_ours(&self.ours), &self.ours);
        let (moved, moved_s) = (last.since(&self.first), seconds(&self.first, &last));
        Ok(Windowed { between, moved, moved_s, ..Windowed::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_a_machine_count_once() {
        let at = |t_ns| Between { window_ns: [t_ns, t_ns + 9], ..Between::default() };
        let begins = |window: &Windowed| -> Vec<u64> {
            window.receiving_machines().map(|it| it.window_ns[0]).collect()
        };
        let one = Windowed { between: at(1), ..Windowed::default() };
        assert_eq!((begins(&one), one.receivers().len()), (vec![1], 1));
        // The second receiver is a namespace of the first one's machine.
        let three = Windowed {
            between: at(1),
            of_receivers: vec![at(1), at(2), at(3)],
            distinct_receivers: vec![0, 2],
            ..Windowed::default()
        };
        assert_eq!((begins(&three), three.receivers().len()), (vec![1, 3], 3));
        assert_eq!(three.of_receiver(1).window_ns[0], 2);
    }

    #[test]
    fn a_sender_may_be_on_the_machine_of_one_receiver_and_not_of_the_other() {
        let at = |t_ns| Between { window_ns: [t_ns, t_ns + 9], ..Between::default() };
        let window = Windowed {
            of_receivers: vec![at(1), at(2)],
            of_senders: vec![at(3)],
            apart: vec![vec![None], vec![Some("gen1".into())]],
            ..Windowed::default()
        };
        let second = window.alone(1, &[0]);
        assert_eq!((second.between.window_ns[0], second.of_senders.len()), (2, 1));
        assert_eq!(second.apart, [[Some("gen1".to_owned())]]);
        assert_eq!(window.alone(0, &[0]).apart, [[None::<String>]]);
        assert!(Windowed::default().alone(0, &[0]).apart.is_empty(), "one machine for all");
    }

    #[test]
    fn a_receiver_alone_has_the_hosts_of_its_senders_only() {
        let at = |t_ns| Between { window_ns: [t_ns, t_ns + 9], ..Between::default() };
        let names = || ["gen1", "gen2"].map(|name| Some(name.to_owned())).to_vec();
        let window = Windowed {
            of_receivers: vec![at(1), at(2)],
            of_senders: vec![at(3), at(4)],
            apart: vec![names(), names()],
            ..Windowed::default()
        };
        let second = window.alone(1, &[1]);
        assert_eq!(second.of_senders.iter().map(|it| it.window_ns[0]).collect::<Vec<_>>(), [4]);
        assert_eq!(second.apart, [[Some("gen2".to_owned())]]);
    }
}
