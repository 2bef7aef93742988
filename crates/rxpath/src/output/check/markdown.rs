//! `rxpath check` as Markdown.

use rxpath_tune::{Finding, Goal, Report};

use super::among;

/// The whole report: a table of the findings, each in full, then the counts.
pub fn render(report: &Report, goal: Option<Goal>, kernel: Option<&str>) -> String {
    let goal = goal.map_or("any goal", Goal::as_str);
    let mut out =
        format!("# rxpath check, for {goal}\n\nKernel {}.\n\n", kernel.unwrap_or("unknown"));
    if !report.has_judged() {
        out += "Nothing could be judged.\n\n";
    } else if report.findings.is_empty() {
        out += &format!("Nothing to change{}.\n\n", among(report));
    } else {
        out += "| severity | rule | device | observed | expected |\n|---|---|---|---|---|\n";
        out.extend(report.findings.iter().map(row));
        out.push('\n');
    }
    out.extend(report.findings.iter().map(full));
    if !report.cautions.is_empty() {
        out += "## Before you trust measurements on this host\n\n";
        let notes = report.cautions.iter();
        out.extend(notes.map(|note| format!("- {}: {}\n", note.id, escaped(&note.text))));
        out.push('\n');
    }
    for one in &report.suppressed {
        let (id, reason) = (&one.finding.id, escaped(&one.reason));
        out += &format!("Suppressed until {}: {id} ({reason})\n\n", one.until);
    }
    let unjudged = report.unjudged_rules();
    let unjudged = if unjudged.total() == 0 { String::new() } else { format!(" {unjudged}.") };
    out + &format!(
        "{} rules; {} answers fine, {} recorded.{unjudged}\n",
        report.rules_count,
        report.fine.len(),
        report.records.len(),
    )
}

fn row(finding: &Finding) -> String {
    let (severity, device) = (finding.severity.as_str(), finding.device.as_deref().unwrap_or(""));
    let [observed, expected] = [&finding.observed, &finding.expected].map(|text| escaped(text));
    format!("| {severity} | {} | {device} | {observed} | {expected} |\n", finding.id)
}

fn full(finding: &Finding) -> String {
    let device = finding.device.as_ref().map_or_else(String::new, |dev| format!(" ({dev})"));
    let [why, effect] = [&finding.why, &finding.effect].map(|text| escaped(text));
    let mut out = format!("## {}{device}\n\n{why}. Effect: {effect}.\n\n", finding.id);
    out.extend(finding.changes_in_lines().iter().map(|change| format!("- `{change}`\n")));
    if let Some(advice) = &finding.advice {
        out += &format!("- {}\n", escaped(advice));
    }
    out + &format!("- more: `{}`\n\n", finding.more)
}

/// Escapes text for Markdown in one table cell: names of devices and settings come from the host.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '[' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_cell_stays_a_cell() {
        assert_eq!(super::escaped("a|b\nc <d>"), "a\\|b c \\<d>");
    }
}
