//! What `rxpath explain` prints.

use rxpath_tune::rule::{Area, Kind};
use rxpath_tune::{Goal, Rule, rules};
use schemars::JsonSchema;
use serde::Serialize;

use super::color::{Paint, Stream, paint};

/// Columns of a page.
const WIDTH: usize = 100;

/// A rule as JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Explained {
    id: &'static str,
    area: Area,
    kind: Kind,
    what: &'static str,
    applies: &'static str,
    /// Goals that it judges for; empty when it judges for any.
    goals: Vec<Goal>,
    effect: String,
    why: &'static str,
    mechanism: &'static str,
    not_when: &'static str,
    side_effects: &'static str,
    set_now: &'static str,
    persist: &'static str,
    undo: &'static str,
    verify: &'static str,
    since: &'static str,
    sources: &'static [&'static str],
}

/// The rule as JSON.
pub fn of(rule: &'static Rule) -> Explained {
    let text = &rule.text;
    Explained {
        id: rule.id,
        area: rule.area,
        kind: rule.kind,
        what: rule.what,
        applies: rule.applies,
        goals: rule.weight.goals(),
        effect: rule.effect.text(),
        why: text.why,
        mechanism: text.mechanism,
        not_when: text.not_when,
        side_effects: text.side_effects,
        set_now: text.set_now,
        persist: text.persist,
        undo: text.undo,
        verify: text.verify,
        since: text.since,
        sources: text.sources,
    }
}

/// The rule as a page of text.
pub fn page(rule: &Rule) -> String {
    let text = &rule.text;
    let goals: Vec<&str> = rule.weight.goals().into_iter().map(Goal::as_str).collect();
    let judged = if goals.is_empty() { "any goal".into() } else { goals.join(", ") };
    let kind = match rule.kind {
        Kind::Judge => format!("judges, for {judged}"),
        Kind::Record => "recorded, no judgement".into(),
        Kind::Honesty => "warns about measurements taken here".into(),
    };
    let parts = [
        ("Where", rule.area.title().to_owned()),
        ("Kind", kind),
        ("Applies to", rule.applies.into()),
        ("Why", text.why.into()),
        ("Mechanism", text.mechanism.into()),
        ("Expected effect", rule.effect.text()),
        ("When not to change it", text.not_when.into()),
        ("Side effects", text.side_effects.into()),
        ("Set now", text.set_now.into()),
        ("Set for good", text.persist.into()),
        ("Undo", text.undo.into()),
        ("Verify", text.verify.into()),
        ("Since", text.since.into()),
    ];
    let id = paint(Paint::Bold, Stream::Out, rule.id);
    let mut out = format!("{id}: {}\n\n", rule.what);
    for (title, body) in parts {
        out += &format!("{}\n{}\n", paint(Paint::Bold, Stream::Out, title), wrapped(&body));
    }
    out += &format!("{}\n", paint(Paint::Bold, Stream::Out, "Sources"));
    for source in text.sources {
        out += &format!("  {source}\n");
    }
    out
}

/// All rules, a line each, by area.
pub fn list(chosen: &[&'static Rule]) -> String {
    let width = chosen.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    let mut out = String::new();
    for area in Area::ALL {
        let of_area: Vec<_> = chosen.iter().filter(|rule| rule.area == area).collect();
        if of_area.is_empty() {
            continue;
        }
        out += &format!("{}\n", paint(Paint::Bold, Stream::Out, area.title()));
        for rule in of_area {
            out += &format!("  {:width$}  {}\n", rule.id, rule.what);
        }
        out.push('\n');
    }
    out + "One of them: rxpath explain ID\n"
}

/// Ids that `id` may have been meant to be: those that hold it, or share a word with it.
pub fn near(id: &str) -> Vec<&'static str> {
    let words: Vec<&str> = id.split('-').filter(|word| word.len() > 2).collect();
    let mut found: Vec<(usize, &str)> = rules::all()
        .map(|rule| {
            let shared = words.iter().filter(|word| rule.id.contains(**word)).count();
            (shared + usize::from(rule.id.contains(id)), rule.id)
        })
        .filter(|(shared, _)| *shared > 0)
        .collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.0));
    found.into_iter().take(3).map(|(_, id)| id).collect()
}

/// Text in lines of at most [`WIDTH`], each indented by two.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::from(" ")];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, String::len);
        if line + 1 + word.len() > WIDTH && line > 1 {
            lines.push(String::from(" "));
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}
