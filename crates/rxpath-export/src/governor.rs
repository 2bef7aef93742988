//! What the exporter may cost, and what it gives up to keep that: a state machine without a clock.
//!
//! The cost is that of its threads and of its BPF programs, on all CPUs. Within a level, the probes may take what the threads
//! leave of the budget. Where that is not enough the next level has longer windows, then less to measure. Back it goes
//! after a long time far below the budget, so that nothing comes and goes with the load of a minute.
//!
//! Probes count in turns. On a host with many CPUs the shortest turn costs more than the probes may take in a window, and a pause
//! of up to five minutes pays for it. So what a turn took is judged over the time that pays for it. Only what no pause can pay for
//! is too much.

use std::collections::VecDeque;

/// The budget holds over this time, and the cost that is reported is that of it. No pause of the probes is longer, so what a turn
/// took is paid for within it.
const LONG_S: f64 = 300.0;
/// The threads' cost that is acted on is that of this time: it comes again with each window, of at most a minute by default.
const SHORT_S: f64 = 60.0;
/// A level is left for a cheaper one after this time at least: three windows.
const DOWN_S: f64 = 30.0;
/// And for a dearer one after this time: twice as long as the cost of the level before is remembered.
const UP_S: f64 = 600.0;
/// Below this share of the budget a dearer level fits in: its windows are at most twice as frequent.
const CALM: f64 = 0.5;
/// Share of the budget that is aimed at. The rest is for what comes seldom: a check of the settings, a list of sockets.
const AIM: f64 = 0.85;
/// Share of the budget that the probes take at the beginning, least and most. The least keeps some turns
/// an hour on a large host; the most leaves something for the threads, which make the windows.
const PROBES: f64 = 0.4;
const PROBES_LEAST: f64 = 0.05;
const PROBES_MOST: f64 = 0.7;
/// So many turns may be owed at the same time: those of the two groups that have turns of their own (drops, and all others).
const TURNS_OWED: f64 = 2.0;

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

/// A window, as it is judged.
#[derive(Clone, Copy, Debug)]
struct Judged {
    cost: WindowCost,
    /// What its programs took and no pause pays for; 0 for windows of the level before.
    beyond_s: f64,
    /// CPU time of a deep look.
    look_s: f64,
}

impl Judged {
    fn cpu_s(&self) -> f64 {
        self.cost.threads_s + self.cost.programs_s + self.look_s
    }
}

/// Keeps the budget.
#[derive(Debug)]
pub struct Governor {
    budget: f64,
    windows: VecDeque<Judged>,
    level: usize,
    /// Since the level was entered.
    here_s: f64,
    /// For how long the cost has been far below the budget.
    calm_s: f64,
    /// The probes' share of the budget.
    probes: f64,
    /// CPU time that turns took and that their pauses have not paid for yet.
    owed_s: f64,
    /// CPU time of a deep look in the running window.
    look_s: f64,
}

impl Governor {
    /// With this budget, in CPUs: 0.01 is a hundredth of one.
    pub fn new(budget: f64) -> Self {
        Self {
            budget,
            windows: VecDeque::new(),
            level: 0,
            here_s: 0.0,
            calm_s: 0.0,
            probes: PROBES,
            owed_s: 0.0,
            look_s: 0.0,
        }
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
        self.mean(LONG_S, Judged::cpu_s)
    }

    /// Whether a window was measured.
    pub fn knows_cost(&self) -> bool {
        !self.windows.is_empty()
    }

    /// Whether the budget of the last five minutes has room for so much CPU time. Before the start nothing was spent; an unknown
    /// cost leaves no room.
    pub fn has_room(&self, cpu_s: f64) -> bool {
        let known_s = self.windows.iter().map(|window| window.cost.window_s).sum::<f64>();
        let spent_s = self.cost() * known_s.min(LONG_S);
        self.knows_cost() && spent_s + cpu_s <= self.budget * LONG_S
    }

    /// A deep look took so much CPU time in the window that is over next. The probes pay for it within five minutes. It changes no
    /// level: a cheaper one would not make it cheaper.
    pub fn looked(&mut self, cpu_s: f64) {
        self.look_s += cpu_s;
    }

    /// A window is over.
    pub fn window(&mut self, cost: WindowCost) {
        self.here_s += cost.window_s;
        self.keep(cost);
        let budget = self.budget.max(1e-9);
        let others = self.others() / budget;
        let looks_s: f64 = self.windows.iter().map(|window| window.look_s).sum();
        let looks = looks_s / LONG_S / budget;
        self.probes = (AIM - others - looks).clamp(PROBES_LEAST, PROBES_MOST);
        let whole = self.mean(LONG_S.min(self.here_s), Judged::cpu_s);
        self.calm_s = if whole < CALM * budget { self.calm_s + cost.window_s } else { 0.0 };
        let is_over = others + PROBES_LEAST > 1.0;
        if is_over && self.here_s >= DOWN_S && self.level + 1 < LEVELS.len() {
            self.enter(self.level + 1);
        } else if self.calm_s >= UP_S && self.level > 0 {
            self.enter(self.level - 1);
        }
    }

