//! The start of a trial's load, its latest end and its latest window: instants that all hosts get ahead.

use super::{RESULT_LIMIT, Trial, own_length};
use crate::clock::monotonic_ns;
use crate::endpoint::client::PROMPT;
use crate::error::LabError;
use crate::testbed::Testbed;
use crate::testbed::window::WindowAhead;
use crate::trial::background::Background;
use crate::trial::config::whole;
use crate::trial::sampler::Sampling;
use crate::trial::side::SideMeasurements;

/// All hosts know that a load runs, until this is dropped: a trial may end early.
#[derive(Default)]
pub(super) struct Armed<'a> {
    testbed: Option<&'a dyn Testbed>,
    /// The window that hosts begin by themselves.
    pub(super) window: WindowAhead<'a>,
    /// Samplers that begin with it.
    pub(super) queues: Option<Box<dyn Sampling>>,
}

impl<'a> Armed<'a> {
    fn begin(&mut self, testbed: &'a dyn Testbed, until_ns: Option<u64>) -> Result<(), LabError> {
        self.testbed = Some(testbed);
        testbed.arm(until_ns)
    }

    /// The load is over.
    fn end(&mut self) -> Result<(), LabError> {
        self.testbed.take().map_or(Ok(()), Testbed::disarm)
    }
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        // The trial has failed already.
        let _ = self.end();
    }
}

impl Trial<'_> {
    /// Orders both sides to start and returns the end of the ramp.
    pub(super) fn start(&mut self) -> Result<u64, LabError> {
        let lead_ns = self.testbed.start_lead().as_nanos() as u64;
        let multiple = self.config.variant.start_multiple.0.max(1);
        let from = |now_ns: u64| (now_ns + lead_ns).next_multiple_of(multiple);
        // The hosts may take that long to answer.
        let latest_ns = from(monotonic_ns() + PROMPT.as_nanos() as u64);
        let until_ns = self.latest_end_ns(latest_ns);
        self.armed.begin(self.testbed, until_ns)?;
        let start_ns = from(monotonic_ns());
        if let Some(serve) = &mut self.serve {
            serve.start(start_ns, None)?;
        }
        let end_ns = self.load_end_ns(start_ns);
        self.load.start(start_ns, end_ns)?;
        let ramp_end = start_ns + self.config.trials.ramp.0;
        self.announce_window(ramp_end)?;
        Ok(ramp_end)
    }

    /// Tells hosts that begin it by themselves when the window begins at the latest. The processes of another program are
    /// known only now.
    fn announce_window(&mut self, ramp_end: u64) -> Result<(), LabError> {
        let testbed = self.testbed;
        let lead_ns = testbed.window_lead().as_nanos() as u64;
        // Orders to another program may have taken longer than ramp and settle.
        let latest_ns = (ramp_end + self.config.trials.settle.0).max(monotonic_ns()) + lead_ns;
        self.armed.window = testbed.window_ahead(&self.measured(), latest_ns)?;
        if self.armed.window.is_some() {
            self.armed.queues = self.sampler(None)?;
            self.observers.announce()?;
        }
        Ok(())
    }

    /// Ends the load, and what starves queues on purpose: that would keep them from running empty.
    pub(super) fn stop_load(&mut self) -> Result<SideMeasurements, LabError> {
        let (config, testbed) = (self.config, self.testbed);
        let load = self.load.stop(RESULT_LIMIT + own_length(config), config.stop)?;
        self.armed.end()?;
        self.starts = testbed.starts(&self.load.began());
        self.background = Box::new(Background::default());
        testbed.calm()?;
        Ok(load)
    }

    /// When a load that began at an instant ends without an order, where it does.
    pub(super) fn load_end_ns(&self, start_ns: u64) -> Option<u64> {
        self.latest_end_ns(start_ns).filter(|_| self.config.variant.load.own().is_some())
    }

    /// When a load that began at an instant is over at the latest, where orders may not arrive. Another program gets the end as
    /// a duration, or not at all: its endpoint ends it then.
    fn latest_end_ns(&self, start_ns: u64) -> Option<u64> {
        let more = self.testbed.load_ends_after()?;
        let limit = whole(self.config.trials).as_duration() + self.testbed.window_lead() + more;
        Some(start_ns + limit.as_nanos() as u64)
    }
}
