//! The result of a search as text, which is Markdown too.

use rxpath_core::units::si;
use rxpath_lab::search::answer::{AutoAnswer, AutoSettings};
use rxpath_lab::search::cost;
use rxpath_lab::search::live::answer::{AppliedHere, LiveAnswer};
use rxpath_record::metric::unit;
use rxpath_tune::auto::report::{Dropped, GuardShown, Kept, PathStep, Ratio};
use rxpath_tune::auto::{AutoOutcome, AutoResult};
use rxpath_tune::plan::Plan;

use crate::cmd::tune::shown::change_line;

pub fn span(ratio: &Ratio) -> String {
    let rxpath_stats::ConfidenceInterval { low, high } = ratio.interval;
    format!("{:.3} (95 % interval {low:.3} to {high:.3})", ratio.ratio)
}

/// The result in lines.
pub fn lines(settings: &AutoSettings, answer: &AutoAnswer) -> Vec<String> {
    let mut all = vec![start(settings, answer)];
    all.extend(answer.limit.iter().map(|limit| format!("at the start {limit}")));
    let Some(found) = &answer.found else {
        all.extend(listed(answer));
        return all;
    };
    all.push(String::new());
    all.push(headline(settings, found));
    all.extend(found.kept.iter().flat_map(kept_lines));
    for guard in &found.guards {
        let words = stands(guard);
        let ratio = guard.ratio.as_ref().map(span).unwrap_or_default();
        all.push(format!("- guard {} {words}: {} times {ratio}", guard.guard, guard.metric));
    }
    all.extend(cost::lines(answer));
    all.extend(dropped_lines(&found.dropped));
    all.extend(noise(found));
    all.extend(answer.live.iter().flat_map(live_lines));
    if let Some(plan) = &answer.plan {
        all.extend(plan_lines(settings, plan, answer.applied.is_some()));
    }
    match &answer.applied {
        Some(applied) => all.extend(applied_lines(applied)),
        None => all.extend(how_to_apply(settings, answer)),
    }
    all.extend(path(found));
    all
}

/// Whether a guard holds, in words.
pub fn stands(guard: &GuardShown) -> &'static str {
    match (guard.holds, guard.broken) {
        (true, _) => "holds",
        (_, true) => "is broken",
        _ => "is not shown to hold",
    }
}

/// What was left in force, and how it is taken back.
fn applied_lines(applied: &AppliedHere) -> Vec<String> {
    let id = applied.journal;
    let mut all: Vec<String> = applied.changes.iter().map(change_line).collect();
    all.push(match applied.confirm_within_s {
        _ if !applied.in_force => "not all of it could be applied: nothing is in force".into(),
        Some(s) => format!("undone in {s} s unless confirmed: rxpath tune confirm {id}"),
        None => format!("in force; undo it with: rxpath tune undo {id}"),
    });
    all
}

fn how_to_apply(settings: &AutoSettings, answer: &AutoAnswer) -> Option<String> {
    let has_steps = answer.plan.as_ref().is_some_and(|plan| !plan.steps.is_empty());
    let file = settings.plan_file.as_ref().filter(|_| has_steps)?;
    Some(format!("apply it with: rxpath tune apply {}", file.display()))
}

/// The steps of the search.
fn path(found: &AutoResult) -> Vec<String> {
    let step = |step: &PathStep| format!("- after {} trials: {}", step.trials_count, step.what);
    let mut all = vec![String::new(), "how the search went".to_owned(), String::new()];
    all.extend(found.path.iter().map(step));
    if found.path.is_empty() { Vec::new() } else { all }
}

pub fn start(settings: &AutoSettings, answer: &AutoAnswer) -> String {
    let now = answer
        .start
        .map(|value| format!(", {} {} at the start", si(value), unit(&settings.objective)));
    let traffic = match (&settings.live, &settings.scenario, &settings.variant) {
        (Some(live), ..) => format!("{}, real traffic", live.device),
        (None, Some(scenario), Some(variant)) => format!("{scenario}, {variant}"),
        (None, scenario, _) => scenario.clone().unwrap_or_default(),
    };
    format!("{traffic}: {}{}", settings.objective, now.unwrap_or_default())
}

/// The candidates, without a search.
fn listed(answer: &AutoAnswer) -> Vec<String> {
    let mut all = vec![String::new()];
    if answer.candidates.is_empty() {
        all.push("no candidate: nothing that can be set here acts on this path".into());
    }
    for candidate in &answer.candidates {
        all.push(format!(
            "- {}: {} (expected gain {:+.1} %, weight {:.2}; {})",
            candidate.name,
            candidate.sets.join(", "),
            100.0 * candidate.prior.gain.exp_m1(),
            candidate.prior.weight(),
            candidate.because.join(", ")
        ));
    }
    let left = answer.not_available.iter();
    all.extend(left.map(|left| format!("- not tried: {}: {}", left.what, left.why)));
    all
}

