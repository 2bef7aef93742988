//! The start of a trial's load and its latest end: instants that all hosts get ahead.

use super::{RESULT_LIMIT, Trial, own_length};
use crate::error::LabError;
use crate::trial::background::Background;
use crate::trial::result::WorkloadResult;
use crate::trial::start;

impl Trial<'_> {
    /// Orders both sides to start and returns the end of the ramp.
    pub(super) fn start(&mut self) -> Result<u64, LabError> {
        let earliest_ns = self.testbed.clock_ns() + self.testbed.start_lead().as_nanos() as u64;
        let start_ns = earliest_ns.next_multiple_of(self.config.variant.start_multiple.0.max(1));
        self.testbed.arm(self.latest_end_ns(start_ns))?;
        if let Some(serve) = &mut self.serve {
            serve.start(start_ns, None)?;
        }
        let end_ns = self.load_end_ns(start_ns);
        self.load.start(start_ns, end_ns)?;
        Ok(start_ns + self.config.trials.ramp.0)
    }

    /// Ends the load, and what starves queues on purpose: that would keep them from running empty.
    pub(super) fn stop_load(&mut self) -> Result<WorkloadResult, LabError> {
        let (config, testbed) = (self.config, self.testbed);
        let load = self.load.stop(RESULT_LIMIT + own_length(config), config.stop)?;
        testbed.disarm()?;
        self.starts = testbed.starts(&self.load.began());
        self.background = Box::new(Background::default());
        testbed.calm()?;
        Ok(load)
    }

    /// When a load that began at an instant ends without an order, where it does.
    pub(super) fn load_end_ns(&self, start_ns: u64) -> Option<u64> {
        let is_own = self.config.variant.load.own().is_some();
        self.latest_end_ns(start_ns).filter(|_| is_own)
    }

    /// When a load that began at an instant is over at the latest, where orders may not arrive. Another program gets the end as
    /// a duration, or not at all: its endpoint ends it then.
    fn latest_end_ns(&self, start_ns: u64) -> Option<u64> {
        let limit = start::load_limit(self.config.trials, self.testbed)?;
        Some(start_ns + limit.as_nanos() as u64)
    }
}
