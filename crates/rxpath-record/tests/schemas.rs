//! What is written follows the schemas of the types.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // clippy excepts #[test] functions only

#[path = "support/run.rs"]
mod support;

use rxpath_record::manifest::Manifest;
use rxpath_record::run::RunWriter;
use rxpath_record::schema::{printed, schema};
use serde_json::Value;

fn check(name: &str, value: &Value) {
    let schema = serde_json::to_value(schema(name).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(errors, Vec::<String>::new(), "{name}");
}

#[test]
fn written_files_follow_their_schemas() {
    let base = tempfile::TempDir::new().unwrap();
    let mut writer = RunWriter::create(base.path(), support::RUN_ID).unwrap();
    writer.environment(&support::environment()).unwrap();
    for event in support::events() {
        writer.event(&event).unwrap();
    }
    let run = writer.finish(support::manifest()).unwrap();
    let read = |name: &str| std::fs::read_to_string(run.join(name)).unwrap();
    check("run", &serde_json::from_str(&read("manifest.json")).unwrap());
    check("environment", &serde_json::from_str(&read("environment.json")).unwrap());
    let mut types = std::collections::BTreeSet::new();
    for line in read("events.jsonl").lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        check("event", &event);
        types.insert(event["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(types.len(), 8, "one of each type of event: {types:?}");
}

#[test]
fn a_schema_refuses_what_is_wrong() {
    let schema = serde_json::to_value(schema("run").unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut manifest = serde_json::to_value(support::manifest()).unwrap();
    assert!(validator.is_valid(&manifest));
    manifest["status"] = "done".into();
    assert!(!validator.is_valid(&manifest));
    manifest["status"] = "complete".into();
    manifest["trials"][0]["ledger"]["offered_packets"] = "many".into();
    assert!(!validator.is_valid(&manifest));
}

#[test]
fn a_file_of_an_earlier_version_lacks_what_is_always_printed() {
    let printed = serde_json::to_value(printed::<Manifest>()).unwrap();
    let printed = jsonschema::validator_for(&printed).unwrap();
    let mut manifest = serde_json::to_value(support::manifest()).unwrap();
    assert!(printed.is_valid(&manifest));
    manifest.as_object_mut().unwrap().remove("main_metric");
    check("run", &manifest);
    assert!(!printed.is_valid(&manifest));
}

#[test]
fn an_unknown_name_has_no_schema() {
    assert!(schema("nothing").is_none());
}
