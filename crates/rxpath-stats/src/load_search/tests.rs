//! The search before receivers without noise, where the answer is known.

use proptest::prelude::*;

use super::*;

const GOAL: SearchGoal =
    SearchGoal { final_s: 1.0, sum_s: 5.0, exceed_ratio: 0.5, width_ratio: 0.03 };

fn plan() -> SearchPlan {
    SearchPlan { goal: GOAL, fresh: 11, first: 5_000.0, lowest: 100.0, most: 20e6, time_s: None }
}

/// A receiver that takes this much, before a sender that offers this much.
fn host(takes: f64, offers: f64) -> impl FnMut(&Next) -> TrialOutcome {
    move |next| {
        let offered = next.rate.min(offers);
        let loss_ratio = (1.0 - takes / offered).max(0.0);
        match (loss_ratio > 0.001, offered < 0.97 * next.rate) {
            (true, _) => TrialOutcome::Bad { loss_ratio },
            (false, true) => TrialOutcome::Short,
            (false, false) => TrialOutcome::Good { loss_ratio },
        }
    }
}

fn searched(
    plan: SearchPlan,
    mut trial: impl FnMut(&Next) -> TrialOutcome,
) -> (LoadSearch, SearchEnd) {
    let mut search = LoadSearch::new(plan);
    for _ in 0..2000 {
        match search.next() {
            Turn::Over(end) => return (search, end),
            Turn::Try(next) => {
                let outcome = trial(&next);
                search.take(outcome, next.seconds + 0.6);
            }
        }
    }
    panic!("the search does not end: {search:?}");
}

proptest! {
    #[test]
    fn both_bounds_hold_the_capacity_and_are_as_close_as_asked(takes in 200.0..5e6f64) {
        let (search, end) = searched(plan(), host(takes, 1e9));
        let bounds = search.bounds();
        let (lower, upper) = (bounds.lower.unwrap(), bounds.upper.unwrap());
        prop_assert_eq!(end, SearchEnd::Found);
        prop_assert!(bounds.is_regular && upper / lower <= 1.03 + 1e-6);
        prop_assert!(lower <= takes / 0.999 && takes <= upper, "{} {} {}", lower, takes, upper);
        prop_assert!(search.trials() < 60, "{}", search.trials());
    }

    #[test]
    fn it_ends_whatever_the_trials_say(outcomes in prop::collection::vec(0u8..6, 2000)) {
        let mut all = outcomes.into_iter();
        let plan = SearchPlan { time_s: Some(900.0), ..plan() };
        let (search, _) = searched(plan, |_| match all.next().unwrap() {
            0 | 1 => TrialOutcome::Good { loss_ratio: 0.0 },
            2 => TrialOutcome::Bad { loss_ratio: 0.1 },
            3 => TrialOutcome::Short,
            4 => TrialOutcome::Void { is_good: None, loss_ratio: 0.0 },
            _ => TrialOutcome::Void { is_good: Some(false), loss_ratio: 0.2 },
        });
        let bounds = search.bounds();
        if let (Some(lower), Some(upper)) = (bounds.lower, bounds.upper) {
            prop_assert!(lower < upper, "{bounds:?}");
        }
    }
}

#[test]
fn a_quiet_receiver_passes_its_fresh_trials() {
    let (search, _) = searched(plan(), host(96_300.0, 1e9));
    let fresh = search.bounds().fresh.unwrap();
    // Six of eleven settle it.
    assert_eq!((fresh.good, fresh.bad), (6, 0));
    assert!(search.bounds().conditional_throughput.unwrap() > 0.999 * fresh.rate);
}

#[test]
fn a_sender_that_reaches_no_failing_load_gives_a_lower_bound_alone() {
    let (search, end) = searched(plan(), host(1e9, 300_000.0));
    let bounds = search.bounds();
    assert_eq!((end, bounds.upper, bounds.is_regular), (SearchEnd::SenderLimited, None, false));
    // The sender reaches 97 % of up to 309k.
    let lower = bounds.lower.unwrap();
    assert!(lower > 300_000.0 && lower < 310_000.0, "{lower}");
}

#[test]
fn the_highest_allowed_load_may_hold() {
    let (search, end) = searched(SearchPlan { most: 50_000.0, ..plan() }, host(1e9, 1e9));
    assert_eq!((end, search.bounds().lower), (SearchEnd::MostHolds, Some(50_000.0)));
    assert_eq!(search.bounds().upper, None);
}

#[test]
fn a_receiver_that_takes_nothing_fails_at_the_lowest_load() {
    let (search, end) = searched(plan(), host(10.0, 1e9));
    assert_eq!((end, search.bounds().lower), (SearchEnd::LowestFails, None));
    assert_eq!(search.bounds().upper, Some(100.0));
    // Full trials decided it, not the short ones of the climb.
    assert!(search.loads()[0].trials.iter().filter(|seen| seen.seconds >= 1.0).count() >= 2);
}

#[test]
fn the_time_limit_leaves_what_is_known() {
    let (search, end) = searched(SearchPlan { time_s: Some(25.0), ..plan() }, host(96_300.0, 1e9));
    assert_eq!(end, SearchEnd::Time);
    assert!(search.elapsed_s() <= 25.0 && !search.bounds().is_regular);
    assert!(search.bounds().lower.is_some_and(|lower| lower <= 96_400.0), "{:?}", search.bounds());
}