    /// Keeps the windows of the last five minutes, with this one.
    fn keep(&mut self, cost: WindowCost) {
        let mut whole: f64 = self.windows.iter().map(|window| window.cost.window_s).sum();
        whole += cost.window_s;
        while let Some(oldest) =
            self.windows.front().filter(|window| whole - window.cost.window_s >= LONG_S)
        {
            whole -= oldest.cost.window_s;
            self.windows.pop_front();
        }
        let (beyond_s, look_s) = (self.beyond(cost), std::mem::take(&mut self.look_s));
        self.windows.push_back(Judged { cost, beyond_s, look_s });
    }

    /// What the programs of the newest window took and no pause pays for. The rest is owed, and paid by what the probes may take
    /// as time passes.
    fn beyond(&mut self, cost: WindowCost) -> f64 {
        let may_take = self.probes * self.budget;
        let taken = self.windows.iter().map(|window| window.cost.programs_s);
        let payable_s = (may_take * LONG_S).min(TURNS_OWED * taken.fold(cost.programs_s, f64::max));
        let paid_s = may_take * cost.window_s;
        let fits_s = cost.programs_s.min((payable_s - self.owed_s).max(0.0) + paid_s);
        self.owed_s = (self.owed_s + fits_s - paid_s).max(0.0);
        cost.programs_s - fits_s
    }

    /// What the probes cannot save by pauses, in CPUs: the threads, and what is beyond all pauses. That comes at most once in five
    /// minutes where pauses are the longest, so it is of that time.
    fn others(&self) -> f64 {
        let threads = self.mean(SHORT_S.min(self.here_s), |window| window.cost.threads_s);
        let beyond_s: f64 = self.windows.iter().map(|window| window.beyond_s).sum();
        threads + beyond_s / self.here_s.clamp(SHORT_S, LONG_S)
    }

    /// With the least for the probes: what the level costs is not known.
    fn enter(&mut self, level: usize) {
        (self.level, self.here_s, self.calm_s, self.owed_s) = (level, 0.0, 0.0, 0.0);
        self.probes = PROBES_LEAST;
        self.windows.iter_mut().for_each(|window| window.beyond_s = 0.0);
    }

