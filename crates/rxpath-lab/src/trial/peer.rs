//! The two kinds of program on a side of a trial behind one set of orders: ours, which take orders, and third-party programs.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rxpath_core::Warning;

use super::line::Line;
use super::result::WorkloadResult;
use super::side::SideMeasurements;
use crate::error::LabError;

/// When a program of ours began its load, as it says; a third-party one, when its host started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began {
    /// On the testbed's clock. **Unit** ns.
    pub at_ns: u64,
    /// How much later than ordered. **Unit** ns.
    pub late_ns: u64,
}

/// A program on one side of a trial.
pub trait Peer {
    /// Waits until it is set up.
    fn wait_ready(&mut self, limit: Duration, stop: &AtomicBool) -> Result<(), LabError>;

    /// Makes it start at an instant of the testbed's clock. A program of ours ends at the other one, if there is one and no
    /// order ends it earlier.
    fn start(&mut self, at_ns: u64, until_ns: Option<u64>) -> Result<(), LabError>;

    /// Fails when it has ended without an order.
    fn check_alive(&mut self, phase: &'static str) -> Result<(), LabError>;

    /// Makes it stop and returns what it left; a receiver drains first.
    fn stop(&mut self, limit: Duration, stop: &AtomicBool) -> Result<SideMeasurements, LabError>;

    /// With this result, what every program leaves.
    fn left(&self, result: WorkloadResult) -> SideMeasurements {
        let lines = self.intervals();
        let (pid, tids) = self.ids();
        let (own_lines, tids) = (!lines.is_empty(), tids.to_vec());
        SideMeasurements { lines, own_lines, result, pid, tids, ..SideMeasurements::default() }
    }

    /// Lets it close its sockets and end.
    fn close(self: Box<Self>) -> Result<Vec<Warning>, LabError>;

    /// Begins to stop it, where there is something to begin.
    fn begin_stop(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    /// The processes of its programs, of each host.
    fn leaders(&self) -> Vec<Vec<i32>> {
        let pids = |programs: Vec<(u32, Vec<i32>)>| {
            programs.into_iter().map(|(pid, _)| pid as i32).collect()
        };
        self.threads().into_iter().map(pids).collect()
    }

    /// Process and worker threads of each of its programs, of each host; no threads when they are not known.
    fn threads(&self) -> Vec<Vec<(u32, Vec<i32>)>> {
        let (pid, tids) = self.ids();
        vec![vec![(pid, tids.to_vec())]]
    }

    /// When each of its programs began, of each host; nothing of those that did not say it.
    fn began(&self) -> Vec<Vec<Began>>;

    /// When it was to end by itself, if it has ended then; nothing of programs of ours.
    fn ended_ns(&self) -> Option<u64> {
        None
    }

    /// Process and worker threads; no threads when they are not known.
    fn ids(&self) -> (u32, &[i32]);

    /// Its own interval lines; empty when it prints none of ours.
    fn intervals(&self) -> Vec<Line>;
}