#[test]
fn in_haste_no_load_is_tried_again_that_the_sender_does_not_reach() {
    let outcome = |next: &Next| match next {
        Next { rate: 8_000.0.., .. } => TrialOutcome::Bad { loss_ratio: 0.5 },
        // Full trials are harder for it than the short ones of the climb.
        Next { rate: 3_000.0.., step, .. } if *step != SearchStep::Climb => TrialOutcome::Short,
        _ => TrialOutcome::Good { loss_ratio: 0.0 },
    };
    let (search, _) = searched(SearchPlan { time_s: Some(40.0), ..plan() }, outcome);
    let lower = search.bounds().lower;
    assert!(lower.is_some_and(|lower| lower > 2_000.0 && lower < 3_000.0), "{lower:?}");
}

#[test]
fn disturbed_trials_are_repeated_but_not_for_ever() {
    let (mut quiet, mut count) = (host(50_000.0, 1e9), 0);
    let (search, end) = searched(plan(), |next| {
        count += 1;
        let outcome = quiet(next);
        // Every second one is disturbed, and loses.
        if count % 2 == 0 {
            TrialOutcome::Void { is_good: Some(false), loss_ratio: 0.5 }
        } else {
            outcome
        }
    });
    assert_eq!(end, SearchEnd::Found);
    assert!(search.voids() >= search.trials() / 2 - 1);
    assert!((search.bounds().lower.unwrap() / 50_000.0 - 1.0).abs() < 0.03);
    let all_void = |_: &Next| TrialOutcome::Void { is_good: Some(false), loss_ratio: 0.5 };
    let (search, end) = searched(plan(), all_void);
    assert_eq!((end, search.voids()), (SearchEnd::LowestFails, 3));
}

#[test]
fn a_sender_that_falls_short_in_disturbed_trials_is_no_limit() {
    let (mut quiet, mut count) = (host(50_000.0, 1e9), 0);
    let short = TrialOutcome::Void { is_good: None, loss_ratio: 0.0 };
    let (search, end) = searched(plan(), |next| {
        count += 1;
        // In two of three trials the sender waits for its CPU.
        if count % 3 == 0 { quiet(next) } else { short }
    });
    assert_eq!(end, SearchEnd::Found);
    assert!((search.bounds().lower.unwrap() / 50_000.0 - 1.0).abs() < 0.03);
    let (search, end) = searched(plan(), |_| short);
    assert_eq!((end, search.voids()), (SearchEnd::SenderLimited, 3));
}

#[test]
fn a_lower_bound_that_fails_its_fresh_trials_gives_way() {
    let mut host_ = host(50_000.0, 1e9);
    // The receiver becomes slower once the search has ended.
    let (search, end) = searched(plan(), |next| {
        let mut slower = host(47_000.0, 1e9);
        if next.step == SearchStep::Confirm { slower(next) } else { host_(next) }
    });
    let bounds = search.bounds();
    assert_eq!(end, SearchEnd::Found);
    assert!(bounds.lower.unwrap() <= 47_050.0 && bounds.upper.unwrap() > 47_000.0, "{bounds:?}");
    let fails = |next: &Next| match next.step {
        SearchStep::Confirm => TrialOutcome::Bad { loss_ratio: 0.5 },
        _ => host(50_000.0, 1e9)(next),
    };
    let (search, end) = searched(plan(), fails);
    assert_eq!(end, SearchEnd::FreshFailed);
    assert!(!search.bounds().is_regular && search.bounds().fresh.is_none());
}

#[test]
fn one_bad_trial_in_the_climb_makes_no_bracket() {
    let (mut quiet, mut is_first) = (host(500_000.0, 1e9), true);
    let (search, _) = searched(plan(), |next| {
        if std::mem::take(&mut is_first) {
            TrialOutcome::Bad { loss_ratio: 0.5 }
        } else {
            quiet(next)
        }
    });
    assert!(search.trials() < 40, "{}", search.trials());
}

#[test]
fn trials_become_longer_only_before_the_first_full_one() {
    let mut search = LoadSearch::new(plan());
    let mut receiver = host(50_000.0, 1e9);
    let mut was_lengthened = false;
    while let Turn::Try(next) = search.next() {
        assert!(
            next.step == SearchStep::Climb
                || next.seconds >= if was_lengthened { 2.0 } else { 1.0 }
        );
        search.take(receiver(&next), next.seconds);
        if search.climbed_to().is_some() && !was_lengthened {
            was_lengthened = search.lengthen(2.0);
        }
    }
    assert_eq!((search.goal().final_s, search.goal().sum_s), (2.0, 10.0));
    assert!(!search.lengthen(3.0), "full trials were made");
}

#[test]
fn the_time_to_go_shrinks_to_nothing() {
    let mut search = LoadSearch::new(plan());
    let mut receiver = host(50_000.0, 1e9);
    let before = search.to_go_s();
    assert!(before > 20.0 && before < 90.0, "{before}");
    while let Turn::Try(next) = search.next() {
        search.take(receiver(&next), next.seconds + 0.6);
        assert!(search.to_go_s() < 90.0, "{}", search.to_go_s());
    }
    assert!(search.to_go_s().abs() < 1e-9);
}
