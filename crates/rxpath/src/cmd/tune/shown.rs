//! Output of the `tune` commands, as JSON and as text.

use rxpath_host::Target;
use rxpath_host::pairs::Pairs;
use rxpath_host::write::change::{ChangeOutcome, SettingChange};
use rxpath_host::write::journal::{Restored, Undo};
use rxpath_tune::persist::homes;
use rxpath_tune::plan::{Plan, PlanStep};
use rxpath_tune::ranges::{ranges, values};
use schemars::JsonSchema;
use serde::Serialize;

use super::expected::Expected;
use crate::output::color::{Paint, Stream, paint};

/// What `tune apply` did.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ApplyResult {
    /// Number of the journal; none if there was nothing to change.
    pub journal: Option<u32>,
    /// Completed and attempted steps.
    pub changes: Vec<SettingChange>,
    /// Number of steps that were not tried.
    pub not_tried_count: usize,
    /// Why it stopped early.
    pub stopped: Option<String>,
    /// Changes undone at once, with `--on-failure undo`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<ShownUndo>,
    /// Seconds until the changes are undone unless they are confirmed.
    pub confirm_within_s: Option<u64>,
}

/// The result of undoing one change.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShownUndo {
    /// Number of the journal.
    pub journal: u32,
    /// The setting, under its present name.
    pub set: String,
    /// The old value; for a group, the part that the change had altered.
    pub value: String,
    /// The value written back; for a group, the values that differed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// `restored`, `already`, `kept` (another program changed it), `gone` or `failed`.
    pub state: String,
    /// Why it is not restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The value that another program had set in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
    /// Settings that changed along with this one, with the values that another program had set in between.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_coupled: Vec<(String, String)>,
    /// Settings that changed along and could not be restored, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coupled: Vec<(String, String)>,
}

impl ShownUndo {
    /// The printed form.
    pub fn new(journal: u32, undo: &Undo) -> Self {
        let (state, why) = match &undo.restored {
            Restored::Yes => ("restored", None),
            Restored::Already => ("already", None),
            Restored::Kept => ("kept", None),
            Restored::Gone { why } => ("gone", Some(why.clone())),
            Restored::No { why } => ("failed", Some(why.clone())),
        };
        Self {
            journal,
            set: undo.target.to_string(),
            value: undo.value.clone(),
            written: undo.found.as_ref().map(|found| differing(undo, found)),
            state: state.into(),
            why,
            foreign: undo.foreign.clone(),
            foreign_coupled: words(&undo.foreign_coupled),
            coupled: words(&undo.coupled),
        }
    }

    /// One line, and one more for each setting that another program had changed or that could not be restored.
    pub fn lines(&self, is_rehearsal: bool) -> Vec<String> {
        let value = short(self.written.as_ref().unwrap_or(&self.value));
        let mut lines = vec![match (self.state.as_str(), &self.why) {
            ("already", _) => format!("{}: already has its old value", self.set),
            ("kept", _) => format!("{}: kept: another program changed it", self.set),
            (_, Some(why)) => {
                let bad = paint(Paint::Red, Stream::Out, "not restored");
                format!("{}: {bad} to {value}: {why}", self.set)
            }
            _ if is_rehearsal => format!("{}: would be {value} again", self.set),
            _ => format!("{}: {value} again", self.set),
        }];
        if let Some(foreign) = &self.foreign {
            lines.push(format!("  another program had set {} in between", short(foreign)));
        }
        for (set, value) in &self.foreign_coupled {
            let value = short(value);
            lines
                .push(format!("  {set}, which had changed along: another program had set {value}"));
        }
        for (set, why) in &self.coupled {
            lines.push(format!("  {set}, which had changed along, is not restored: {why}"));
        }
        lines
    }
}

/// Settings by name, each with its text.
fn words(all: &[(Target, String)]) -> Vec<(String, String)> {
    all.iter().map(|(target, words)| (target.to_string(), words.clone())).collect()
}

