//! No two files of a crate import each other: what both need is in a file below them.
//!
//! A parent and its child modules may: a child sees all that its parent has. Tests may, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The code of a crate's files by their modules: `cmd::run`; the root has an empty name.
pub type Files = BTreeMap<String, String>;

/// Reads the files of a folder, which holds the child modules of `parent`.
pub fn read(folder: &Path, parent: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let module = match (parent, stem) {
            (_, "tests") => continue,
            (parent, "lib" | "main") => parent.to_owned(),
            ("", stem) => stem.to_owned(),
            (parent, stem) => format!("{parent}::{stem}"),
        };
        if path.is_dir() {
            read(&path, &module, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.insert(module, code(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The text without comments and without the unit tests at its end.
pub fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| line.split(" // ").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// All paths that begin at the crate, the parent or the module itself, in `use` and elsewhere.
pub fn paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for first in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(first) {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            if !before.is_alphanumeric() && !matches!(before, '_' | ':') {
                tree(&code[at..], "", &mut paths);
            }
        }
    }
    paths
}

/// Reads the tree that a text begins with, `a::{b, c::{d, e}}`, below the path `above`. Gives what follows it.
fn tree<'t>(text: &'t str, above: &str, paths: &mut Vec<String>) -> &'t str {
    let is_end = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':');
    let (path, mut rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
    let path = format!("{above}{path}");
    if !path.ends_with("::") || !rest.starts_with('{') {
        paths.push(path);
        return rest;
    }
    rest = rest[1..].trim_start();
    while !rest.is_empty() && !rest.starts_with('}') {
        rest = tree(rest, &path, paths);
        // Behind the item may be `as NAME` or a star.
        rest = &rest[rest.find([',', '}']).unwrap_or(rest.len())..];
        rest = rest.trim_start_matches(',').trim_start();
    }
    rest.strip_prefix('}').unwrap_or(rest)
}

/// The names that a path in `module` goes through, from the root of the crate.
pub fn absolute<'t>(module: &'t str, path: &'t str) -> Vec<&'t str> {
    let mut at: Vec<&str> = module.split("::").filter(|name| !name.is_empty()).collect();
    for name in path.split("::") {
        match name {
            "crate" => at.clear(),
            "super" => {
                at.pop();
            }
            "self" | "" => {}
            name => at.push(name),
        }
    }
    at
}

/// The file that a path in `module` leads to: the one of the longest part of the path.
fn target(files: &Files, module: &str, path: &str) -> Option<String> {
    let at = absolute(module, path);
    let mut modules = (1..=at.len()).rev().map(|length| at[..length].join("::"));
    modules.find(|module| files.contains_key(module))
}

/// Files that import each other: `a <-> b`.
fn pairs(files: &Files) -> Vec<String> {
    let mut edges = BTreeSet::new();
    for (module, code) in files.iter().filter(|(module, _)| !module.is_empty()) {
        for path in paths(code) {
            edges.extend(target(files, module, &path).map(|to| (module.clone(), to)));
        }
    }
    let is_above = |a: &str, b: &str| b.strip_prefix(a).is_some_and(|rest| rest.starts_with("::"));
    let is_pair = |(a, b): &&(String, String)| {
        a < b && !is_above(a, b) && edges.contains(&(b.clone(), a.clone()))
    };
    edges.iter().filter(is_pair).map(|(a, b)| format!("{a} <-> {b}")).collect()
}

#[test]
fn no_two_files_of_a_crate_import_each_other() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let entry = entry.unwrap();
        let (name, mut files) = (entry.file_name().into_string().unwrap(), Files::new());
        read(&entry.path().join("src"), "", &mut files);
        let (found, count) = (pairs(&files), files.len());
        assert!(count > 1, "{name}: {count} files were read");
        wrong.extend(found.into_iter().map(|pair| format!("{name}: {pair}")));
    }
    let list = wrong.join("\n");
    assert!(wrong.is_empty(), "move what both files need to a file below them:\n{list}");
}

#[test]
fn a_pair_is_found_through_nested_braces_and_the_parent() {
    let files = [
        ("", "mod lane;\nuse crate::lane::a;"),
        ("lane", "mod a;\nmod b;\nuse self::a::{One, self};"),
        (
            "lane::a",
            "use crate::{\n    lane::{self as road, b::{Two as T, *}},\n    other,\n};\nuse super::Road;",
        ),
        ("lane::b", "fn three() -> super::a::Three {}\n"),
        ("lane::b::c", "use super::super::a::Four;\n"),
        (
            "other",
            "// use crate::lane::a;\n#[cfg(test)]\nmod tests {\n    use crate::lane::a::Five;\n}",
        ),
    ];
    let files: Files = files.map(|(module, text)| (module.to_owned(), code(text))).into();
    assert_eq!(pairs(&files), ["lane::a <-> lane::b"]);
}
