//! Texts with nothing in them: no key outside of the sections has a use for one.

use serde_json::Value;

use super::error::FileError;
use super::merge::SECTIONS;
use super::source::Positions;

/// Further tables whose values are checked by their keys: a list of CPUs may be empty.
const CHECKED: [&str; 5] = ["trials", "sweep", "axes", "hosts", "network"];

/// An error for the first text that is empty.
pub(super) fn refuse(positions: &Positions<'_>) -> Result<(), FileError> {
    let Some(path) = first("", &Value::Object(positions.tree()?)) else { return Ok(()) };
    Err(FileError::new(&positions.at(&path), format!("`{path}` is empty"), right(&path)))
}

/// The path of the first empty text.
fn first(path: &str, value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text.trim().is_empty().then(|| path.to_owned()),
        Value::Array(values) => {
            values.iter().enumerate().find_map(|(i, value)| first(&format!("{path}[{i}]"), value))
        }
        Value::Object(table) => {
            let is_checked = |name: &str| SECTIONS.contains(&name) || CHECKED.contains(&name);
            let dot = if path.is_empty() { "" } else { "." };
            table
                .iter()
                .filter(|(name, _)| !is_checked(name))
                .find_map(|(name, value)| first(&format!("{path}{dot}{name}"), value))
        }
        _ => None,
    }
}

/// What would be right at a path.
fn right(path: &str) -> &'static str {
    let (owner, key) = path.rsplit_once('.').unwrap_or(("", path));
    match (owner.split('[').next().unwrap_or_default(), key) {
        ("compare", "metric") => {
            "name a metric, or leave the key out: then the main metric is compared"
        }
        ("compare", "base") => {
            "name a variant, or leave the key out: then the first one is the base"
        }
        ("compare", "variant" | "figures" | "source" | "machine")
        | ("variant", "name")
        | ("", "question") => "write a text",
        _ => "write a text, or leave the key out",
    }
}
