//! The search of `rxpath tune auto` on made-up hosts: what it finds, what it keeps in error, what it needs.
//!
//! Limits are the acceptance of 200 searches less three standard errors of the number that runs here. `make stats`
//! runs 200 of each (RXPATH_AUTO_RUNS).

mod repairs;
mod surface;
mod values;

use rxpath_stats::Scale;
use rxpath_stats::scale::Good;
use rxpath_tune::auto::report::Why;

use rxpath_tune::auto::{
    AutoOutcome, AutoResult, Broke, Candidate, Failed, GuardLimit, Measure, MetricGuard, Phase,
    Plan, Prior, Risk, TrialReading, search,
};
use surface::{Kind, Surface, Trials, candidate, numbers};

/// Trials of each search.
const BUDGET: usize = 300;
const NOISE: f64 = 0.05;

fn runs() -> u64 {
    let asked = std::env::var("RXPATH_AUTO_RUNS").ok();
    asked.map_or(40, |count| count.parse().unwrap())
}

fn plan<'a>(candidates: &'a [Candidate], guards: &'a [MetricGuard], seed: u64) -> Plan<'a> {
    Plan { candidates, guards, sign: 1.0, error: 0.05, bundle: false, seed }
}

fn searched(trials: &mut Trials<'_>, plan: &Plan<'_>) -> AutoResult {
    match search(trials, plan) {
        Ok(found) => found,
        Err(Failed::TooShort(short)) => panic!("{short}"),
        Err(Failed::Measure(never, _)) => match never {},
    }
}

fn kept(found: &AutoResult) -> Vec<usize> {
    numbers(found.kept.iter().map(|kept| &kept.name))
}

/// Over many hosts.
#[derive(Debug, Default)]
struct Tried {
    runs: f64,
    near_best: f64,
    useless: f64,
    kept_any: f64,
    trials: f64,
}

#[derive(Clone, Copy)]
struct Case {
    kind: Kind,
    noise: f64,
    theft: f64,
    bundle: bool,
}

fn tried(case: Case) -> Tried {
    let mut all = Tried { runs: runs() as f64, ..Tried::default() };
    for seed in 0..runs() {
        let host = Surface::new(case.kind, 900_000 + seed);
        let value = |on: &[usize]| (host.gain(on), Vec::new());
        let mut trials = Trials::new(&value, case.noise, BUDGET, seed);
        trials.theft = case.theft;
        let candidates = host.candidates();
        let plan = Plan { bundle: case.bundle, ..plan(&candidates, &[], seed) };
        let on = kept(&searched(&mut trials, &plan));
        let without = |left_out: &usize| -> Vec<usize> {
            on.iter().copied().filter(|at| at != left_out).collect()
        };
        let is_useless = |at: &usize| host.gain(&on) - host.gain(&without(at)) <= 0.0;
        all.near_best += f64::from(u8::from(host.best() - host.gain(&on) <= 1.03f64.ln()));
        all.useless += f64::from(u8::from(on.iter().any(is_useless)));
        all.kept_any += f64::from(u8::from(!on.is_empty()));
        all.trials += trials.used / all.runs;
    }
    println!("{:?}, noise {}, theft {}: {all:?}", case.kind, case.noise, case.theft);
    all
}

impl Tried {
    /// Three standard errors of a share of these runs.
    fn tolerance(&self, share: f64) -> f64 {
        3.0 * (share * (1.0 - share) / self.runs).sqrt()
    }

    fn at_least(&self, count: f64, share: f64) {
        let got = count / self.runs;
        assert!(got >= share - self.tolerance(share), "{got} under {share}: {self:?}");
    }

    fn at_most(&self, count: f64, share: f64) {
        let got = count / self.runs;
        assert!(got <= share + self.tolerance(share), "{got} over {share}: {self:?}");
    }
}

fn case(kind: Kind) -> Case {
    Case { kind, noise: NOISE, theft: 0.0, bundle: false }
}

#[test]
fn gains_that_add_up_are_found() {
    let all = tried(case(Kind::Additive));
    all.at_least(all.near_best, 0.74);
    all.at_most(all.useless, 0.09);
    assert!(all.trials <= 300.0, "{all:?}");
}

#[test]
fn settings_that_hide_each_other_are_found_in_part() {
    let all = tried(case(Kind::Bottleneck));
    all.at_least(all.near_best, 0.28);
    all.at_most(all.useless, 0.06);
}

#[test]
fn where_nothing_helps_nothing_is_kept() {
    let all = tried(case(Kind::Null));
    all.at_most(all.kept_any, 0.01);
}

#[test]
fn trials_that_lose_time_to_others_do_not_hide_the_gains() {
    let stolen = |kind| tried(Case { noise: 0.02, theft: 0.2, ..case(kind) });
    let all = stolen(Kind::Additive);
    all.at_least(all.near_best, 0.72);
    let all = stolen(Kind::Bottleneck);
    all.at_least(all.near_best, 0.39);
}

#[test]
fn a_bundle_finds_more() {
    let all = tried(Case { bundle: true, ..case(Kind::Bottleneck) });
    all.at_least(all.near_best, 0.6);
}

