//! What the program printed, held against the schema that it prints itself.

use std::process::Command;

use serde_json::Value;

/// The result of one JSON document, which must be as `rxpath schema NAME` says.
#[track_caller]
pub fn result(name: &str, printed: &str) -> Value {
    let output =
        Command::new(env!("CARGO_BIN_EXE_rxpath")).args(["schema", name]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let document: Value = serde_json::from_str(printed).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
    assert_eq!(document["schema"].as_str().unwrap().split('/').nth(1), Some(name));
    document["result"].clone()
}
