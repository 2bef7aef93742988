//! The probe of drops: its turns, and what it counted.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rxpath_bpf::cost::own_cpu;
use rxpath_bpf::drops::{Drops, SkbDrop};
use rxpath_bpf::filter::Filter;
use rxpath_bpf::probe::Probe;
use rxpath_bpf::turns::TurnStep;
use rxpath_host::HostError;

use super::super::turning::{Sample, Turning};
use super::again::Again;
use super::budget;
use super::rows::{DropKey, Dropped, dropped, without_room};

/// A row of drops goes after so long without one: there is one for each port that was ever tried.
const QUIET: Duration = Duration::from_secs(60);

/// Drops that are few are all counted, however much is received: the turns are its own.
#[derive(Debug)]
pub(super) struct Dropping {
    /// None where it did not start.
    pub(super) probe: Option<Drops>,
    pub(super) turns: Turning,
    /// When a turn that could not begin is tried again.
    again: Again,
    rows: HashMap<DropKey, Dropped>,
    /// Packets that found no room: those that were counted, and about as many as there were.
    without_room: (u64, f64),
    /// For how long it had counted at the last reading.
    over: Duration,
    /// When rows were last forgotten.
    forgot: Instant,
}

impl Dropping {
    /// The probe in its place; it does not count yet.
    pub(super) fn load(cpu_ratio: f64) -> Result<Self, HostError> {
        let mut probe = Drops::load(&Filter::default())?;
        probe.attach()?;
        Ok(Self { probe: Some(probe), ..Self::none(cpu_ratio) })
    }

    /// Without a probe.
    pub(super) fn none(cpu_ratio: f64) -> Self {
        Self {
            probe: None,
            turns: Turning::new(budget::drops(cpu_ratio), Duration::ZERO, 0.0),
            again: Again::default(),
            rows: HashMap::new(),
            without_room: (0, 0.0),
            over: Duration::ZERO,
            forgot: Instant::now(),
        }
    }

    /// The first turn begins; what the probe cost so far is no turn's.
    pub(super) fn count(&mut self, cpu_ratio: f64, cost_ns: f64) -> Result<(), HostError> {
        self.turns = Turning::new(budget::drops(cpu_ratio), Duration::ZERO, cost_ns);
        let begun = self.probe.as_ref().map_or(Ok(()), Drops::begin);
        begun.inspect_err(|_| self.probe = None)
    }

    /// When [`Dropping::step`] has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.turns.due(), self.again.due].into_iter().flatten().min()
    }

    pub(super) fn step(&self) -> TurnStep {
        if self.again.is_due(Instant::now()) { TurnStep::Begin } else { self.turns.step() }
    }

    /// A turn could not begin, as for want of descriptors. What was counted stays, and it is tried again.
    pub(super) fn failed(&mut self) {
        self.detach();
        self.turns.stop();
        self.again.failed(Instant::now());
    }

    /// A turn begins, unless one lasts: a program that is put into its place twice counts twice.
    pub(super) fn begin_turn(&mut self) -> Result<(), HostError> {
        if self.turns.is_looking() {
            return Ok(());
        }
        let Some(probe) = &mut self.probe else { return Ok(()) };
        self.turns.begin(|| {
            probe.attach()?;
            probe.begin()
        })?;
        self.again.worked();
        Ok(())
    }

    /// Ends a turn whose programs had cost so much by now.
    pub(super) fn end_turn(&mut self, cost_ns: f64) {
        if !self.turns.end(cost_ns) {
            return;
        }
        let before = own_cpu();
        self.detach();
        self.turns.ended(before);
    }

    /// Counts nothing until it is switched on again.
    pub(super) fn switch_off(&mut self) {
        self.detach();
        self.turns.stop();
        self.again.worked();
    }

    fn detach(&mut self) {
        if let Some(probe) = &mut self.probe {
            // A program that is not there counts nothing either.
            let _ = probe.pause();
            probe.detach();
        }
    }

    /// What was dropped since the sample before, over the time in which the probe itself counted, and that time in s.
    pub(super) fn read(&mut self, sample: Sample) -> Result<(Vec<(SkbDrop, u64)>, f64), HostError> {
        let Some(probe) = &self.probe else { return Ok((Vec::new(), 0.0)) };
        let over = probe.counted();
        let sample = sample.over(over.saturating_sub(self.over));
        let mut rows = dropped(&mut self.rows, probe.read()?, sample.factor());
        let lost = probe.lost()?;
        let more = lost.saturating_sub(self.without_room.0);
        self.without_room = (lost, self.without_room.1 + more as f64 * sample.factor());
        if more > 0 {
            rows.push((without_room(more), self.without_room.1.round() as u64));
        }
        self.over = over;
        if self.forgot.elapsed() >= QUIET / 4 {
            self.forgot = Instant::now();
            probe.forget(QUIET)?;
        }
        Ok((rows, sample.counted.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_could_not_begin_is_tried_again_unless_it_is_switched_off() {
        let mut dropping = Dropping::none(0.01);
        dropping.failed();
        // Not at once: what was lacking still is.
        assert!(dropping.due().is_some() && dropping.step() == TurnStep::Stay);
        dropping.switch_off();
        assert!(dropping.due().is_none() && dropping.step() == TurnStep::Stay);
    }
}
