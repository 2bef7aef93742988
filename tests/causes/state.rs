//! What was asked so far: one JSON line a cause in `target/causes/rows.jsonl`, and each answer beside it.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use serde_json::Value;

use crate::cause::Cause;
use crate::row::Row;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn place() -> PathBuf {
    let place = root().join("target/causes");
    fs::create_dir_all(&place).unwrap();
    place
}

fn kept() -> Vec<Row> {
    let text = fs::read_to_string(place().join("rows.jsonl")).unwrap_or_default();
    // It may have been killed within a line.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

pub fn has(name: &str) -> bool {
    kept().iter().any(|row| row.name == name && row.missing.is_none())
}

pub fn keep(row: &Row) {
    let path = place().join("rows.jsonl");
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{}", serde_json::to_string(row).unwrap()).unwrap();
}

/// An answer as a whole, for whoever wants to know why.
pub fn keep_answer(name: &str, number: usize, json: &Value) {
    fs::write(place().join(format!("{name}-{number}.json")), format!("{json:#}")).unwrap();
}

/// The last answers about each cause, in the order of the list.
pub fn rows(all: &[Cause]) -> Vec<Row> {
    let kept = kept();
    let of = |cause: &Cause| {
        let row = kept.iter().rev().find(|row| row.name == cause.name)?;
        Some(Row { truth: cause.truth.into(), ..row.clone() })
    };
    all.iter().filter_map(of).collect()
}

pub fn write_page(text: &str) {
    let path = root().join("docs/results/causes.md");
    fs::write(&path, text).unwrap();
    println!("{}", path.canonicalize().unwrap().display());
}
