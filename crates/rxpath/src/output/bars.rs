//! Progress of a run on stderr: a bar on a terminal, plain lines otherwise.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rxpath_core::number::si;
use rxpath_lab::plan::Plan;
use rxpath_lab::run::progress::Progress;
use rxpath_record::manifest::Trial;
use rxpath_record::metric;

/// Draws a bar or prints lines.
pub struct Bars {
    /// Whether stderr is a terminal.
    draws: bool,
    planned: usize,
    done: usize,
    /// Void trials that were or will be repeated.
    repeats: usize,
    /// When the first trial began.
    started: Option<Instant>,
    variant: String,
}

impl Bars {
    /// Chooses the form by the type of stderr.
    pub fn new() -> Self {
        let draws = io::stderr().is_terminal();
        Self { draws, planned: 0, done: 0, repeats: 0, started: None, variant: String::new() }
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
    fn planned(&mut self, plan: &Plan, directory: &Path) {
        self.planned = plan.trials.len();
        let (trials, expected) = (self.planned, plan.expected);
        self.say(&format!(
            "{trials} trials, about {expected}; run directory: {}",
            directory.display()
        ));
    }

    fn trial_started(&mut self, trial: u32, block: u32, variant: &str) {
        self.variant = variant.into();
        self.started.get_or_insert_with(Instant::now);
        self.done = trial as usize;
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
        self.done = trial.trial as usize + 1;
        let (done, of) = (self.done, self.of());
        self.say(&format!(
            "trial {done}/{of} block {} {}: {end}{}",
            trial.block,
            trial.variant,
            outlook((done, of), self.repeats, self.spent())
        ));
        self.draw(&trial.variant);
    }
}

/// `; 2 repeats, about 12 s left`: from the trials so far.
fn outlook((done, of): (usize, usize), repeats: usize, spent: Duration) -> String {
    let mut parts = Vec::new();
    if repeats > 0 {
        parts.push(format!("{repeats} {}", if repeats == 1 { "repeat" } else { "repeats" }));
    }
    if of > done {
        let left = spent.as_secs_f64() / done.max(1) as f64 * (of - done) as f64;
        parts.push(format!("about {left:.0} s left"));
    }
    if parts.is_empty() { String::new() } else { format!("; {}", parts.join(", ")) }
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
        let spent = Duration::from_secs(20);
        assert_eq!(outlook((5, 10), 0, spent), "; about 20 s left");
        assert_eq!(outlook((5, 10), 1, spent), "; 1 repeat, about 20 s left");
        assert_eq!(outlook((10, 10), 2, spent), "; 2 repeats");
        assert_eq!(outlook((10, 10), 0, spent), "");
    }
}
