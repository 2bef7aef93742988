//! A public type has a name of its own across all crates: who reads it anywhere knows which one is meant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use regex_lite::Regex;

use super::circles::{Files, read};

/// Names of public types with the crates that declare them, where more than one does.
fn shared_names<'a>(crates: impl IntoIterator<Item = (&'a str, &'a Files)>) -> Vec<String> {
    let declaration = Regex::new(r"(?m)^\s*pub (?:struct|enum|trait|type|union) (\w+)").unwrap();
    let mut owners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, files) in crates {
        let declared = files.values().flat_map(|code| declaration.captures_iter(code));
        for found in declared.filter_map(|found| found.get(1)) {
            owners.entry(found.as_str()).or_default().insert(name);
        }
    }
    let shared = owners.iter().filter(|(_, crates)| crates.len() > 1);
    shared.map(|(name, crates)| format!("{name}: {crates:?}")).collect()
}

#[test]
fn public_types_have_names_of_their_own_across_crates() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut crates = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let files: &mut Files = crates.entry(entry.file_name().into_string().unwrap()).or_default();
        read(&entry.path().join("src"), "", files);
    }
    assert!(crates.len() > 10, "{:?}", crates.keys());
    let shared = shared_names(crates.iter().map(|(name, files)| (name.as_str(), files)));
    assert!(shared.is_empty(), "in more than one crate, rename one:\n{}", shared.join("\n"));
}

#[test]
fn a_name_in_two_crates_is_found() {
    let files = |code: &str| Files::from([(String::new(), code.to_owned())]);
    let (one, other) = (
        files("pub struct Drop;\n    pub type Rate = u64;\npub(crate) struct Row;\n"),
        files("pub enum Drop {}\npub struct Rate2;\npub struct Row;\nstruct Rate;\n"),
    );
    let found = shared_names([("a", &one), ("b", &other)]);
    assert_eq!(found, ["Drop: {\"a\", \"b\"}"]);
}