/// Two settings over a host: the first gains, and what else it does is up to the case.
fn two(
    value: &dyn Fn(&[usize]) -> (f64, Vec<f64>),
    guards: &[MetricGuard],
    budget: usize,
) -> AutoResult {
    let candidates: Vec<Candidate> = (0..2).map(|at| candidate(at, Prior::NONE)).collect();
    let mut trials = Trials::new(value, 0.01, budget, 5);
    searched(&mut trials, &plan(&candidates, guards, 5))
}

fn latency() -> MetricGuard {
    MetricGuard {
        text: "p99<=+10%".into(),
        metric: "p99".into(),
        good: Good::Down,
        scale: Scale::Ratio,
        limits: vec![GuardLimit::Share(0.1)],
    }
}

#[test]
fn a_gain_that_breaks_a_guard_is_never_kept() {
    let value = |on: &[usize]| {
        let on = if on.contains(&0) { 1.0 } else { 0.0 };
        (0.1 * on, vec![1.2f64.ln() * on])
    };
    for seed in 0..runs() {
        let candidates: Vec<Candidate> = (0..4).map(|at| candidate(at, Prior::NONE)).collect();
        let mut trials = Trials::new(&value, NOISE, 150, seed);
        let found = searched(&mut trials, &plan(&candidates, &[latency()], seed));
        assert!(!kept(&found).contains(&0), "{found:?}");
    }
    let found = two(&value, &[latency()], 100);
    let harms = Why::Harms("p99<=+10%".into());
    assert_eq!(found.dropped.iter().find(|it| it.name == "0").unwrap().why, harms, "{found:?}");
}

#[test]
fn what_stops_the_traffic_is_out_before_the_arrays_and_the_other_is_kept() {
    let stops = |on: &[usize]| {
        (if on.contains(&1) { -3.0 } else { 0.0 } + if on.contains(&0) { 0.2 } else { 0.0 }, vec![])
    };
    let found = two(&stops, &[], 100);
    assert_eq!(kept(&found), [0]);
    assert_eq!(found.dropped[0].why, Why::Harmful);
    let gain = found.gain.unwrap();
    assert!(gain.ratio.interval.low > 1.1 && gain.ratio.interval.high < 1.4, "{gain:?}");
    assert!(found.kept[0].contribution.is_some());
}

#[test]
fn a_gain_without_any_use_is_not_kept() {
    let value = |on: &[usize]| (if on.contains(&0) { 0.002 } else { 0.0 }, vec![]);
    let candidates: Vec<Candidate> = (0..2).map(|at| candidate(at, Prior::NONE)).collect();
    let mut trials = Trials::new(&value, 0.000_1, 100, 5);
    let found = searched(&mut trials, &plan(&candidates, &[], 5));
    assert_eq!(found.ended, AutoOutcome::NothingProven, "{found:?}");
}

#[test]
fn two_that_only_stop_it_together_end_the_search() {
    let both = |on: &[usize]| (if on.len() == 2 { -3.0 } else { 0.0 }, vec![]);
    let found = two(&both, &[], 100);
    assert_eq!(found.ended, AutoOutcome::Unsafe);
    assert!(found.kept.is_empty());
}

/// Six settings of which the first gains; some trials are ended early.
fn six(broke: fn(&[usize]) -> Option<Broke>) -> AutoResult {
    let value = |on: &[usize]| (if on.contains(&0) { 0.2 } else { 0.0 }, vec![]);
    let candidates: Vec<Candidate> = (0..6).map(|at| candidate(at, Prior::NONE)).collect();
    let mut trials = Trials::new(&value, 0.01, 150, 5);
    trials.broke = broke;
    searched(&mut trials, &plan(&candidates, &[], 5))
}

#[test]
fn what_breaks_a_limit_or_is_refused_is_out_after_one_trial_and_the_others_are_searched() {
    let found = six(|on| match on {
        on if on.contains(&5) => Some(Broke::Limit("too much is lost".into())),
        on if on.iter().any(|at| [2, 3, 4].contains(at)) => Some(Broke::Refused("no".into())),
        _ => None,
    });
    assert_eq!((kept(&found), found.ended), (vec![0], AutoOutcome::Kept), "{found:?}");
    let why = |name: &str| &found.dropped.iter().find(|it| it.name == name).unwrap().why;
    assert_eq!(*why("5"), Why::Broke("too much is lost".into()));
    assert_eq!(*why("3"), Why::Refused("no".into()));
}

#[test]
fn three_trials_that_stop_or_break_a_guard_together_end_the_search_and_nothing_is_kept() {
    let alone = six(|on| (!on.is_empty()).then(|| Broke::Stopped("all is lost".into())));
    assert_eq!((alone.ended, alone.trials_count), (AutoOutcome::Unsafe, 3 + 3));
    let together = six(|on| (on.len() > 1).then(|| Broke::Limit("too much is lost".into())));
    assert_eq!((together.ended, together.kept.len()), (AutoOutcome::Unsafe, 0), "{together:?}");
}

