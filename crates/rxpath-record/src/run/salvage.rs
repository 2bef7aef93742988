//! Recovers the readable parts of a manifest that cannot be read as a whole.

use rxpath_core::Fact;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::problem::Problem;
use super::reader::check_schema;
use super::{ENVIRONMENT, ENVIRONMENT_SCHEMA, MANIFEST, MANIFEST_SCHEMA};
use crate::environment::{Environment, HostFacts};
use crate::event::{Event, What};
use crate::manifest::{Manifest, Status};

/// The manifest in `text`; fields and list entries that can't be read are left out, each with a problem.
pub(super) fn manifest(text: &str, events: &[Event], problems: &mut Vec<Problem>) -> Manifest {
    let whole = serde_json::from_str::<Manifest>(text);
    if let Ok(manifest) = whole {
        check_schema(MANIFEST, "run", &manifest.schema, problems);
        return manifest;
    }
    let object = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(object)) => object,
        Ok(_) => {
            problems.push(Problem::new(MANIFEST, Some(1), "is not a JSON object: not read"));
            return from_events(events);
        }
        Err(error) => {
            let line = Some(error.line() as u64);
            problems.push(Problem::new(MANIFEST, line, format!("is not JSON: {error}: not read")));
            return from_events(events);
        }
    };
    if let Some(schema) = object.get("schema").and_then(Value::as_str) {
        check_schema(MANIFEST, "run", schema, problems);
    }
    let empty = from_events(events);
    let mut fields = Fields { file: MANIFEST, text, object, problems };
    Manifest {
        schema: fields.one("schema", empty.schema),
        run_id: fields.one("run_id", empty.run_id),
        status: fields.one("status", empty.status),
        command: fields.one("command", empty.command),
        version: fields.one("version", empty.version),
        scenario: fields.one("scenario", empty.scenario),
        question: fields.one("question", empty.question),
        expected: fields.optional("expected"),
        resolved: fields.one("resolved", empty.resolved),
        seed: fields.one("seed", empty.seed),
        started: fields.one("started", empty.started),
        ended: fields.optional("ended"),
        epoch_offset_ns: fields.one("epoch_offset_ns", empty.epoch_offset_ns),
        main_metric: fields.optional("main_metric").unwrap_or(empty.main_metric),
        variants: fields.list("variants"),
        trials: fields.list("trials"),
        comparisons: fields.list("comparisons"),
        noise_floor: fields.optional("noise_floor"),
        predictions: if fields.object.contains_key("predictions") {
            fields.list("predictions")
        } else {
            Vec::new()
        },
        headline: fields.one("headline", empty.headline),
        warnings: fields.list("warnings"),
        files: fields.one("files", empty.files),
    }
}

/// A run reconstructed from its events only.
pub(super) fn from_events(events: &[Event]) -> Manifest {
    let started = events.iter().find_map(|event| match &event.what {
        What::RunStarted { run_id, scenario } => Some((run_id.clone(), scenario.clone())),
        _ => None,
    });
    let (run_id, scenario) = started.unwrap_or_default();
    let how = events.iter().rev().find_map(|event| match &event.what {
        What::RunEnded { how } => Some(how.as_str()),
        _ => None,
    });
    let status = match how {
        Some("complete" | "out-of-time" | "too-noisy") => Status::Complete,
        Some("interrupted") => Status::Interrupted,
        Some(_) => Status::Failed,
        None => Status::Running,
    };
    let warnings = events.iter().filter_map(|event| match &event.what {
        What::Warned(warning) => Some(warning.clone()),
        _ => None,
    });
    Manifest {
        schema: MANIFEST_SCHEMA.into(),
        run_id,
        status,
        command: Vec::new(),
        version: String::new(),
        scenario,
        question: String::new(),
        expected: None,
        resolved: Value::Null,
        seed: 0,
        started: String::new(),
        ended: None,
        epoch_offset_ns: 0,
        main_metric: "delivered_pps".into(),
        variants: Vec::new(),
        trials: Vec::new(),
        comparisons: Vec::new(),
        noise_floor: None,
        predictions: Vec::new(),
        headline: String::new(),
        warnings: warnings.collect(),
        files: std::collections::BTreeMap::new(),
    }
}

