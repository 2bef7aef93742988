//! The search as an HTML page: what is kept and what it contributes, what is not and why, and every trial.

use rxpath_core::units::si;
use rxpath_lab::search::answer::{AutoAnswer, AutoSettings};
use rxpath_lab::search::cost;
use rxpath_report::{ReportSheet, SheetPart, sheet};
use rxpath_tune::auto::report::Ratio;

use super::shown::{headline, noise, span, stands, start};

/// The page.
pub fn html(settings: &AutoSettings, answer: &AutoAnswer) -> String {
    let found = answer.found.as_ref();
    let headline = found.map_or_else(|| start(settings, answer), |found| headline(settings, found));
    let mut facts = vec![start(settings, answer)];
    facts.extend(answer.limit.iter().map(|limit| format!("at the start {limit}")));
    facts.extend(found.and_then(noise));
    let mut parts = vec![kept(answer), costs(answer), dropped(answer), guards(answer)];
    parts.extend(found.is_none().then(|| candidates(answer)));
    parts.extend([not_available(answer), path(answer), breaches(answer), slices(answer)]);
    sheet(&ReportSheet { command: "rxpath tune auto".into(), headline, facts, parts })
}

fn ratio(ratio: Option<&Ratio>) -> String {
    ratio.map_or_else(|| "not measured".into(), span)
}

fn kept(answer: &AutoAnswer) -> SheetPart {
    let rows = answer.found.iter().flat_map(|found| &found.kept).map(|kept| {
        vec![
            kept.name.clone(),
            kept.sets.join(", "),
            ratio(kept.contribution.as_ref()),
            ratio(kept.search.as_ref()),
            kept.because.join(", "),
        ]
    });
    let lead = "Proven in the search, confirmed together on fresh pairs. The contribution is what is lost without it, as \
                a ratio of the objective; the effect in the search is too large on average, because it was chosen by it.";
    let heads = "candidate | sets | its own contribution | in the search | asked by";
    SheetPart::new(("kept", "Kept", lead), heads, rows)
}

fn costs(answer: &AutoAnswer) -> SheetPart {
    let lead = "What the kept settings take, over the confirming pairs: kept over start.";
    let heads = "metric | change | how sure | what it is";
    SheetPart::new(("cost", "Cost", lead), heads, cost::rows(answer))
}

fn dropped(answer: &AutoAnswer) -> SheetPart {
    let rows = answer.found.iter().flat_map(|found| &found.dropped).map(|dropped| {
        let more = dropped.trials_for_proof.map_or_else(String::new, |trials| trials.to_string());
        vec![
            dropped.name.clone(),
            dropped.sets.join(", "),
            dropped.why.words(),
            ratio(dropped.effect.as_ref()),
            more,
        ]
    });
    let lead = "Tried and undone. More trials are given where an effect of this size would then probably be proven.";
    let heads = "candidate | sets | why | in the search | #more trials";
    SheetPart::new(("dropped", "Not kept", lead), heads, rows)
}

fn guards(answer: &AutoAnswer) -> SheetPart {
    let rows =
        answer.found.iter().flat_map(|found| &found.guards).map(|guard| {
            vec![guard.guard.clone(), stands(guard).into(), ratio(guard.ratio.as_ref())]
        });
    let lead = "Over the confirming pairs: kept over start. Of shares, the step of their scale is added to both.";
    SheetPart::new(("guards", "Guards", lead), "guard | outcome | ratio", rows)
}

fn candidates(answer: &AutoAnswer) -> SheetPart {
    let rows = answer.candidates.iter().map(|candidate| {
        vec![candidate.name.clone(), candidate.sets.join(", "), candidate.because.join(", ")]
    });
    let lead = "What could be tried. Nothing was.";
    let heads = "candidate | sets | asked by";
    SheetPart::new(("candidates", "Candidates", lead), heads, rows)
}

fn not_available(answer: &AutoAnswer) -> SheetPart {
    let rows = answer.not_available.iter().map(|left| vec![left.what.clone(), left.why.clone()]);
    let lead = "What was no candidate here.";
    SheetPart::new(("not-tried", "Not tried", lead), "candidate | why", rows)
}

fn path(answer: &AutoAnswer) -> SheetPart {
    let rows = answer
        .found
        .iter()
        .flat_map(|found| &found.path)
        .map(|step| vec![step.trials_count.to_string(), step.what.clone()]);
    let lead = "The decisions, each after so many trials.";
    SheetPart::new(("path", "How the search went", lead), "#trials | what", rows)
}

fn breaches(answer: &AutoAnswer) -> SheetPart {
    let rows = answer.live.iter().flat_map(|live| &live.breaches).map(|breach| {
        vec![
            breach.with(),
            breach.limit.clone(),
            breach.whose().into(),
            format!("{:.1}", breach.undone_after_s),
        ]
    });
    let lead = "Windows in a row beyond a limit. The settings were taken off at once; the time is from the beginning of \
                the first of these windows.";
    let heads = "candidates that were on | limit | once they were off | #undone after, s";
    SheetPart::new(("limits", "Limits that were broken", lead), heads, rows)
}

fn slices(answer: &AutoAnswer) -> SheetPart {
    let slices = answer.live.iter().flat_map(|live| live.slices.iter().zip(&live.loads_pps));
    let rows = slices.enumerate().map(|(at, (slice, load))| {
        let metrics = slice.metrics.iter();
        let metrics: Vec<String> =
            metrics.map(|(name, value)| format!("{name} {}", si(*value))).collect();
        vec![
            (at + 1).to_string(),
            format!("{:?}", slice.phase).to_lowercase(),
            if slice.on.is_empty() { "none".into() } else { slice.on.join(", ") },
            si(*load),
            metrics.join(", "),
        ]
    });
    let lead = "Each slice of real traffic, in its order.";
    let heads = "#number | phase | on | #packets/s | measured";
    SheetPart::new(("slices", "Slices", lead), heads, rows)
}
