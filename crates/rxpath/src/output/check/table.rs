//! `rxpath check` as text.

use rxpath_tune::check::Note;
use rxpath_tune::{Finding, Goal, Report, Severity};

use super::among;
use crate::output::color::{Paint, Stream, bold, paint};
use crate::output::table::{hanging, sentences};
use crate::output::width;

/// Most findings shown; the rest is only counted.
const FIRST: usize = 5;

/// The text: the first findings, then the other answers.
pub fn render(report: &Report, goal: Option<Goal>, all: bool) -> String {
    let mut out = String::new();
    let shown = if all { report.findings.len() } else { FIRST };
    out.extend(report.findings.iter().take(shown).map(|finding| one(finding) + "\n"));
    if report.findings.is_empty() && report.has_judged() {
        let what = goal.map_or_else(String::new, |goal| format!(" for {goal}"));
        out += &format!("Nothing to change{what}{}.\n\n", among(report));
    }
    for note in &report.cautions {
        let head = paint(Paint::Yellow, Stream::Out, "caution");
        out += &sentences(&format!("{head} {}", noted(note)));
    }
    if !report.cautions.is_empty() {
        out.push('\n');
    }
    if all {
        let unjudged = report.unjudged.iter();
        let unjudged = unjudged.map(|one| line(&one.id, one.device.as_deref(), &one.text));
        let suppressed = report.suppressed.iter().map(|one| {
            let text = format!("{}, until {}", one.reason, one.until);
            line(&one.finding.id, one.finding.device.as_deref(), &text)
        });
        out += &section("As it should be", report.fine.iter().map(noted));
        out += &section("Recorded, no judgement", report.records.iter().map(noted));
        out += &section("Not visible to this process", report.unseen.iter().map(noted));
        out += &section("Could not be judged", unjudged);
        out += &section("Suppressed by the configuration", suppressed);
        out += &section("Does not apply here", report.silent.iter().map(noted));
    }
    out + &sentences(&last_line(report, goal, all))
}

fn one(finding: &Finding) -> String {
    let colour = match finding.severity {
        Severity::Fail => Paint::Red,
        Severity::Warn => Paint::Yellow,
        Severity::Info => Paint::Dim,
    };
    let head = paint(colour, Stream::Out, finding.severity.as_str());
    let name = bold(&finding.id);
    let device = finding.device.as_ref().map_or_else(String::new, |dev| format!(" ({dev})"));
    let mut text = format!("{head} {name}{device}\n");
    let mut field = |name: &str, value: &str, width| {
        text += &hanging(&format!("  {name}:"), 12, value, width);
    };
    field("observed", &finding.observed, width());
    field("expected", &finding.expected, width());
    field("why", &finding.why, width());
    field("effect", &finding.effect, width());
    for change in finding.changes_in_lines() {
        // To be copied as a whole.
        field("change", &change, None);
    }
    if let Some(advice) = &finding.advice {
        field("advice", advice, width());
    }
    text + &format!("  more:     {}\n", finding.more)
}

fn noted(note: &Note) -> String {
    line(&note.id, note.device.as_deref(), &note.text)
}

fn line(id: &str, device: Option<&str>, text: &str) -> String {
    let device = device.map_or_else(String::new, |dev| format!(" ({dev})"));
    format!("{id}{device}: {text}\n")
}

fn section(title: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.flat_map(|line| ["  ".to_owned(), line]).collect();
    if lines.is_empty() { lines } else { format!("{}\n{}\n", bold(title), sentences(&lines)) }
}

fn last_line(report: &Report, goal: Option<Goal>, all: bool) -> String {
    let count = |severity| report.findings.iter().filter(|one| one.severity == severity).count();
    let mut line = format!(
        "{} rules: {} fail, {} warn, {} info; {} fine, {} recorded",
        report.rules_count,
        count(Severity::Fail),
        count(Severity::Warn),
        count(Severity::Info),
        report.fine.len(),
        report.records.len(),
    );
    if !report.suppressed.is_empty() {
        line += &format!("; {} suppressed", report.suppressed.len());
    }
    line.push('\n');
    let unjudged = report.unjudged_rules();
    if unjudged.total() > 0 {
        line += &format!("{unjudged}\n");
    }
    let hidden = report.findings.len().saturating_sub(FIRST);
    if !all && hidden > 0 {
        line += &format!("{hidden} more findings: rxpath check --all\n");
    }
    if goal.is_none() {
        line += "Only settings that are wrong for any goal were judged: --goal latency|throughput|fairness|benchmark\n";
    }
    line
}
