//! The turns of a group of probes: when they count, for how long, and what that took.
//!
//! What a turn took is counted by the programs themselves ([`super::cost`]).

use std::time::{Duration, Instant};

use rxpath_bpf::cost::own_cpu;
use rxpath_bpf::turns::{Rhythm, Spent, TurnStep, Turns};
use rxpath_record::watch::ProbeDutyCycle;

/// Of less time nothing is shown: what was seen before stands longer.
const LEAST: Duration = Duration::from_millis(5);

/// A group's turns.
#[derive(Debug)]
pub(super) struct Turning {
    begun: Instant,
    turns: Turns,
    /// What the programs had cost when this turn began.
    cost_ns: f64,
    /// CPU time that beginning a turn took, and ending one.
    switching: [Duration; 2],
    /// For how long was counted, at the end of the newest sample and when that was.
    shown: (Duration, Duration),
    newest: Sample,
}

/// What a reading is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// For how long was counted in it.
    pub counted: Duration,
    /// Of this time, pauses included.
    pub whole: Duration,
    /// When it ended, since the first turn began.
    ended: Duration,
}

impl Turning {
    /// The first turn has begun. Beginning one takes about so much CPU time, and what the programs cost so far is no turn's.
    pub(super) fn new(rhythm: Rhythm, switching: Duration, cost_ns: f64) -> Self {
        let zero = Duration::ZERO;
        Self {
            begun: Instant::now(),
            turns: Turns::new(rhythm),
            cost_ns,
            switching: [switching; 2],
            shown: (zero, zero),
            newest: Sample { counted: zero, whole: zero, ended: zero },
        }
    }

    /// When something is to be done; none once it has stopped.
    pub(super) fn due(&self) -> Option<Instant> {
        self.begun.checked_add(self.turns.due())
    }

    pub(super) fn step(&self) -> TurnStep {
        self.turns.step(self.begun.elapsed())
    }

    /// Whether a turn lasts.
    pub(super) fn is_looking(&self) -> bool {
        self.turns.is_looking()
    }

    /// Whether a turn lasts that is short because it costs much.
    pub(super) fn is_short(&self) -> bool {
        self.turns.is_short()
    }

    /// For how long was counted.
    pub(super) fn counted(&self) -> Duration {
        self.turns.looked(self.begun.elapsed())
    }

    /// A turn's time has passed, and the programs cost so much so far. Gives whether a pause follows.
    pub(super) fn end(&mut self, cost_ns: f64) -> bool {
        let programs_ns = (cost_ns - self.cost_ns).max(0.0);
        let programs = Duration::from_secs_f64(programs_ns / 1e9);
        self.cost_ns = cost_ns;
        let now = self.begun.elapsed();
        let spent = Spent { programs, switching: self.switching.iter().sum() };
        self.turns.end(now, spent)
    }

    /// The programs are away; before that the thread had used this CPU time.
    pub(super) fn ended(&mut self, before: Duration) {
        self.switching[1] = own_cpu().saturating_sub(before);
    }

    /// A turn begins with `start`, which fails or not.
    pub(super) fn begin<E>(&mut self, start: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let before = own_cpu();
        start()?;
        self.switching[0] = own_cpu().saturating_sub(before);
        self.turns.begin(self.begun.elapsed());
        Ok(())
    }

    /// No turn follows.
    pub(super) fn stop(&mut self) {
        self.turns.stop(self.begun.elapsed());
    }

    /// What turns take of one CPU from now on.
    pub(super) fn set_share(&mut self, share: f64) {
        self.turns.set_share(share);
    }

    /// What counted since the newest sample is one, if it is enough.
    pub(super) fn take(&mut self) -> Option<Sample> {
        let now = self.begun.elapsed();
        let counted = self.turns.looked(now);
        let sample = Sample {
            counted: counted.saturating_sub(self.shown.0),
            whole: now.saturating_sub(self.shown.1),
            ended: now,
        };
        if sample.counted < LEAST {
            return None;
        }
        self.shown = (counted, now);
        self.newest = sample;
        Some(sample)
    }

    /// Which part of the time the newest sample is, which is of this frame or of one before; none for all of it.
    pub(super) fn sampled(&self, what: &str, is_new: bool) -> Option<ProbeDutyCycle> {
        let Sample { counted, whole, ended } = self.newest;
        let age = if is_new { Duration::ZERO } else { self.begun.elapsed().saturating_sub(ended) };
        (!is_new || counted < whole).then(|| ProbeDutyCycle {
            what: what.to_owned(),
            ratio: counted.as_secs_f64() / whole.as_secs_f64().max(1e-9),
            counted_s: counted.as_secs_f64(),
            age_s: age.as_secs_f64(),
        })
    }
}

impl Sample {
    /// The same, of which so much was counted by the probe's own clock.
    pub(super) fn over(self, counted: Duration) -> Self {
        Self { counted, ..self }
    }

    /// What was counted, for the whole time.
    pub(super) fn factor(&self) -> f64 {
        self.whole.as_secs_f64() / self.counted.as_secs_f64().max(1e-9)
    }
}
