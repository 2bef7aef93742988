//! Every parser of outside input has a fuzz target.
//!
//! Parsers go by their name: public functions called `parse`, `parse_…`, `from_toml` and `from_json`, and `FromStr`. One that
//! is not in `fuzz/targets.rs` fails here, unless it is listed with the reason.

use std::fs;
use std::path::{Path, PathBuf};

use regex_lite::Regex;

use crate::commands::root;

/// Parsers that need no target of their own: file, name, and why.
const EXCEPTIONS: [(&str, &str, &str); 7] = [
    ("rxpath/src/cli.rs", "parse", "reads arguments with clap"),
    (
        "rxpath-host/src/read/root.rs",
        "Root::parsed",
        "gives a file to the parser that it is called with",
    ),
    (
        "rxpath-host/src/read/netlink/sockdiag.rs",
        "SkMemInfo::parse",
        "part of netlink_udp and netlink_tcp",
    ),
    ("rxpath-load/src/http/request.rs", "parse", "part of http_request, by its dialogue"),
    ("rxpath-lab/src/scenario/cpus.rs", "CpuExpr::parse", "part of scenario"),
    ("rxpath-model/src/sim/values.rs", "Values::from_toml", "part of sim_parameters"),
    ("rxpath-core/src/units.rs", "$name", "a macro: units has each of its types"),
];

/// A parser: its file below `crates`, its name, and texts of which one must stand in the list of targets.
#[derive(Debug)]
struct Parser {
    file: String,
    name: String,
    called: Vec<String>,
}

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The parsers that a file defines outside of its tests.
fn parsers(file: &str, text: &str) -> Vec<Parser> {
    let function = Regex::new(r"^( *)pub fn (parse\w*|from_toml|from_json)[<(]").unwrap();
    let conversion = Regex::new(r"^ *impl (?:std::str::)?FromStr for ([\w$]+)").unwrap();
    let block = Regex::new(r"^impl(?:<[^>]*>)? (?:.* for )?(\w+)").unwrap();
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
    let path = Path::new(file);
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    // As it is called by its module, or re-exported by the one above.
    let modules = [stem(path), stem(path.parent().unwrap())];
    let mut owner = String::new();
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(block) = block.captures(line) {
            block[1].clone_into(&mut owner);
        }
        if let Some(found_in) = conversion.captures(line) {
            let name = found_in[1].to_owned();
            let called = vec![format!("parse::<{name}>"), format!("::{name}>()")];
            found.push(Parser { file: file.into(), name, called });
        } else if let Some(defined) = function.captures(line) {
            let name = &defined[2];
            let is_method = !defined[1].is_empty();
            let (name, called) = if is_method {
                let name = format!("{owner}::{name}");
                (name.clone(), vec![format!("{name}(")])
            } else if name == "parse" {
                (name.into(), modules.iter().map(|of| format!("{of}::parse(")).collect())
            } else {
                (name.into(), vec![format!("{name}(")])
            };
            found.push(Parser { file: file.into(), name, called });
        }
    }
    found
}

#[test]
fn every_parser_has_a_fuzz_target() {
    let crates = root().join("crates");
    let mut files = Vec::new();
    for entry in fs::read_dir(&crates).unwrap() {
        let source = entry.unwrap().path().join("src");
        sources(&source, &mut files);
    }
    let targets = fs::read_to_string(root().join("fuzz/targets.rs")).unwrap();
    let mut excused = 0;
    let mut missing = Vec::new();
    let mut all = 0;
    for path in files {
        let file = path.strip_prefix(&crates).unwrap().to_str().unwrap();
        for parser in parsers(file, &fs::read_to_string(&path).unwrap()) {
            all += 1;
            let known = parser.called.iter().any(|call| targets.contains(call));
            let listed =
                EXCEPTIONS.iter().any(|(of, name, _)| *of == parser.file && *name == parser.name);
            excused += usize::from(listed);
            if !known && !listed {
                missing.push(parser);
            }
        }
    }
    assert!(missing.is_empty(), "no target in fuzz/targets.rs calls: {missing:#?}");
    assert_eq!(excused, EXCEPTIONS.len(), "an exception for a parser that is not there");
    assert!(all > 60, "the parsers are found by their names: {all}");
}

/// The fuzzer is a workspace of its own, which no other build compiles: a crate that its manifest forgets breaks it.
#[test]
fn the_fuzzer_depends_on_each_crate_that_its_targets_name() {
    let read = |path: &str| -> toml::Table {
        fs::read_to_string(root().join(path)).unwrap().parse().unwrap()
    };
    let has = read("fuzz/Cargo.toml")["dependencies"].as_table().unwrap().clone();
    let workspace = read("Cargo.toml")["workspace"]["dependencies"].as_table().unwrap().clone();
    let targets = fs::read_to_string(root().join("fuzz/targets.rs")).unwrap();
    let named: Vec<&String> = (workspace.keys())
        .filter(|name| {
            let path = Regex::new(&format!(r"\b{}::", name.replace('-', "_"))).unwrap();
            path.is_match(&targets)
        })
        .collect();
    let missing: Vec<_> = named.iter().filter(|name| !has.contains_key(name.as_str())).collect();
    assert!(missing.is_empty(), "fuzz/Cargo.toml misses {missing:?}");
    assert!(named.len() > 5, "the crates are found by their names: {named:?}");
}

#[test]
fn a_parser_without_a_target_is_found() {
    let text = "impl Thing {\n    pub fn parse(text: &str) {}\n}\nimpl FromStr for Other {\n}\npub fn parse_more(text: &str) {}\n\
                pub fn parse(text: &str) {}\n#[cfg(test)]\nmod tests {\n    pub fn parse_not(text: &str) {}\n}\n";
    let names: Vec<_> = parsers("x/src/a/b.rs", text).into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["Thing::parse", "Other", "parse_more", "parse"]);
}
