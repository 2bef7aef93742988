//! What `rxpath explain` prints.

use rxpath_tune::rule::{Area, RuleKind};
use rxpath_tune::{Goal, Rule};
use schemars::JsonSchema;
use serde::Serialize;

pub mod topic;

use self::topic::{Topic, TopicKind};
use super::color::bold;
use super::table::hanging;
use super::width;

/// Columns of a page at most.
const WIDTH: usize = 100;

/// One topic as JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Explained<'a> {
    /// A rule of `check`.
    Rule(ExplainedRule<'a>),
    /// Anything else.
    Topic(&'a Topic),
}

/// A rule as JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExplainedRule<'a> {
    /// Always `rule`.
    topic: TopicKind,
    #[serde(flatten)]
    rule: &'static Rule,
    /// Names of the settings that it sets: sysctls, files, ethtool options.
    also: &'a [String],
    /// Goals for which it judges; empty if it judges for any goal.
    goals: Vec<Goal>,
    /// The expected effect of the remedy, with its figure and source.
    effect: String,
}

/// The topic as JSON.
pub fn of(topic: &Topic) -> Explained<'_> {
    topic.rule.map_or(Explained::Topic(topic), |rule| {
        let (goals, effect) = (rule.weight.goals(), rule.effect());
        Explained::Rule(ExplainedRule { topic: topic.kind, rule, also: &topic.also, goals, effect })
    })
}

/// The topic as a page of text.
pub fn page(topic: &Topic) -> String {
    if let Some(rule) = topic.rule {
        return page_of_rule(rule);
    }
    let name = bold(&topic.name);
    let mut out = format!("{name}: {}\n", topic.kind.word());
    if !topic.also.is_empty() {
        out += &wrapped(&format!("also: {}", topic.also.join(", ")));
    }
    out.push('\n');
    for part in &topic.parts {
        let heading = bold(part.heading);
        out += &format!("{heading}\n{}\n", wrapped(&part.text));
    }
    out
}

/// Hits, one per line: name, kind, summary. Under a page they have a heading.
pub fn hits(hits: &[&Topic], most: usize, under_a_page: bool) -> String {
    if hits.is_empty() {
        return String::new();
    }
    let shown = &hits[..hits.len().min(most)];
    let name = shown.iter().map(|topic| topic.name.len()).max().unwrap_or(0);
    let kind = shown.iter().map(|topic| topic.kind.word().len()).max().unwrap_or(0);
    let mut out = String::new();
    if under_a_page {
        out += &format!("{}\n", bold("See also (rxpath explain NAME)"));
    }
    for topic in shown {
        let line = format!("{:name$}  {:kind$}  {}", topic.name, topic.kind.word(), topic.what);
        out += &format!("  {}\n", cut(&line, width().map(|columns| columns.saturating_sub(2))));
    }
    if hits.len() > shown.len() {
        out += &format!("  {} more: --all\n", hits.len() - shown.len());
    }
    if !under_a_page {
        out += "One of them: rxpath explain NAME\n";
    }
    out
}

/// The line, cut to the terminal's width.
fn cut(line: &str, columns: Option<usize>) -> String {
    match columns {
        Some(columns) if line.chars().count() > columns => {
            line.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
        }
        _ => line.to_owned(),
    }
}

/// The rule as a page of text.
fn page_of_rule(rule: &Rule) -> String {
    let goals: Vec<&str> = rule.weight.goals().into_iter().map(Goal::as_str).collect();
    let judged = if goals.is_empty() { "any goal".into() } else { goals.join(", ") };
    let kind = match rule.kind {
        RuleKind::Judge => format!("judges, for {judged}"),
        RuleKind::Record => "recorded, no judgement".into(),
        RuleKind::Honesty => "warns about measurements on this host".into(),
    };
    let parts = [
        ("Where", rule.area.title().to_owned()),
        ("Kind", kind),
        ("Applies to", rule.applies.into()),
        ("Why", rule.why.into()),
        ("Mechanism", rule.mechanism.into()),
        ("Expected effect", rule.effect()),
        ("When not to change it", rule.not_when.into()),
        ("Side effects", rule.side_effects.into()),
        ("Set now", rule.set_now.into()),
        ("Set permanently", rule.persist.into()),
        ("Undo", rule.undo.into()),
        ("Verify", rule.verify.into()),
        ("Since", rule.since.into()),
    ];
    let id = bold(rule.id);
    let mut out = format!("{id}: {}\n\n", rule.what);
    for (title, body) in parts {
        out += &format!("{}\n{}\n", bold(title), wrapped(&body));
    }
    out += &format!("{}\n", bold("Sources"));
    out.extend(rule.sources.iter().map(|source| format!("  {source}\n")));
    out
}

/// All rules by area, wrapped to the terminal's width, in a pipe one per line; then the number of topics of each other
/// kind.
pub fn list(chosen: &[&Topic], topics: &[Topic]) -> String {
    let rules: Vec<&Rule> = chosen.iter().filter_map(|topic| topic.rule).collect();
    let names = rules.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    let mut out = String::new();
    for area in Area::ALL {
        let of_area: Vec<_> = rules.iter().filter(|rule| rule.area == area).collect();
        if of_area.is_empty() {
            continue;
        }
        out += &format!("{}\n", bold(area.title()));
        for rule in of_area {
            let what = hanging("", names + 4, rule.what, width());
            out += &format!("  {:names$}  {}", rule.id, what.trim_start());
        }
        out.push('\n');
    }
    let other = |kind: &TopicKind| {
        let count = topics.iter().filter(|topic| topic.kind == *kind).count();
        (count > 0 && *kind != TopicKind::Rule).then(|| format!("{count} {}", plural(*kind)))
    };
    let others: Vec<String> = TopicKind::ALL.iter().filter_map(other).collect();
    let others = format!("It also explains settings by their names, and {}.", others.join(", "));
    let lines = ["One of them: rxpath explain ID", &others, EXAMPLES];
    out.extend(lines.map(|line| hanging("", 0, line, Some(page_width()))));
    out
}

/// Queries of several kinds.
const EXAMPLES: &str = "For example: rxpath explain net.core.rmem_max, rx-usecs, TCPBacklogDrop, NO_SOCKET, GRO, exit 4";

fn plural(kind: TopicKind) -> String {
    match kind {
        TopicKind::Stage => "stages of diagnose".into(),
        TopicKind::LossPlace => "places of loss".into(),
        TopicKind::ExitStatus => "exit statuses".into(),
        kind => format!("{}s", kind.word()),
    }
}

/// The terminal's width, at most [`WIDTH`]; in a pipe [`WIDTH`].
fn page_width() -> usize {
    width().map_or(WIDTH, |columns| columns.min(WIDTH))
}

/// Wraps text to the width of a page, indented by two.
fn wrapped(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    hanging("", 2, &words.join(" "), Some(page_width()))
}
