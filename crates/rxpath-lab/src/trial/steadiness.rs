//! Was the rate of a trial the same all the time: before its window, and in it?

use rxpath_core::{Nanos, Warning};
use rxpath_stats::order::SUSPICIOUS;
use rxpath_stats::slope::Drift;

use super::line::Line;
use super::window;

/// Change over the window that is worth a word, as a share of the rate.
const WORTH_TELLING: f64 = 0.05;

/// The rate had not settled when the time to wait for it was over.
pub(super) fn not_settled(drift: Option<Drift>, settle: Nanos, measure: Nanos) -> Warning {
    let Some(drift) = drift else {
        let text = format!("whether the rate had settled is not known after {settle}");
        return Warning::new("not-settled", text).because("too few rates were read");
    };
    let text = format!(
        "the rate still changed by {:+.1} % per second when measuring began, after {settle}",
        drift.per_s_ratio * 100.0
    );
    let ahead = format!(
        "over the window of {measure} that is {:+.1} %",
        drift.over(measure.as_secs_f64()) * 100.0
    );
    Warning::new("not-settled", text).because(ahead).cure("set trials.ramp or trials.settle longer")
}

/// The rate changed inside the window, by more than chance does.
pub(super) fn drifted(lines: &[Line], [from, to]: [u64; 2]) -> Option<Warning> {
    let inside: Vec<Line> = window::inside(lines, [from, to]).cloned().collect();
    let seconds = to.saturating_sub(from) as f64 / 1e9;
    let drift = Drift::of_all(&window::rates(&inside))?;
    let change = drift.over(seconds);
    let is_told = change.abs() > WORTH_TELLING && drift.chance < SUSPICIOUS;
    is_told.then(|| {
        let text = format!(
            "the rate changed by {:+.1} % over the window of {seconds:.1} s; by chance a trend as clear comes in {:.2} % of \
             steady trials",
            change * 100.0,
            drift.chance * 100.0
        );
        Warning::new("drift-in-window", text)
            .because("the trial's rate is the mean of a rate that was not steady")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rate: impl Fn(u64) -> u64) -> Vec<Line> {
        let mut done = 0;
        let line = |at: u64| {
            done += rate(at);
            Line { t_ns: at * 50_000_000, done, ..Line::default() }
        };
        (0..=60).map(line).collect()
    }

    #[test]
    fn a_rate_that_climbs_in_the_window_is_told_and_a_steady_one_is_not() {
        let window = [0, 3_000_000_000];
        let told = drifted(&lines(|at| 1000 + 10 * at), window).unwrap();
        assert_eq!(told.code, "drift-in-window");
        assert!(told.text.contains("+4"), "{}", told.text);
        assert_eq!(drifted(&lines(|at| 1000 + at * 7919 % 13), window), None);
        assert_eq!(drifted(&lines(|_| 0), window), None);
        // The same change, where only a part of it lies in the window.
        assert_eq!(
            drifted(
                &lines(|at| if at < 20 { 10 * at } else { 200 }),
                [1_050_000_000, 3_000_000_000]
            ),
            None
        );
    }

    #[test]
    fn what_did_not_settle_says_how_much_the_window_would_change() {
        let drift = Drift { per_s_ratio: 0.12, chance: 0.001 };
        let told = not_settled(Some(drift), Nanos::from_secs(10), Nanos::from_secs(3));
        assert_eq!(
            told.text,
            "the rate still changed by +12.0 % per second when measuring began, after 10s"
        );
        assert_eq!(told.cause.as_deref(), Some("over the window of 3s that is +36.0 %"));
    }
}
