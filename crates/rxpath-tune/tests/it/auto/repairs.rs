//! A setting that is wrong at the start, where other candidates make up for it: arrays show little of it.

use super::*;

const REPAIR: usize = 3;

/// Three candidates each make up for what the last one repairs; eight do nothing.
fn hidden(on: &[usize]) -> f64 {
    let hides = on.iter().any(|at| *at < REPAIR);
    if hides || on.contains(&REPAIR) { 0.5 } else { 0.0 }
}

fn candidates(repairs: bool) -> Vec<Candidate> {
    let one =
        |at: usize| Candidate { repairs: repairs && at == REPAIR, ..candidate(at, Prior::NONE) };
    (0..12).map(one).collect()
}

/// Of how many searches the wrong setting is found.
fn found(repairs: bool) -> u64 {
    let value = |on: &[usize]| (hidden(on), vec![]);
    let candidates = candidates(repairs);
    let is_found = |seed: &u64| {
        let mut trials = Trials::new(&value, 0.15, BUDGET, *seed);
        let found = searched(&mut trials, &plan(&candidates, &[], *seed));
        kept(&found).contains(&REPAIR)
    };
    (0..20).filter(is_found).count() as u64
}

#[test]
fn a_wrong_setting_that_others_make_up_for_is_compared_with_the_start() {
    let (with, without) = (found(true), found(false));
    assert!(with >= 18 && without <= 10, "{with} of 20, {without} of 20 by the arrays alone");
}

/// One candidate gains; two repairs do nothing, and one does not go with it.
#[test]
fn a_repair_that_is_better_alone_and_worse_next_to_what_is_proven_costs_nothing() {
    let value = |on: &[usize]| {
        let (gains, repairs) = (on.contains(&0), on.contains(&REPAIR));
        (
            if gains && repairs {
                -0.3
            } else if gains {
                0.5
            } else if repairs {
                0.2
            } else {
                0.0
            },
            vec![],
        )
    };
    let candidates: Vec<Candidate> = candidates(true).into_iter().take(REPAIR + 1).collect();
    let mut kept_gain = 0;
    for seed in 0..20 {
        let mut trials = Trials::new(&value, 0.02, BUDGET, seed);
        let on = kept(&searched(&mut trials, &plan(&candidates, &[], seed)));
        assert!(!(on.contains(&0) && on.contains(&REPAIR)), "seed {seed}: {on:?}");
        kept_gain += u32::from(on == [0] || on == [REPAIR]);
    }
    assert!(kept_gain >= 18, "{kept_gain} of 20");
}

#[test]
fn a_repair_that_does_nothing_is_not_kept() {
    let value = |_: &[usize]| (0.0, vec![]);
    let all: Vec<Candidate> =
        (0..12).map(|at| Candidate { repairs: true, ..candidate(at, Prior::FINDING) }).collect();
    let is_kept = |seed: &u64| {
        let mut trials = Trials::new(&value, NOISE, BUDGET, *seed);
        !kept(&searched(&mut trials, &plan(&all, &[], *seed))).is_empty()
    };
    // The limit of the searches without repairs: 2 of 200.
    assert!((0..runs()).filter(is_kept).count() as f64 <= 0.01 * runs() as f64 + 1.0);
}
