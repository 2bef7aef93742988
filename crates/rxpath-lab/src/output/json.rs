//! Any program that prints one JSON document: a metric per pointer (RFC 6901).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Metrics, bad, form};

pub(super) fn read(text: &str, pointers: &BTreeMap<String, String>) -> Result<Metrics, String> {
    let value = document("json", text)?;
    pointers
        .iter()
        .map(|(metric, pointer)| Ok((metric.clone(), number(&value, metric, pointer)?)))
        .collect()
}

/// The whole output as JSON; when that fails the last line that is, for programs that log before.
pub(super) fn document(parser: &str, text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) => text
            .lines()
            .rev()
            .find(|line| line.starts_with('{'))
            .and_then(|line| serde_json::from_str(line).ok())
            .ok_or_else(|| form(parser, format!("no JSON document ({error})"), text)),
    }
}

/// The number at a pointer; numbers in quotes count.
pub(super) fn number(value: &Value, metric: &str, pointer: &str) -> Result<f64, String> {
    let missing = || bad(metric, format!("nothing at {pointer}"));
    let found = value.pointer(pointer).ok_or_else(missing)?;
    let quoted = || found.as_str().and_then(|text| text.trim().parse().ok());
    found
        .as_f64()
        .or_else(quoted)
        .filter(|number| number.is_finite())
        .ok_or_else(|| bad(metric, format!("{pointer} is {}, not a number", shortened(found))))
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 40 {
        text.chars().take(37).chain("...".chars()).collect()
    } else {
        text
    }
}