/// The host facts in `text`, probe by probe.
pub(super) fn environment(text: &str, problems: &mut Vec<Problem>) -> Option<Environment> {
    if let Ok(environment) = serde_json::from_str::<Environment>(text) {
        check_schema(ENVIRONMENT, "environment", &environment.schema, problems);
        return Some(environment);
    }
    let object = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(object)) => object,
        Ok(_) => {
            problems.push(Problem::new(ENVIRONMENT, Some(1), "is not a JSON object: not read"));
            return None;
        }
        Err(error) => {
            let line = Some(error.line() as u64);
            problems.push(Problem::new(
                ENVIRONMENT,
                line,
                format!("is not JSON: {error}: not read"),
            ));
            return None;
        }
    };
    let mut fields = Fields { file: ENVIRONMENT, text, object, problems };
    let schema = fields.one("schema", ENVIRONMENT_SCHEMA.to_owned());
    let hosts: Map<String, Value> = fields.one("hosts", Map::new());
    check_schema(ENVIRONMENT, "environment", &schema, problems);
    let mut environment = Environment { schema, hosts: std::collections::BTreeMap::new() };
    for (host, facts) in hosts {
        let mut readable = HostFacts::new();
        if let Value::Object(facts) = facts {
            for (probe, fact) in facts {
                let fact = serde_json::from_value(fact).unwrap_or_else(|error| {
                    let line = line_of(text, &probe);
                    let why = format!("{probe} of {host} is not a fact: {error}");
                    problems.push(Problem::new(ENVIRONMENT, line, why));
                    Fact::absent("unreadable in environment.json")
                });
                readable.insert(probe, fact);
            }
        } else {
            let line = line_of(text, &host);
            problems.push(Problem::new(ENVIRONMENT, line, format!("{host} holds no facts")));
        }
        environment.hosts.insert(host, readable);
    }
    Some(environment)
}

/// The fields of a JSON object, taken out one by one.
struct Fields<'a> {
    file: &'static str,
    text: &'a str,
    object: Map<String, Value>,
    problems: &'a mut Vec<Problem>,
}

impl Fields<'_> {
    fn say(&mut self, field: &str, text: String) {
        let line = line_of(self.text, field);
        self.problems.push(Problem::new(self.file, line, text));
    }

    /// A field that must be there.
    fn one<T: DeserializeOwned>(&mut self, field: &str, otherwise: T) -> T {
        match self.object.remove(field) {
            None => {
                self.say(field, format!("`{field}` is missing"));
                otherwise
            }
            Some(value) => serde_json::from_value(value).unwrap_or_else(|error| {
                self.say(field, format!("`{field}` cannot be read, left out: {error}"));
                otherwise
            }),
        }
    }

    fn optional<T: DeserializeOwned>(&mut self, field: &str) -> Option<T> {
        if self.object.contains_key(field) { self.one(field, None) } else { None }
    }

    /// A list of which entries may be unreadable.
    fn list<T: DeserializeOwned>(&mut self, field: &str) -> Vec<T> {
        let entries: Vec<Value> = self.one(field, Vec::new());
        let mut readable = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            match serde_json::from_value(entry) {
                Ok(entry) => readable.push(entry),
                Err(error) => {
                    let text = format!("`{field}[{index}]` cannot be read, left out: {error}");
                    self.say(field, text);
                }
            }
        }
        readable
    }
}

/// The first line that has `"field"` as a key.
fn line_of(text: &str, field: &str) -> Option<u64> {
    let key = format!("\"{field}\"");
    let is_key = |line: &str| {
        line.split_once(&key).is_some_and(|(_, rest)| rest.trim_start().starts_with(':'))
    };
    text.lines().position(is_key).map(|line| line as u64 + 1)
}
