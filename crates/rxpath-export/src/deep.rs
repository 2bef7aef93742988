//! When a loss gets a deep look, and for how long its verdict stands: a state machine without a clock.
//!
//! A deep look is the diagnosis of three seconds with more evidence than a window has. It costs what some windows cost, so it comes
//! at most once in five minutes, and only when the budget of these five minutes has room for it.

use rxpath_record::verdict::{DiagnosisVerdict, EvidenceLine, Stage};
use rxpath_record::watch::WatchFrame;

use crate::families::{DEEP_LOOKS, Families, SHED};
use crate::governor::Governor;

/// Length of a deep look.
pub const LENGTH_S: f64 = 3.0;
/// From one deep look to the next, and the longest time that a verdict stands.
const PAUSE_S: f64 = 300.0;
/// CPU time that a deep look takes, until one was made.
const FIRST_CPU_S: f64 = 0.1;
/// The gap of a frame whose loss waits, and what the budget costs then.
const DEEP_LOOK: &str = "deep look";
/// What became of deep looks.
const MADE: usize = 0;
const BUDGET: usize = 1;
const FAILED: usize = 2;
const RESULTS: [&str; 3] = ["made", "budget", "failed"];

/// The loss of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowLoss {
    /// Whether it lost packets above the thresholds of the rules. None: it says nothing, as a late one.
    pub loses: Option<bool>,
    /// A list of sockets takes more than 20 ms of CPU time.
    pub has_dear_list: bool,
}

rxpath_core::named! {
    /// Why a loss waits for its deep look.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Obstacle {
        /// The budget of the last five minutes has no room for it.
        Budget => "the budget of the last five minutes has no room for it",
        /// A list of sockets costs so much that it is read once in five minutes.
        Sockets => "a list of sockets takes more than 20 ms of CPU time, and is read once in five minutes",
    }
    /// In words.
    pub fn words(self) -> &'static str
}

/// What to do after a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeepLookAction {
    /// Nothing.
    Rest,
    /// Begin a deep look.
    Begin,
    /// Say that a loss waits for it. At most once in five minutes.
    Say(Obstacle),
}

/// The verdict of a deep look.
#[derive(Debug)]
struct Kept {
    verdict: DiagnosisVerdict,
    /// The verdict of the window that asked for it.
    of: Stage,
    age_s: f64,
}

/// The deep looks of an exporter.
#[derive(Debug)]
pub struct DeepLooks {
    /// Since the last one began.
    since_s: f64,
    /// Since it was last said that a loss waits.
    quiet_s: f64,
    /// CPU time that the next one is expected to need: that of the last one, or less after a long wait.
    cpu_s: f64,
    /// The log has that a loss waits for the budget, since the last one began.
    was_said: bool,
    /// What the loss of the last window waits for.
    waits: Option<Obstacle>,
    /// The verdict of the window for which one is made.
    of: Stage,
    kept: Option<Kept>,
    /// By result, not exported yet.
    counts: [u64; RESULTS.len()],
}

impl Default for DeepLooks {
    fn default() -> Self {
        Self {
            since_s: f64::INFINITY,
            quiet_s: f64::INFINITY,
            cpu_s: FIRST_CPU_S,
            was_said: false,
            waits: None,
            of: Stage::Unknown,
            kept: None,
            counts: [0; RESULTS.len()],
        }
    }
}

impl DeepLooks {
    /// A window is over. A loss that waits leaves a gap in the frame. A window that says nothing of losses neither begins one nor
    /// ends it.
    pub fn window(
        &mut self,
        frame: &mut WatchFrame,
        loss: WindowLoss,
        governor: &Governor,
    ) -> DeepLookAction {
        self.since_s += frame.window_s;
        self.quiet_s += frame.window_s;
        if loss.loses == Some(false) {
            self.give_up();
        }
        // In the first window nobody knows what the budget has room for.
        if loss.loses != Some(true) || self.since_s < PAUSE_S || !governor.knows_cost() {
            return DeepLookAction::Rest;
        }
        let Some(obstacle) = self.obstacle(loss, governor) else {
            (self.since_s, self.waits, self.was_said) = (0.0, None, false);
            self.of = frame.verdict.as_ref().map_or(Stage::Unknown, |verdict| verdict.stage);
            return DeepLookAction::Begin;
        };
        self.waits = Some(obstacle);
        frame.gaps.insert(DEEP_LOOK.to_owned(), obstacle.words().to_owned());
        if self.quiet_s < PAUSE_S {
            return DeepLookAction::Rest;
        }
        self.quiet_s = 0.0;
        // From the second message on, half as much is expected with each: only another deep look can correct what a dear one took.
        if obstacle == Obstacle::Budget && std::mem::replace(&mut self.was_said, true) {
            self.cpu_s = self.cpu_s.min((self.cpu_s / 2.0).max(FIRST_CPU_S));
        }
        DeepLookAction::Say(obstacle)
    }

    fn obstacle(&self, loss: WindowLoss, governor: &Governor) -> Option<Obstacle> {
        if loss.has_dear_list {
            return Some(Obstacle::Sockets);
        }
        (!governor.has_room(self.cpu_s)).then_some(Obstacle::Budget)
    }

    /// The loss was over before its deep look could be made.
    fn give_up(&mut self) {
        match self.waits.take() {
            None => {}
            Some(Obstacle::Budget) => self.counts[BUDGET] += 1,
            Some(Obstacle::Sockets) => self.counts[FAILED] += 1,
        }
    }

    /// One ended with this verdict, and took so much CPU time.
    pub fn made(&mut self, verdict: DiagnosisVerdict, cpu_s: f64) {
        self.counts[MADE] += 1;
        self.cpu_s = cpu_s;
        let decides = !matches!(verdict.stage, Stage::Nothing | Stage::Unknown);
        self.kept = decides.then_some(Kept { verdict, of: self.of, age_s: 0.0 });
    }

    /// One could not be made.
    pub fn failed(&mut self) {
        self.counts[FAILED] += 1;
    }

    /// Puts the verdict of the last deep look in place of that of this window, as long as the same loss lasts: the window says
    /// the same stage as the one that asked for it, the stage that was found, or that it is unknown. A verdict that is surer than it
    /// stays.
    pub fn judge(&mut self, frame: &mut WatchFrame, loses: bool) {
        let Some(kept) = &mut self.kept else { return };
        kept.age_s += frame.window_s;
        if kept.age_s > PAUSE_S {
            self.kept = None;
            return;
        }
        let Some(counted) = frame.verdict.as_ref().filter(|_| loses) else { return };
        let is_same = [kept.of, kept.verdict.stage, Stage::Unknown].contains(&counted.stage);
        if !is_same || counted.confidence > kept.verdict.confidence {
            return;
        }
        let mut verdict = kept.verdict.clone();
        verdict.evidence.push(EvidenceLine {
            text: format!(
                "found by a deep look of {LENGTH_S:.0} s, within the {:.0} s before the end of this window",
                kept.age_s + LENGTH_S
            ),
            source: "rxpath export".into(),
        });
        frame.verdict = Some(verdict);
    }
}

impl Families {
    /// What became of deep looks since the last call, and whether one is left out to keep the budget.
    pub fn deep_looks(&self, looks: &mut DeepLooks) {
        for (result, count) in RESULTS.iter().zip(std::mem::take(&mut looks.counts)) {
            self.add(DEEP_LOOKS, &[result], count as f64);
        }
        let is_shed = looks.waits == Some(Obstacle::Budget);
        self.set(SHED, &[DEEP_LOOK], f64::from(is_shed));
    }
}

#[cfg(test)]
mod tests;
