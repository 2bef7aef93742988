//! Progress of a run on stderr: a bar on a terminal, plain lines otherwise.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rxpath_core::number::{counted, si};
use rxpath_lab::plan::RunPlan;
use rxpath_lab::run::progress::Progress;
use rxpath_record::manifest::Trial;
use rxpath_record::metric;

/// Draws a bar or prints lines.
#[derive(Default)]
pub struct Bars {
    /// Whether stderr is a terminal.
    draws: bool,
    planned: usize,
    /// Trials if all blocks and pairs are run.
    most: usize,
    /// How long the run may take at most.
    limit: Duration,
    /// Trials of the plan, and repeats, that have ended. Those of a search for a capacity are neither.
    done: usize,
    /// Void trials that were or will be repeated.
    repeats: usize,
    /// When the first of these began.
    started: Option<Instant>,
    variant: String,
}

impl Bars {
    /// Chooses the form by the type of stderr.
    pub fn new() -> Self {
        let mut bars = Self::default();
        bars.draws = io::stderr().is_terminal();
        bars
    }

    fn say(&self, text: &str) {
        self.clear();
        crate::note!("{text}");
    }

    /// Trials so far and those that are left.
    fn of(&self) -> usize {
        (self.planned + self.repeats).max(self.done)
    }

    fn spent(&self) -> Duration {
        self.started.map_or(Duration::ZERO, |started| started.elapsed())
    }

    /// Draws the bar again, in its line.
    fn draw(&self, doing: &str) {
        if self.draws {
            let full = BAR * self.done / self.of().max(1);
            let (seconds, doing) = (self.spent().as_secs(), doing.chars().take(40));
            let doing: String = doing.collect();
            let bar = format!("{:░<BAR$}", "█".repeat(full));
            write(&format!("{CLEAR}{bar} {}/{} {seconds}s {doing}", self.done, self.of()));
        }
    }

    fn clear(&self) {
        if self.draws {
            write(CLEAR);
        }
    }
}

/// Columns of the bar.
const BAR: usize = 24;

/// To the start of the line, and nothing in it (ECMA-48).
const CLEAR: &str = "\r\x1b[K";

