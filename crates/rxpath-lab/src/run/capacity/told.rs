//! A step of a search for people.

use rxpath_core::Nanos;
use rxpath_core::units::si;
use rxpath_stats::load_search::{LoadSearch, Next, TrialOutcome};

use super::objective::Shown;
use crate::scenario::spec::Protocol;

/// What was tried, what came of it, what is known, and how long it may still take.
pub(super) fn told(
    search: &LoadSearch,
    next: &Next,
    (shown, counts): (&Shown, bool),
    protocol: Protocol,
) -> String {
    let unit = protocol.unit();
    let came = match shown.outcome {
        TrialOutcome::Good { .. } => "holds",
        TrialOutcome::Bad { .. } => "fails",
        TrialOutcome::Short => "the sender does not reach it",
        TrialOutcome::Void { .. } if !counts => "disturbed, to be repeated",
        TrialOutcome::Void { is_good: Some(true), .. } => "holds, though disturbed",
        TrialOutcome::Void { is_good: Some(false), .. } => "fails, though disturbed",
        TrialOutcome::Void { is_good: None, .. } => "disturbed, and the sender does not reach it",
    };
    let figure = match shown.latency_us {
        Some(us) => format!("latency {}", Nanos((us * 1e3) as u64)),
        None => format!("loss {} %", si(shown.loss_ratio * 100.0)),
    };
    let bounds = search.bounds();
    let known = match (bounds.lower, bounds.upper) {
        (None, None) => String::new(),
        (lower, upper) => {
            let shown = |bound: Option<f64>| bound.map_or("?".into(), si);
            format!("; bounds {} to {}", shown(lower), shown(upper))
        }
    };
    let to_go = match search.to_go_s() {
        seconds if seconds >= 1.0 => format!("; about {seconds:.0} s to go"),
        _ => String::new(),
    };
    format!(
        "trial {}: {} {unit}/s for {:.2} s: {came}, {figure}{known}{to_go}",
        search.trials(),
        si(next.rate),
        next.seconds
    )
}
