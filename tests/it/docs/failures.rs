//! The reference of hosts has each message about a host that cannot be used, with what to do.

use std::fs;

use toml::{Table, Value};

use crate::commands::root;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The parts of a text between its placeholders, without punctuation at their ends.
fn fixed(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for part in text.split('{') {
        // Only the first part has no placeholder before it.
        let rest = part.split_once('}').map_or(part, |(_, rest)| rest);
        let words = rest.trim_matches([' ', ':', ',', '(', ')']);
        if !words.is_empty() {
            all.push(words);
        }
    }
    all
}

#[test]
fn each_refusal_of_a_host_is_in_the_table_of_failures() {
    let reference = read("docs/reference/hosts.md");
    let (_, table) = reference.split_once("\n## Failures\n").unwrap();
    let refusals: Table = toml::from_str(&read("crates/rxpath-remote/src/refusals.toml")).unwrap();
    let known = refusals.get("known").and_then(Value::as_array).unwrap();
    assert!(known.len() > 20, "{known:?}");
    for one in known {
        let text = one.get("text").and_then(Value::as_str).unwrap();
        assert!(!fixed(text).is_empty(), "{text}");
        for words in fixed(text) {
            assert!(table.contains(words), "`{words}` of `{text}` is missing in the reference");
        }
    }
}
