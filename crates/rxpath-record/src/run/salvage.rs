//! Recovers the readable parts of a manifest that cannot be read as a whole.

use rxpath_core::Fact;
use rxpath_core::envelope::schema_id;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::problem::RunProblem;
use super::{ENVIRONMENT, ENVIRONMENT_SCHEMA, MAJOR, MANIFEST, MANIFEST_SCHEMA};
use crate::environment::{Environment, RecordedFacts};
use crate::event::{RunEvent, What};
use crate::manifest::{Manifest, Status};

/// The manifest in `text`; fields and list entries that can't be read are left out, each with a problem.
pub(super) fn manifest(
    text: &str,
    events: &[RunEvent],
    problems: &mut Vec<RunProblem>,
) -> Manifest {
    let Some(object) = object(MANIFEST, text, problems) else { return from_events(events) };
    let manifest = serde_json::from_value(object.clone().into())
        .unwrap_or_else(|_| readable(text, object, from_events(events), problems));
    check_schema(MANIFEST, "run", &manifest.schema, problems);
    manifest
}

/// Says when `schema` is of another kind or of a newer major version than this program's.
fn check_schema(file: &str, name: &str, schema: &str, problems: &mut Vec<RunProblem>) {
    let version = schema.strip_prefix("rxpath/").and_then(|rest| rest.split_once('/'));
    let ours = schema_id(name);
    let text = match version {
        Some((kind, version)) if kind == name => {
            match version.split('.').next().and_then(|major| major.parse::<u64>().ok()) {
                Some(major) if major <= MAJOR => return,
                Some(_) => format!(
                    "was written by a newer rxpath (`{schema}`, this one reads `{ours}`): what it does not \
                     know is left out"
                ),
                None => format!("schema `{schema}` has no version; read as `{ours}`"),
            }
        }
        _ => format!("schema `{schema}` is not `{ours}`; read as that"),
    };
    problems.push(RunProblem::new(file, None, text));
}

/// The JSON object in `text`.
fn object(file: &str, text: &str, problems: &mut Vec<RunProblem>) -> Option<Map<String, Value>> {
    let (line, why) = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(object)) => return Some(object),
        Ok(_) => (1, "is not a JSON object: not read".to_owned()),
        Err(error) => (error.line() as u64, format!("is not JSON: {error}: not read")),
    };
    problems.push(RunProblem::new(file, Some(line), why));
    None
}

/// Reads `object` without the fields and list entries that cannot be read: each is tried alone in place of its default.
fn readable<T: DeserializeOwned + Serialize>(
    text: &str,
    object: Map<String, Value>,
    empty: T,
    problems: &mut Vec<RunProblem>,
) -> T {
    let Ok(Value::Object(defaults)) = serde_json::to_value(&empty) else { return empty };
    let unreadable = |field: &str, value: Option<&Value>| {
        let mut alone = defaults.clone();
        alone.remove(field);
        alone.extend(value.map(|value| (field.to_owned(), value.clone())));
        serde_json::from_value::<T>(Value::Object(alone)).err()
    };
    let mut found = defaults.clone();
    for field in defaults.keys().filter(|field| !object.contains_key(*field)) {
        found.remove(field);
        if unreadable(field, None).is_some() {
            found.insert(field.clone(), defaults[field].clone());
            problems.push(RunProblem::new(MANIFEST, None, format!("`{field}` is missing")));
        }
    }
    for (field, value) in object {
        let Some(why) = unreadable(&field, Some(&value)) else {
            found.insert(field, value);
            continue;
        };
        let line = line_of(text, &field);
        let mut left_out = |what: &str, why: serde_json::Error| {
            let said = format!("`{what}` cannot be read, left out: {why}");
            problems.push(RunProblem::new(MANIFEST, line, said));
        };
        match value {
            Value::Array(entries) if unreadable(&field, Some(&Value::Array(vec![]))).is_none() => {
                let mut list = Vec::new();
                for (index, entry) in entries.into_iter().enumerate() {
                    let alone = Value::Array(vec![entry.clone()]);
                    match unreadable(&field, Some(&alone)) {
                        None => list.push(entry),
                        Some(why) => left_out(&format!("{field}[{index}]"), why),
                    }
                }
                found.insert(field, Value::Array(list));
            }
            _ => left_out(&field, why),
        }
    }
    serde_json::from_value(Value::Object(found)).unwrap_or(empty)
}

/// A run reconstructed from its events only.
pub(super) fn from_events(events: &[RunEvent]) -> Manifest {
    let mut manifest = Manifest {
        schema: MANIFEST_SCHEMA.into(),
        main_metric: "delivered_pps".into(),
        ..Manifest::default()
    };
    for event in events {
        match &event.what {
            What::RunStarted { run_id, scenario } if manifest.run_id.is_empty() => {
                (manifest.run_id, manifest.scenario) = (run_id.clone(), scenario.clone());
            }
            What::RunEnded { how } => {
                manifest.status = match how.as_str() {
                    "complete" | "out-of-time" | "too-noisy" => Status::Complete,
                    "interrupted" => Status::Interrupted,
                    _ => Status::Failed,
                };
            }
            What::Warned(warning) => manifest.warnings.push(warning.clone()),
            _ => {}
        }
    }
    manifest
}

/// The host facts in `text`, probe by probe.
pub(super) fn environment(text: &str, problems: &mut Vec<RunProblem>) -> Option<Environment> {
    let object = object(ENVIRONMENT, text, problems)?;
    if let Ok(environment) = serde_json::from_value::<Environment>(object.clone().into()) {
        check_schema(ENVIRONMENT, "environment", &environment.schema, problems);
        return Some(environment);
    }
    let mut problem = |at: &str, why: String| {
        problems.push(RunProblem::new(ENVIRONMENT, line_of(text, at), why));
    };
    let schema = object.get("schema").and_then(Value::as_str);
    if schema.is_none() {
        problem("schema", "`schema` is missing or no text".into());
    }
    let hosts = object.get("hosts").and_then(Value::as_object);
    if hosts.is_none() {
        problem("hosts", "`hosts` is missing or no object".into());
    }
    let schema = schema.unwrap_or(ENVIRONMENT_SCHEMA).to_owned();
    let mut environment = Environment { schema, hosts: std::collections::BTreeMap::new() };
    for (host, facts) in hosts.into_iter().flatten() {
        let mut readable = RecordedFacts::new();
        if !facts.is_object() {
            problem(host, format!("{host} holds no facts"));
        }
        for (probe, fact) in facts.as_object().into_iter().flatten() {
            let fact = serde_json::from_value(fact.clone()).unwrap_or_else(|error| {
                problem(probe, format!("{probe} of {host} is not a fact: {error}"));
                Fact::absent("unreadable in environment.json")
            });
            readable.insert(probe.clone(), fact);
        }
        environment.hosts.insert(host.clone(), readable);
    }
    check_schema(ENVIRONMENT, "environment", &environment.schema, problems);
    Some(environment)
}

/// The first line that has `"field"` as a key.
fn line_of(text: &str, field: &str) -> Option<u64> {
    let key = format!("\"{field}\"");
    let is_key = |line: &str| {
        line.split_once(&key).is_some_and(|(_, rest)| rest.trim_start().starts_with(':'))
    };
    text.lines().position(is_key).map(|line| line as u64 + 1)
}
