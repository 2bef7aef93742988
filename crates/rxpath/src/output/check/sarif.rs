//! `rxpath check` as SARIF 2.1.0.
//!
//! **Source** OASIS Standard, Static Analysis Results Interchange Format 2.1.0: sections 3.13 (log), 3.14 (run),
//! 3.27 (result), 3.33 (logical location), 3.35 (suppression), 3.49 (rule).

use rxpath_tune::{Finding, Report, Rule, Severity, rules};
use serde_json::{Value, json};

const SCHEMA: &str = "https://raw.githubusercontent.com/oasis-tcs/sarif-spec/master/Schemata/sarif-schema-2.1.0.json";

/// The log: one run, every rule, a result for each finding.
pub fn log(report: &Report) -> Value {
    let all: Vec<&Rule> = rules::all().collect();
    let index = |id: &str| all.iter().position(|rule| rule.id == id);
    let mut results: Vec<Value> =
        report.findings.iter().map(|finding| result(finding, index(&finding.id))).collect();
    for one in &report.suppressed {
        let mut value = result(&one.finding, index(&one.finding.id));
        let why = format!("{} (until {})", one.reason, one.until);
        value["suppressions"] = json!([{ "kind": "external", "justification": why }]);
        results.push(value);
    }
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "rxpath",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": all.iter().map(|rule| describe(rule)).collect::<Vec<_>>(),
            }},
            "invocations": [{ "executionSuccessful": true }],
            "results": results,
        }],
    })
}

fn describe(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.what },
        "fullDescription": { "text": rule.why },
        "help": { "text": format!("{}\nSet now: {}\nUndo: {}", rule.mechanism, rule.set_now, rule.undo) },
        "properties": { "tags": [rule.area.title()] },
    })
}

fn result(finding: &Finding, index: Option<usize>) -> Value {
    let level = match finding.severity {
        Severity::Fail => "error",
        Severity::Warn => "warning",
        Severity::Info => "note",
    };
    let text = format!(
        "Observed: {}. Expected: {}. Why: {}. Effect: {}.",
        finding.observed, finding.expected, finding.why, finding.effect
    );
    let place = finding.device.as_deref().unwrap_or("host");
    let mut value = json!({
        "ruleId": finding.id,
        "level": level,
        "message": { "text": text },
        "locations": [{ "logicalLocations": [{ "name": place, "kind": "resource" }] }],
        "properties": {
            "effectSize": finding.effect_size,
            "changes": finding.changes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        },
    });
    if let Some(index) = index {
        value["ruleIndex"] = json!(index);
    }
    value
}