pub fn headline(settings: &AutoSettings, found: &AutoResult) -> String {
    let all = found.kept.len() + found.dropped.len();
    match (found.ended, &found.gain) {
        (AutoOutcome::Kept, Some(gain)) => format!(
            "kept {} of {all} candidates: {} times {}, {} fresh pairs",
            found.kept.len(),
            settings.objective,
            span(&gain.ratio),
            gain.pairs_count
        ),
        (AutoOutcome::NothingProven, _) => {
            format!("nothing proven of {all} candidates; nothing is kept")
        }
        (AutoOutcome::GuardNotShown, _) => "a guard is not shown to hold; nothing is kept".into(),
        (AutoOutcome::Unsafe, _) => {
            "in too many trials the traffic stopped or several settings together broke a guard; nothing is kept"
                .into()
        }
        (AutoOutcome::CutShort, _) => {
            format!("cut short after {} trials; nothing is kept", found.trials_count)
        }
        _ => "fresh pairs of trials do not confirm what looked better; nothing is kept".into(),
    }
}

fn kept_lines(kept: &Kept) -> Vec<String> {
    let own = match (&kept.contribution, &kept.search) {
        (Some(own), _) => format!("its own contribution {}", span(own)),
        (None, Some(search)) => {
            format!("{} in the search, its contribution not measured", span(search))
        }
        (None, None) => "its contribution not measured".into(),
    };
    let bundle = if kept.as_bundle { ", only proven with the others" } else { "" };
    vec![
        format!("- {}: {own}{bundle}", kept.name),
        format!("  {}; asked by: {}", kept.sets.join(", "), kept.because.join(", ")),
    ]
}

fn dropped_lines(dropped: &[Dropped]) -> Vec<String> {
    let one = |dropped: &Dropped| {
        let effect = dropped.effect.as_ref().map(|ratio| format!(": {}", span(ratio)));
        let more = dropped.trials_for_proof.map(|trials| format!("; about {trials} more trials"));
        format!(
            "- not kept: {}: {}{}{}",
            dropped.name,
            dropped.why.words(),
            effect.unwrap_or_default(),
            more.unwrap_or_default()
        )
    };
    dropped.iter().map(one).collect()
}

pub fn noise(found: &AutoResult) -> Option<String> {
    let (noise, least) = (found.trial_noise_ratio?, found.smallest_effect_ratio?);
    Some(format!(
        "{} trials that scatter by {:.1} %: effects from about {:.1} % on could be shown in this budget",
        found.trials_count,
        100.0 * noise,
        100.0 * least
    ))
}

/// The traffic, and the limits that were broken.
fn live_lines(live: &LiveAnswer) -> Vec<String> {
    let loads = &live.loads_pps;
    let mean = loads.iter().sum::<f64>() / loads.len().max(1) as f64;
    let square = loads.iter().map(|load| (load - mean).powi(2)).sum::<f64>();
    let spread = (square / loads.len().max(1) as f64).sqrt() / mean.max(1e-9);
    let mut all = vec![format!(
        "{} slices of {} packets/s on average, which scatter by {:.1} %; {} more say nothing (too little traffic, or it broke a limit by itself)",
        loads.len(),
        si(mean),
        100.0 * spread,
        live.void.len()
    )];
    all.extend(live.breaches.iter().map(|breach| {
        format!(
            "- with {}: {}, {}; undone within {:.1} s",
            breach.with(),
            breach.limit,
            breach.whose(),
            breach.undone_after_s
        )
    }));
    all.extend(live.rounded.iter().map(|change| {
        let (set, asked) = (&change.target, &change.asked);
        let after = change.after.as_deref().unwrap_or("unreadable");
        format!("- {set}: asked for {asked}, the kernel made it {after}; that is what was measured")
    }));
    all
}

fn plan_lines(settings: &AutoSettings, plan: &Plan, is_applied: bool) -> Vec<String> {
    let undone = match (&settings.live, settings.between_hosts) {
        (Some(_), _) if is_applied => "each slice's settings were undone and read back",
        (Some(_), _) => "each slice's settings were undone and read back: this host is as it was",
        (None, true) => "each setting was undone after its trials: the hosts are as they were",
        (None, false) => "the lab's settings went with the lab: this host is as it was",
    };
    let mut all = vec![String::new(), undone.into()];
    all.extend(
        plan.steps.iter().map(|step| format!("- plan: {} {} -> {}", step.set, step.old, step.new)),
    );
    all.extend(
        plan.left_out.iter().map(|left| format!("- not in the plan: {}: {}", left.what, left.why)),
    );
    all
}
