//! Output of the `tune` commands as text.

use rxpath_host::write::change::{ChangeOutcome, SettingChange};
use rxpath_host::write::journal::Restored;
use rxpath_tune::outcome::ShownUndo;
use rxpath_tune::persist::homes;
use rxpath_tune::plan::expected::Expected;
use rxpath_tune::plan::{Plan, PlanStep};
use rxpath_tune::ranges::{ranges, values};

use crate::output::color::{Paint, Stream, bold, paint};

/// One line of an undone change, and one more for each setting that another program had changed or that could not be restored.
pub fn undo_lines(shown: &ShownUndo, is_rehearsal: bool) -> Vec<String> {
    let ShownUndo { undo, written, .. } = shown;
    let (set, value) = (&undo.target, short(written.as_ref().unwrap_or(&undo.value)));
    let mut lines = vec![match &undo.restored {
        Restored::Already => format!("{set}: already has its old value"),
        Restored::Kept => format!("{set}: kept: another program changed it"),
        Restored::Gone { why } | Restored::No { why } => {
            let bad = paint(Paint::Red, Stream::Out, "not restored");
            format!("{set}: {bad} to {value}: {why}")
        }
        Restored::Yes if is_rehearsal => format!("{set}: would be {value} again"),
        Restored::Yes => format!("{set}: {value} again"),
    }];
    if let Some(foreign) = &undo.foreign {
        lines.push(format!("  another program had set {} in between", short(foreign)));
    }
    for (set, value) in &undo.foreign_coupled {
        let value = short(value);
        lines.push(format!("  {set}, which had changed along: another program had set {value}"));
    }
    for (set, why) in &undo.coupled {
        lines.push(format!("  {set}, which had changed along, is not restored: {why}"));
    }
    lines
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
        let set = bold(&range.name);
        lines.push(format!("{number} {set}: {} -> {}", of(|step| &step.old), of(|step| &step.new)));
        lines.push(format!("     because: {}", steps[0].because.join(", ")));
        for effect in &steps[0].effects {
            lines.push(format!("     note: {}", paint(Paint::Yellow, Stream::Out, effect.words())));
        }
        let expected = expected.iter().skip(range.first).take(range.count);
        lines.extend(expected.flat_map(Expected::lines));
    }
    lines.extend((!plan.steps.is_empty()).then(|| lasting(plan)));
    if !plan.left_out.is_empty() {
        lines.push("left out:".into());
    }
    lines.extend(plan.left_out.iter().map(|left| format!("  {}: {}", left.what, left.why)));
    lines
}