/// The part of the old value that differed when it was restored.
fn differing(undo: &Undo, found: &str) -> String {
    match (undo.value.parse::<Pairs>(), found.parse::<Pairs>()) {
        (Ok(value), Ok(found)) if undo.target.has_parts() => value.unlike(&found).to_string(),
        _ => undo.value.clone(),
    }
}

/// Longest value shown in a line; the JSON and the journal have the full value.
const SHOWN: usize = 120;

/// A value on one line.
pub fn short(value: &str) -> String {
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    if value.chars().count() <= SHOWN {
        return value;
    }
    value.chars().take(SHOWN).chain("...".chars()).collect()
}

/// One line per change.
pub fn change_line(change: &SettingChange) -> String {
    let before = short(change.before.as_deref().unwrap_or("unreadable"));
    let after = short(change.after.as_deref().unwrap_or("unreadable"));
    let asked = short(&change.asked);
    let bad = |text| paint(Paint::Red, Stream::Out, text);
    let odd = |text| paint(Paint::Yellow, Stream::Out, text);
    let told = match &change.outcome {
        ChangeOutcome::Applied => format!("{before} -> {after}"),
        ChangeOutcome::Pending { until } => {
            format!("{before} -> {after}, {} {until}", odd("pending until"))
        }
        ChangeOutcome::Rounded => format!("{before} -> {after}, {} {asked}", odd("rounded from")),
        ChangeOutcome::Ignored => {
            format!("{} the kernel accepted {asked} but kept {after}", bad("ignored:"))
        }
        ChangeOutcome::Refused { why } => format!("{} {asked}: {why}", bad("refused")),
    };
    let also = if change.also.is_empty() {
        String::new()
    } else {
        format!("; also changed: {}", short(&change.also))
    };
    let link = change.link.as_ref().map_or_else(String::new, |link| format!("; {link}"));
    format!("{}: {told}{also}{link}", change.target)
}

/// What happens to the plan's values at a reboot.
fn lasting(plan: &Plan) -> String {
    let homes: Vec<String> = homes(plan)
        .iter()
        .map(|(name, steps)| format!("{name} ({steps} of {})", plan.steps.len()))
        .collect();
    if homes.is_empty() {
        return "a reboot undoes it, and no kind of file can keep it".into();
    }
    format!("a reboot undoes it; files that keep it, by --persist KIND DIR: {}", homes.join(", "))
}

/// The lines of a plan, with the expected effect of each step if requested.
pub fn plan_lines(plan: &Plan, expected: &[Expected]) -> Vec<String> {
    let mut lines = Vec::new();
    let alike: Vec<_> = plan
        .steps
        .iter()
        .map(|step| (step.set.to_string(), (&step.because, &step.effects)))
        .collect();
    for range in ranges(&alike) {
        let steps = &plan.steps[range.first..][..range.count];
        let of = |pick: fn(&PlanStep) -> &String| {
            short(&values(&steps.iter().map(|step| pick(step).as_str()).collect::<Vec<_>>()))
        };
        let number = match range.count {
            1 => format!("{:>3}.", range.first + 1),
            count => format!("{:>3}. to {}.", range.first + 1, range.first + count),
        };
        let set = paint(Paint::Bold, Stream::Out, &range.name);
        lines.push(format!("{number} {set}: {} -> {}", of(|step| &step.old), of(|step| &step.new)));
        lines.push(format!("     because: {}", steps[0].because.join(", ")));
        for effect in &steps[0].effects {
            lines.push(format!("     note: {}", paint(Paint::Yellow, Stream::Out, effect.words())));
        }
        let expected = expected.iter().skip(range.first).take(range.count);
        lines.extend(expected.flat_map(Expected::lines));
    }
    if !plan.steps.is_empty() {
        lines.push(lasting(plan));
    }
    if !plan.left_out.is_empty() {
        lines.push("left out:".into());
    }
    lines.extend(plan.left_out.iter().map(|left| format!("  {}: {}", left.what, left.why)));
    lines
}
