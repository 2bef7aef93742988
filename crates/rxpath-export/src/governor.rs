//! What the exporter may cost, and what it gives up to keep that: a state machine without a clock.
//!
//! The cost is that of its threads and of its BPF programs, on all CPUs. Within a level, the probes' share follows what is
//! left of the budget. Where that is not enough the next level has longer windows, then less to measure. Back it goes
//! after a long time far below the budget, so that nothing comes and goes with the load of a minute.

use std::collections::VecDeque;

/// The cost that is reported is that of this time.
const LONG_S: f64 = 300.0;
/// The cost that is acted on is that of this time.
const SHORT_S: f64 = 60.0;
/// A level is left for a cheaper one after this time at least.
const DOWN_S: f64 = 30.0;
/// And for a dearer one after this time.
const UP_S: f64 = 600.0;
/// Below this share of the budget a dearer level fits in.
const CALM: f64 = 0.5;
/// Share of the budget that is aimed at.
const AIM: f64 = 0.85;
/// Share of the budget that the probes take at the beginning, least and most.
const PROBES: f64 = 0.4;
const PROBES_LEAST: f64 = 0.05;
const PROBES_MOST: f64 = 0.7;
/// What the probes' share is multiplied with when the cost is above or below the aim.
const LESS: f64 = 0.75;
const MORE: f64 = 1.15;

/// What is measured, and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// Windows are this many times as long as asked for.
    pub stretch: u32,
    /// What the probes may take of one CPU.
    pub probes_cpu_ratio: f64,
    /// The latency of stages is measured.
    pub with_latency: bool,
    /// BPF probes run.
    pub with_probes: bool,
}

/// The levels, from the dearest to the cheapest: how often, with latency, with probes.
const LEVELS: [(u32, bool, bool); 6] = [
    (1, true, true),
    (2, true, true),
    (3, true, true),
    (3, false, true),
    (6, false, true),
    (6, false, false),
];

/// What can be left out, as a metric names it, the first to go first.
pub const SHEDS: [&str; 3] = ["short windows", "latency of stages", "BPF probes"];

/// The cost of a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowCost {
    /// Its length.
    pub window_s: f64,
    /// CPU time of the threads.
    pub threads_s: f64,
    /// CPU time of the BPF programs, the entry of each run included.
    pub programs_s: f64,
}

/// Keeps the budget.
#[derive(Debug)]
pub struct Governor {
    budget: f64,
    costs: VecDeque<WindowCost>,
    level: usize,
    /// Since the level was entered.
    here_s: f64,
    /// For how long the cost has been far below the budget.
    calm_s: f64,
    /// The probes' share of the budget.
    probes: f64,
}

impl Governor {
    /// With this budget, in CPUs: 0.01 is a hundredth of one.
    pub fn new(budget: f64) -> Self {
        Self { budget, costs: VecDeque::new(), level: 0, here_s: 0.0, calm_s: 0.0, probes: PROBES }
    }

    /// The budget.
    pub fn budget(&self) -> f64 {
        self.budget
    }

    /// What to do now.
    pub fn course(&self) -> Course {
        let (stretch, with_latency, with_probes) = LEVELS[self.level.min(LEVELS.len() - 1)];
        let probes_cpu_ratio = self.probes * self.budget;
        Course { stretch, probes_cpu_ratio, with_latency, with_probes }
    }

    /// Which of [`SHEDS`] is left out now.
    pub fn shed(&self) -> [bool; SHEDS.len()] {
        let course = self.course();
        [course.stretch > 1, !course.with_latency, !course.with_probes]
    }

    /// The cost of the last five minutes, in CPUs; of the whole time before.
    pub fn cost(&self) -> f64 {
        self.mean(LONG_S)
    }

    /// A window is over.
    pub fn window(&mut self, cost: WindowCost) {
        self.costs.push_back(cost);
        let mut whole: f64 = self.costs.iter().map(|cost| cost.window_s).sum();
        while let Some(oldest) = self.costs.front().filter(|cost| whole - cost.window_s >= LONG_S) {
            whole -= oldest.window_s;
            self.costs.pop_front();
        }
        self.here_s += cost.window_s;
        let now = self.mean(SHORT_S.min(self.here_s)) / self.budget.max(1e-9);
        self.calm_s = if now < CALM { self.calm_s + cost.window_s } else { 0.0 };
        let is_least = self.probes <= PROBES_LEAST;
        self.probes = if now > 1.0 {
            self.probes * LESS
        } else if now < AIM {
            self.probes * MORE
        } else {
            self.probes
        };
        self.probes = self.probes.clamp(PROBES_LEAST, PROBES_MOST);
        if now > 1.0 && is_least && self.here_s >= DOWN_S && self.level + 1 < LEVELS.len() {
            self.enter(self.level + 1);
        } else if self.calm_s >= UP_S && self.level > 0 {
            self.enter(self.level - 1);
        }
    }