/// A closed stderr is not an error.
fn write(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

impl Progress for Bars {
    fn planned(&mut self, plan: &RunPlan, directory: &Path) {
        (self.planned, self.most) = (plan.trials.len(), plan.trials_at_most as usize);
        self.limit = Duration::from_nanos(plan.at_most.0);
        self.say(&format!("{}; run directory: {}", plan.length(), directory.display()));
    }

    fn trial_started(&mut self, _: u32, block: u32, variant: &str) {
        self.variant = variant.into();
        // Trials of a search come before, and do not end here.
        if self.done == 0 {
            self.started = Some(Instant::now());
        }
        self.draw(&format!("block {block}: {variant}"));
    }

    fn phase(&mut self, phase: &str) {
        self.draw(&format!("{}: {phase}", self.variant));
    }

    fn found(&mut self, what: &str) {
        self.say(what);
    }

    fn trial_ended(&mut self, trial: &Trial) {
        let end = match &trial.void {
            Some(why) => format!("void, to be repeated: {why}"),
            None => format!("{}, grade {:?} ({})", main(trial), trial.grade, disturbed(trial)),
        };
        self.repeats += usize::from(trial.void.is_some());
        self.done += 1;
        let extent = Extent {
            done: self.done,
            least: self.planned + self.repeats,
            most: self.most + self.repeats,
        };
        self.say(&format!(
            "trial {} block {} {}: {end}{}",
            extent.text(),
            trial.block,
            trial.variant,
            extent.outlook(self.repeats, self.spent(), self.limit)
        ));
        self.draw(&trial.variant);
    }
}

/// How far a run is: blocks are added to the least number of trials until the comparisons are decided.
#[derive(Clone, Copy)]
struct Extent {
    done: usize,
    least: usize,
    most: usize,
}

impl Extent {
    /// `3/8`, `3 of at least 8`, `9 of at most 62`.
    fn text(self) -> String {
        let Self { done, least, most } = self;
        match (done <= least, most > least) {
            (true, true) => format!("{done} of at least {least}"),
            (false, _) if most > done => format!("{done} of at most {most}"),
            _ => format!("{done}/{}", least.max(done)),
        }
    }

    /// `; 2 repeats, about 12 s left`: from the trials so far, which took `spent`. A run takes `limit` at most.
    fn outlook(self, repeats: usize, spent: Duration, limit: Duration) -> String {
        let Self { done, least, most } = self;
        let left =
            |of: usize| spent.as_secs_f64() / done.max(1) as f64 * of.saturating_sub(done) as f64;
        let mut parts = Vec::new();
        parts.extend((repeats > 0).then(|| counted(repeats as u64, "repeat")));
        let (how, left_s) = match (least > done, most > least) {
            (true, true) => ("at least", left(least)),
            (true, false) => ("about", left(least)),
            (false, _) => ("at most", left(most)),
        };
        let limit_s = limit.saturating_sub(spent).as_secs_f64();
        if least.max(most) > done && limit_s < left_s {
            parts.push(format!("limited by time: at most {limit_s:.0} s left"));
        } else if least.max(most) > done {
            parts.push(format!("{how} {left_s:.0} s left"));
        }
        if parts.is_empty() { String::new() } else { format!("; {}", parts.join(", ")) }
    }
}

/// The basis of the grade.
fn disturbed(trial: &Trial) -> String {
    if trial.noise.is_empty() { "quiet".into() } else { trial.noise.join("; ") }
}

/// The main rate of the trial, as text.
fn main(trial: &Trial) -> String {
    let names = ["delivered_pps", "achieved_rps", "achieved_tps", "delivered_bps"];
    let found = names.iter().find_map(|name| Some((*name, *trial.metrics.get(*name)?)));
    found.map_or_else(
        || "no rate".into(),
        |(name, rate)| format!("{} {} {}", si(rate), metric::unit(name), metric::verb(name)),
    )
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_the_time_left_and_why_the_total_grew() {
        let told = |done, [least, most]: [usize; 2], repeats| {
            let extent = Extent { done, least, most };
            let (spent, limit) = (Duration::from_secs(20), Duration::from_secs(60));
            extent.text() + &extent.outlook(repeats, spent, limit)
        };
        assert_eq!(told(5, [10, 10], 0), "5/10; about 20 s left");
        assert_eq!(told(5, [10, 10], 1), "5/10; 1 repeat, about 20 s left");
        assert_eq!(told(10, [10, 10], 2), "10/10; 2 repeats");
        assert_eq!(told(10, [10, 10], 0), "10/10");
        // Blocks may be added.
        assert_eq!(told(5, [10, 12], 0), "5 of at least 10; at least 20 s left");
        assert_eq!(told(10, [10, 12], 0), "10 of at least 10; at most 4 s left");
        assert_eq!(told(11, [10, 12], 0), "11 of at most 12; at most 2 s left");
        assert_eq!(told(12, [10, 12], 0), "12/12");
        // The time limit ends it.
        assert_eq!(told(10, [8, 500], 0), "10 of at most 500; limited by time: at most 40 s left");
        assert_eq!(told(5, [90, 90], 0), "5/90; limited by time: at most 40 s left");
        // Trials without a plan.
        assert_eq!(told(13, [10, 12], 0), "13/13");
    }

    #[test]
    fn trials_of_a_search_before_the_blocks_are_not_counted() {
        let mut bars = Bars::new();
        (bars.planned, bars.most) = (2, 2);
        for number in 0..20 {
            bars.trial_started(number, 1, "a");
        }
        assert_eq!((bars.done, bars.of()), (0, 2));
        bars.trial_ended(&Trial { trial: 19, ..Trial::default() });
        assert_eq!((bars.done, bars.of()), (1, 2));
    }
}
