//! Files of a crate do not import each other in a circle, however long: what they need is in a file below them.
//!
//! A parent and its child modules may import each other: a child sees all that its parent has. Tests may, too.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
fn target<'f>(files: &'f Files, module: &str, path: &str) -> Option<&'f str> {
    let at = absolute(module, path);
    let mut modules = (1..=at.len()).rev().map(|length| at[..length].join("::"));
    let (module, _) = modules.find_map(|module| files.get_key_value(&module))?;
    Some(module)
}

/// The files that each file uses, without those above and below it.
type Uses<'f> = BTreeMap<&'f str, BTreeSet<&'f str>>;

fn uses(files: &Files) -> Uses<'_> {
    let mut uses = Uses::new();
    for (module, code) in files.iter().filter(|(module, _)| !module.is_empty()) {
        let module = module.as_str();
        let paths = paths(code);
        let targets = paths.iter().filter_map(|path| target(files, module, path));
        let others = targets.filter(|to| !is_below(module, to) && !is_below(to, module));
        uses.insert(module, others.collect());
    }
    uses
}

/// Whether a module is `above` or below it.
fn is_below(module: &str, above: &str) -> bool {
    let rest = module.strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The shortest circle through a file, from it and back to it.
fn circle<'f>(uses: &Uses<'f>, start: &'f str) -> Option<Vec<&'f str>> {
    let mut seen = BTreeSet::new();
    let mut routes = VecDeque::from([vec![start]]);
    while let Some(route) = routes.pop_front() {
        for to in &uses[route.last()?] {
            let longer = [route.as_slice(), &[*to]].concat();
            if *to == start {
                return Some(longer);
            }
            if seen.insert(*to) {
                routes.push_back(longer);
            }
        }
    }
    None
}

/// Circles of imports, `a -> b -> a`: at least one for any files that can be reached from each other.
fn circles(files: &Files) -> Vec<String> {
    let uses = uses(files);
    let found = uses.keys().copied().filter_map(|start| circle(&uses, start));
    // Each of its files may find it: the first by name reports it.
    let once = found.filter(|circle| circle.iter().min() == circle.first());
    once.map(|circle| circle.join(" -> ")).collect()
}

#[test]
fn no_files_of_a_crate_import_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let entry = entry.unwrap();
        let (name, mut files) = (entry.file_name().into_string().unwrap(), Files::new());
        read(&entry.path().join("src"), "", &mut files);
        let (found, count) = (circles(&files), files.len());
        assert!(count > 0, "{name}: no file was read");
        wrong.extend(found.into_iter().map(|circle| format!("{name}: {circle}")));
    }
    let list = wrong.join("\n");
    assert!(wrong.is_empty(), "move what these files need to a file below them:\n{list}");
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
    assert_eq!(circles(&files), ["lane::a -> lane::b -> lane::a"]);
}

#[test]
fn a_circle_of_three_is_found_once() {
    let three = |last: &str| -> Files {
        let files = [
            ("", "mod a;\nmod b;\nmod c;\nmod d;"),
            ("a", "use crate::c::Three;"),
            ("b", "use crate::a::One;"),
            ("c", last),
            ("d", "use crate::{a::One, b::Two, c::Three};"),
        ];
        files.map(|(module, text)| (module.to_owned(), text.to_owned())).into()
    };
    assert_eq!(circles(&three("use crate::b::Two;")), ["a -> c -> b -> a"]);
    assert_eq!(circles(&three("use std::fmt;")), Vec::<String>::new());
    let both = circles(&three("use crate::{a::One, b::Two};"));
    assert_eq!(both, ["a -> c -> a"], "the shortest one");
}

#[test]
fn what_only_a_parent_closes_is_no_circle() {
    let files = [
        ("a", "use self::low::One;\nuse crate::b::Two;"),
        ("a::low", "use super::Three;\nuse self::One;"),
        ("b", "use crate::a::low::One;"),
    ];
    let files: Files = files.map(|(module, text)| (module.to_owned(), text.to_owned())).into();
    assert_eq!(circles(&files), Vec::<String>::new());
}