    fn enter(&mut self, level: usize) {
        (self.level, self.here_s, self.calm_s) = (level, 0.0, 0.0);
        self.probes = PROBES_LEAST;
    }

    /// Over the windows of so much time, the newest.
    fn mean(&self, over_s: f64) -> f64 {
        let (mut window_s, mut cpu_s) = (0.0, 0.0);
        for cost in self.costs.iter().rev() {
            window_s += cost.window_s;
            cpu_s += cost.threads_s + cost.programs_s;
            if window_s >= over_s {
                break;
            }
        }
        if window_s > 0.0 { cpu_s / window_s } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BUDGET: f64 = 0.01;

    /// Windows of 10 s on a host on which a window costs the threads so much, and the probes what they may take.
    fn windows(governor: &mut Governor, count: u32, threads_s: f64, latency: f64) {
        for _ in 0..count {
            let course = governor.course();
            let window_s = 10.0 * f64::from(course.stretch);
            let per_packet = if course.with_latency { latency } else { 0.0 };
            let programs =
                if course.with_probes { course.probes_cpu_ratio + per_packet } else { 0.0 };
            governor.window(WindowCost { window_s, threads_s, programs_s: programs * window_s });
        }
    }

    #[test]
    fn a_host_that_costs_little_is_measured_with_everything() {
        let mut governor = Governor::new(BUDGET);
        windows(&mut governor, 100, 0.01, 0.0);
        assert_eq!((governor.level, governor.shed()), (0, [false; 3]));
        assert!(governor.course().probes_cpu_ratio > 0.6 * BUDGET, "{governor:?}");
        assert!(governor.cost() < BUDGET);
    }

    #[test]
    fn longer_windows_come_first_then_latency_and_the_probes_last() {
        let mut governor = Governor::new(BUDGET);
        // A window costs a tenth of a second: a hundredth of 10 s, with nothing left for probes.
        windows(&mut governor, 60, 0.1, 0.0);
        assert_eq!(governor.shed(), [true, false, false], "{governor:?}");
        assert!(governor.cost() < BUDGET, "{governor:?}");
        let mut governor = Governor::new(BUDGET);
        windows(&mut governor, 60, 0.01, 0.02);
        assert_eq!(governor.shed(), [true, true, false], "{governor:?}");
        let mut governor = Governor::new(BUDGET);
        windows(&mut governor, 60, 2.0, 0.0);
        assert_eq!(governor.shed(), [true; 3]);
    }

    #[test]
    fn it_comes_back_only_after_ten_calm_minutes_a_level() {
        let mut governor = Governor::new(BUDGET);
        windows(&mut governor, 60, 0.01, 0.02);
        let level = governor.level;
        let mut calm_s = 0.0;
        while governor.level == level {
            // Below the half of the budget whatever the probes take.
            governor.window(WindowCost { window_s: 10.0, threads_s: 0.01, programs_s: 0.01 });
            calm_s += 10.0;
            assert!(calm_s < 2.0 * UP_S, "{governor:?}");
        }
        assert!(calm_s >= UP_S, "{calm_s}");
        assert_eq!(governor.level, level - 1);
    }

    proptest! {
        #[test]
        fn what_the_cheapest_level_can_keep_is_kept(
            budget in 0.001f64..0.1, threads in 0.0f64..0.9, latency in 0.0f64..3.0, load in 0.0f64..1.0,
        ) {
            let mut governor = Governor::new(budget);
            // So that the cheapest level fits.
            let threads_s = threads * budget * 60.0;
            for window in 0..400 {
                let course = governor.course();
                let window_s = 10.0 * f64::from(course.stretch);
                let dear = if course.with_latency { latency * budget * load } else { 0.0 };
                let ratio = if course.with_probes { course.probes_cpu_ratio + dear } else { 0.0 };
                governor.window(WindowCost { window_s, threads_s, programs_s: ratio * window_s });
                prop_assert!(course.probes_cpu_ratio <= PROBES_MOST * budget + 1e-12);
                if window > 100 {
                    prop_assert!(governor.cost() <= 1.35 * budget, "{governor:?}");
                }
            }
        }
    }
}