    /// CPUs over the windows of so much time, the newest.
    fn mean(&self, over_s: f64, cpu: impl Fn(&Judged) -> f64) -> f64 {
        let (mut window_s, mut cpu_s) = (0.0, 0.0);
        for window in self.windows.iter().rev() {
            window_s += window.cost.window_s;
            cpu_s += cpu(window);
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

    /// A host of which each window costs the threads the same, and each turn the programs.
    struct Host {
        threads_s: f64,
        /// CPU time of a turn; with the latency of stages so many times as much more.
        turn_s: f64,
        latency: f64,
        now_s: f64,
        /// When the next turn begins.
        turn_at_s: f64,
    }

    impl Host {
        fn new(threads_s: f64, turn_s: f64, latency: f64) -> Self {
            Self { threads_s, turn_s, latency, now_s: 0.0, turn_at_s: 0.0 }
        }

        fn turn(&self, course: Course) -> f64 {
            self.turn_s * if course.with_latency { 1.0 + self.latency } else { 1.0 }
        }

        /// A window of 10 s, or as many times as long. After a turn comes the pause that pays for it, of at most five minutes.
        fn window(&mut self, governor: &mut Governor) {
            let course = governor.course();
            let window_s = 10.0 * f64::from(course.stretch);
            self.now_s += window_s;
            let (turn_s, mut programs_s) = (self.turn(course), 0.0);
            while course.with_probes && self.turn_at_s < self.now_s {
                programs_s += turn_s;
                self.turn_at_s += (turn_s / course.probes_cpu_ratio).clamp(1.0, LONG_S);
            }
            if !course.with_probes {
                self.turn_at_s = self.now_s;
            }
            governor.window(WindowCost { window_s, threads_s: self.threads_s, programs_s });
        }
    }

    #[test]
    fn a_turn_that_a_pause_pays_for_sheds_nothing() {
        // A turn takes as much as half of the budget over five minutes.
        let mut governor = Governor::new(BUDGET);
        let mut host = Host::new(0.01, 0.5 * LONG_S * BUDGET, 0.0);
        for _ in 0..360 {
            host.window(&mut governor);
            assert_eq!(governor.shed(), [false; 3], "{governor:?}");
        }
    }

    #[test]
    fn a_turn_that_takes_more_than_five_minutes_allow_is_shed_and_tried_again_seldom() {
        let mut governor = Governor::new(BUDGET);
        let mut host = Host::new(0.01, 1.5 * LONG_S * BUDGET, 0.0);
        let (mut with_s, mut without_s) = (0.0, 0.0);
        while host.now_s < 6.0 * 3600.0 {
            let (with_probes, begun_s) = (governor.course().with_probes, host.now_s);
            host.window(&mut governor);
            // Levels are left one after another, each after its first turn.
            if begun_s > 3600.0 {
                *(if with_probes { &mut with_s } else { &mut without_s }) += host.now_s - begun_s;
            }
        }
        assert!(with_s > 0.0 && without_s > 5.0 * with_s, "{with_s} {without_s} {governor:?}");
        // Only latency is too dear: it alone goes, with longer windows.
        let mut governor = Governor::new(BUDGET);
        let mut host = Host::new(0.01, 0.3 * LONG_S * BUDGET, 9.0);
        (0..360).for_each(|_| host.window(&mut governor));
        assert_eq!(governor.shed(), [true, true, false], "{governor:?}");
    }

    #[test]
    fn a_deep_look_is_part_of_the_cost_and_sheds_nothing() {
        let mut governor = Governor::new(BUDGET);
        windows(&mut governor, 30, 0.01, 0.0);
        let (before, probes) = (governor.cost(), governor.course().probes_cpu_ratio);
        assert!(governor.has_room(0.1), "{governor:?}");
        // In two windows, as much as the budget has for two minutes.
        for _ in 0..2 {
            governor.looked(0.6);
            windows(&mut governor, 1, 0.01, 0.0);
            assert_eq!(governor.shed(), [false; 3], "{governor:?}");
            assert!(governor.course().probes_cpu_ratio <= probes, "{governor:?}");
        }
        assert!((governor.cost() - before - 1.2 / LONG_S).abs() < 0.1 * BUDGET, "{governor:?}");
        assert!(!governor.has_room(0.1), "the budget of these five minutes is spent: {governor:?}");
        windows(&mut governor, 30, 0.01, 0.0);
        assert!(governor.has_room(0.1), "{governor:?}");
    }

    #[test]
    fn what_does_not_fit_into_five_minutes_never_has_room() {
        let mut governor = Governor::new(BUDGET);
        assert!(!governor.has_room(0.0), "what a window costs is not known");
        governor.window(WindowCost { window_s: 10.0, threads_s: 0.0, programs_s: 0.0 });
        assert!(governor.has_room(LONG_S * BUDGET) && !governor.has_room(1.01 * LONG_S * BUDGET));
        windows(&mut governor, 100, 0.01, 0.0);
        assert!(!governor.has_room(LONG_S * BUDGET), "{governor:?}");
    }

    #[test]
    fn before_the_start_nothing_was_spent() {
        let mut governor = Governor::new(BUDGET);
        // A flood: twice the budget in the first 20 s, of which a fifteenth of the five minutes is over.
        governor.window(WindowCost { window_s: 20.0, threads_s: 0.1, programs_s: 0.3 });
        assert!(governor.has_room(0.1), "{governor:?}");
        for _ in 0..8 {
            governor.window(WindowCost { window_s: 20.0, threads_s: 0.1, programs_s: 0.3 });
        }
        assert!(!governor.has_room(0.1), "{governor:?}");
    }

    proptest! {
        /// The budget is a bar: over any five minutes after the first ten minutes the cost is no more than that and one
        /// shortest window, which is one reading and one turn of each group. The host here has one group, the exporter two. A
        /// flood that makes turns dearer or cheaper changes nothing.
        #[test]
        fn what_the_cheapest_level_can_keep_is_kept(
            budget in 0.001f64..0.1, threads in 0.0f64..0.9, turn_log in -4.0f64..0.6, latency in 0.0f64..4.0,
            flood_log in -2.0f64..2.0, flood_at_s in 0.0f64..10_000.0,
        ) {
            let mut governor = Governor::new(budget);
            // So that the cheapest level fits.
            let threads_s = threads * budget * 60.0;
            let mut host = Host::new(threads_s, 10f64.powf(turn_log) * budget * LONG_S, latency);
            let (mut is_flooded, mut dearest_s) = (false, 0.0f64);
            for _ in 0..400 {
                if host.now_s > flood_at_s && !is_flooded {
                    host.turn_s *= 10f64.powf(flood_log);
                    is_flooded = true;
                }
                let course = governor.course();
                prop_assert!(course.probes_cpu_ratio <= PROBES_MOST * budget + 1e-12);
                dearest_s = dearest_s.max(host.turn(course));
                host.window(&mut governor);
                if host.now_s > 600.0 + LONG_S + 60.0 {
                    let most = budget + (threads_s + dearest_s) / LONG_S;
                    prop_assert!(governor.cost() <= most + 1e-12, "{most} {governor:?}");
                }
            }
        }
    }
}
