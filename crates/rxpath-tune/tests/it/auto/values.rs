//! Settings with several values: one is chosen, and only what is then proven on other trials is kept.

use super::*;

/// `axes` settings with `values` values each, in this order.
fn axes(axes: usize, values: usize) -> Vec<Candidate> {
    let one = |at: usize| Candidate {
        axis: Some((at / values).to_string()),
        ..candidate(at, Prior::NONE)
    };
    (0..axes * values).map(one).collect()
}

#[test]
fn the_best_value_is_kept_and_never_two_of_one_setting_are_on() {
    let value = |on: &[usize]| {
        let mut of: Vec<usize> = on.iter().map(|at| at / 3).collect();
        of.dedup();
        assert_eq!(of.len(), on.len(), "two values at once: {on:?}");
        let gain = |at: &usize| [0.0, 0.1, 0.2, -0.1, 0.0, -0.2][*at];
        (on.iter().map(gain).sum(), vec![])
    };
    let candidates = axes(2, 3);
    let mut trials = Trials::new(&value, 0.02, 120, 5);
    let found = searched(&mut trials, &plan(&candidates, &[], 5));
    assert_eq!(kept(&found), [2], "{found:?}");
    let other = |name: &str| found.dropped.iter().find(|it| it.name == name).unwrap().why.clone();
    assert_eq!(other("1"), Why::OtherValue("2".into()));
    assert_eq!((other("3"), other("4")), (Why::OtherValue("4".into()), Why::NoGainShown));
}

#[test]
fn a_value_that_breaks_a_guard_gives_way_to_one_that_does_not() {
    let value = |on: &[usize]| {
        let (gain, worse) = on.first().map_or((0.0, 0.0), |at| [(0.1, 0.0), (0.2, 0.3)][*at]);
        (gain, vec![worse])
    };
    let candidates = axes(1, 2);
    let guards = [latency()];
    let mut trials = Trials::new(&value, 0.01, 100, 5);
    let found = searched(&mut trials, &plan(&candidates, &guards, 5));
    assert_eq!(kept(&found), [0], "{found:?}");
}

#[test]
fn to_choose_among_many_values_proves_nothing() {
    let nothing = |_: &[usize]| (0.0, vec![]);
    let candidates = axes(5, 4);
    let all = runs();
    let kept_any = (0..all).filter(|seed| {
        let mut trials = Trials::new(&nothing, NOISE, 300, *seed);
        !kept(&searched(&mut trials, &plan(&candidates, &[], *seed))).is_empty()
    });
    // Nothing is kept in 95 % of searches at least; three standard errors above.
    let most = all as f64 * 0.05 + 3.0 * (all as f64 * 0.05 * 0.95).sqrt();
    let count = kept_any.count();
    assert!(count as f64 <= most, "{count} of {all}");
}

#[test]
fn a_slow_value_that_stops_the_traffic_is_out_and_ends_no_search() {
    let value = |on: &[usize]| {
        let gain = |at: &usize| [0.2, -3.0, 0.0][*at];
        (on.iter().map(gain).sum(), vec![])
    };
    let mut candidates = axes(1, 3);
    candidates[2].axis = None;
    candidates[..2].iter_mut().for_each(|one| one.risk = Risk::Link);
    let mut trials = Trials::new(&value, 0.02, 120, 5);
    let found = searched(&mut trials, &plan(&candidates, &[], 5));
    assert_eq!(kept(&found), [0], "{found:?}");
    let why = found.dropped.iter().find(|it| it.name == "1").unwrap().why.clone();
    assert_eq!(why, Why::Harmful);
}
