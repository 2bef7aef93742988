//! `rxpath check` as JSON Lines.

use anyhow::Context;
use rxpath_tune::Report;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// One line for the settings, one for each answer, one for the counts.
pub fn render(report: &Report, settings: &impl Serialize) -> anyhow::Result<String> {
    let mut lines = vec![line("settings", settings)?];
    let all = serde_json::to_value(report)?;
    let kinds = [
        ("findings", "finding"),
        ("cautions", "caution"),
        ("records", "record"),
        ("fine", "fine"),
        ("unseen", "unseen"),
        ("silent", "silent"),
        ("unjudged", "unjudged"),
        ("suppressed", "suppressed"),
    ];
    for (list, kind) in kinds {
        for answer in all[list].as_array().context("a report has lists")? {
            lines.push(line(kind, answer)?);
        }
    }
    let result = json!({
        "rules_count": report.rules_count,
        "findings_count": report.findings.len(),
        "suppressed_count": report.suppressed.len(),
    });
    lines.push(line("result", &result)?);
    Ok(lines.join("\n") + "\n")
}

fn line(kind: &str, value: &impl Serialize) -> anyhow::Result<String> {
    let mut object = Map::from_iter([("type".to_owned(), Value::from(kind))]);
    match serde_json::to_value(value)? {
        Value::Object(fields) => object.extend(fields),
        other => anyhow::bail!("a line is an object, not {other}"),
    }
    Ok(serde_json::to_string(&object)?)
}