#[test]
fn what_breaks_a_guard_alone_is_out_and_the_others_are_searched() {
    let found = six(|on| match on {
        [] | [0] => None,
        _ => Some(Broke::Limit("later than the guard allows".into())),
    });
    assert_eq!((found.ended, kept(&found)), (AutoOutcome::Kept, vec![0]), "{found:?}");
}

/// Trials of which one can't be made.
struct Ending<'a>(Trials<'a>, usize);

impl Measure for Ending<'_> {
    type Error = &'static str;

    fn trial(
        &mut self,
        on: &[usize],
        phase: Phase,
        block: usize,
    ) -> Result<TrialReading, &'static str> {
        self.1 = self.1.checked_sub(1).ok_or("interrupted")?;
        self.0.trial(on, phase, block).map_err(|never| match never {})
    }

    fn left(&self) -> usize {
        self.0.left()
    }
}

#[test]
fn a_search_that_is_cut_short_tells_what_it_knows_and_keeps_nothing() {
    let value = |on: &[usize]| (0.3 * on.len() as f64, vec![]);
    let candidates: Vec<Candidate> = (0..2).map(|at| candidate(at, Prior::NONE)).collect();
    let cut = |after| {
        let mut trials = Ending(Trials::new(&value, 0.01, 150, 5), after);
        let plan = plan(&candidates, &[], 5);
        let Err(Failed::Measure("interrupted", known)) = search(&mut trials, &plan) else {
            panic!("its trial can't be made")
        };
        assert_eq!(
            (known.ended, known.trials_count, known.kept.len()),
            (AutoOutcome::CutShort, after, 0)
        );
        assert!(known.gain.is_none() && known.dropped.len() == 2, "{known:?}");
        *known
    };
    let whys = |found: &AutoResult| -> Vec<Why> {
        found.dropped.iter().map(|dropped| dropped.why.clone()).collect()
    };
    assert_eq!(whys(&cut(4)), [Why::NotDecided, Why::NotDecided]);
    // Both are proven by then; the confirmation has begun.
    let late = cut(40);
    assert_eq!(whys(&late), [Why::NotDecided, Why::NotDecided]);
    assert!(late.path.iter().any(|step| step.what.contains("is proven")), "{late:?}");
    assert!(late.dropped.iter().all(|dropped| dropped.effect.is_some()), "{late:?}");
}

#[test]
fn of_two_that_do_the_same_one_is_kept() {
    let either = |on: &[usize]| (if on.is_empty() { 0.0 } else { 0.2 }, vec![]);
    // Only with little noise can a contribution be shown to be under 0.5 %.
    let candidates: Vec<Candidate> = (0..2).map(|at| candidate(at, Prior::NONE)).collect();
    let mut trials = Trials::new(&either, 0.003, 300, 5);
    let found = searched(&mut trials, &plan(&candidates, &[], 5));
    assert_eq!(found.kept.len(), 1, "{found:?}");
    let why: Vec<_> = found.dropped.iter().map(|dropped| dropped.why.clone()).collect();
    assert!(why == [Why::Redundant] || why == [Why::NoGainShown], "{why:?}");
}

#[test]
fn what_disturbs_is_tried_last_and_alone() {
    let value = |on: &[usize]| (0.15 * on.len() as f64, vec![]);
    let mut candidates: Vec<Candidate> = (0..3).map(|at| candidate(at, Prior::NONE)).collect();
    candidates[2].risk = Risk::Link;
    let mut trials = Trials::new(&value, 0.02, 120, 9);
    let found = searched(&mut trials, &plan(&candidates, &[], 9));
    assert_eq!(kept(&found), [0, 1, 2], "{found:?}");
}

#[test]
fn the_same_seed_gives_the_same_report_and_a_short_budget_is_refused() {
    let value = |on: &[usize]| (0.1 * on.len() as f64, vec![]);
    let once = || two(&value, &[], 120);
    assert_eq!(once(), once());
    let candidates = [candidate(0, Prior::NONE)];
    let mut trials = Trials::new(&value, 0.02, 20, 1);
    let Err(Failed::TooShort(short)) = search(&mut trials, &plan(&candidates, &[], 1)) else {
        panic!("twenty trials are too few")
    };
    assert!(short.have == 20 && short.needed > 20, "{short}");
    assert!(trials.used < 1.0, "refused before the first trial");
}

#[test]
fn noise_says_what_could_not_be_shown() {
    let value = |on: &[usize]| (if on.contains(&0) { 0.02 } else { 0.0 }, vec![]);
    let candidates: Vec<Candidate> = (0..8).map(|at| candidate(at, Prior::NONE)).collect();
    let mut trials = Trials::new(&value, 0.15, 100, 2);
    let found = searched(&mut trials, &plan(&candidates, &[], 2));
    assert_eq!(found.ended, AutoOutcome::NothingProven);
    assert!(found.smallest_effect_ratio.unwrap() > 0.05, "{found:?}");
    assert!((found.trial_noise_ratio.unwrap() - 0.16).abs() < 0.06, "{found:?}");
}
