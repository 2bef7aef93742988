//! The reader half of `rxpath-host` uses neither the writer half nor what labs need, and the writer half uses no lab. What
//! they share uses none of them.

use std::collections::BTreeSet;
use std::path::Path;

use regex_lite::Regex;

use super::circles::{Files, absolute, code, paths, read};

/// Halves, and the paths that each must not use.
const FORBIDDEN: [(&str, &[&str]); 3] = [
    ("read", &["write", "lab", "ioctl::order", "ioctl::issue"]),
    ("write", &["lab"]),
    (SHARED, &["read", "write", "lab"]),
];

/// Files next to the folders.
const SHARED: &str = "shared";

/// Methods of the netlink protocol that change something. They are shared, so no path shows their use.
const ORDERS: [&str; 2] = ["change", "create_many"];

fn half(module: &str) -> &str {
    let first = module.split("::").next().unwrap_or_default();
    if ["read", "write", "lab"].contains(&first) { first } else { SHARED }
}

fn of<'f>(files: &'f Files, wanted: &str) -> Vec<(&'f str, &'f str)> {
    let all = files.iter().map(|(module, code)| (module.as_str(), code.as_str()));
    all.filter(|(module, _)| half(module) == wanted).collect()
}

/// Paths that a half must not use: `read::nic: crate::write::setter`.
fn wrong_paths(files: &Files) -> Vec<String> {
    let mut wrong = Vec::new();
    for (from, forbidden) in FORBIDDEN {
        for (module, code) in of(files, from) {
            for path in paths(code) {
                let full = absolute(module, &path).join("::");
                let is_below = |of: &&str| full == **of || full.starts_with(&format!("{of}::"));
                if forbidden.iter().any(is_below) {
                    wrong.push(format!("{module}: {path}"));
                }
            }
        }
    }
    wrong
}

/// Names of the root that lead into a half that readers must not use: with them a path would not show it.
fn wrong_names(files: &Files) -> Vec<String> {
    let reexport = Regex::new(r"\buse\s+\{?\s*(?:write|lab)\b[^;]*").unwrap();
    let root = files.get("").map(String::as_str).unwrap_or_default();
    reexport.find_iter(root).map(|found| found.as_str().to_owned()).collect()
}

/// Methods that a half adds to types of others: `set_up` of `Netlink`. No path shows their use.
fn added(files: &Files, half: &str) -> BTreeSet<String> {
    let declaration = Regex::new(r"(?m)^(?:pub(?:\(\w+\))? )?(?:struct|enum|trait) (\w+)").unwrap();
    let block = Regex::new(r"^impl(?:<[^>]*>)? (\w+)[^{]*\{").unwrap();
    let method = Regex::new(r"^    (?:pub(?:\(\w+\))? )?fn (\w+)").unwrap();
    let codes = of(files, half);
    let own: BTreeSet<&str> = (codes.iter())
        .flat_map(|(_, code)| declaration.captures_iter(code))
        .map(|found| found.get(1).unwrap().as_str())
        .collect();
    let mut added = BTreeSet::new();
    for (_, code) in &codes {
        let mut is_foreign = false;
        for line in code.lines() {
            if let Some(found) = block.captures(line) {
                is_foreign = !line.contains(" for ") && !own.contains(&found[1]);
            } else if let Some(found) = method.captures(line).filter(|_| is_foreign) {
                added.insert(found[1].to_owned());
            }
        }
    }
    added
}

/// Calls of methods that change something, by a half that must not: `read::nic: .set_up(`.
fn wrong_calls(files: &Files) -> Vec<String> {
    let mut wrong = Vec::new();
    for (from, halves) in [("read", &["write", "lab"][..]), ("write", &["lab"][..])] {
        let mut methods: BTreeSet<String> =
            halves.iter().flat_map(|half| added(files, half)).collect();
        if from == "read" {
            methods.extend(ORDERS.map(str::to_owned));
        }
        for (module, code) in of(files, from) {
            let called = methods.iter().map(|name| format!(".{name}("));
            let called = called.filter(|call| code.contains(call.as_str()));
            wrong.extend(called.map(|call| format!("{module}: {call}")));
        }
    }
    wrong
}

#[test]
fn readers_use_no_writer_and_writers_no_lab() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rxpath-host/src");
    let mut files = Files::new();
    read(&source, "", &mut files);
    for half in ["read", "write", "lab", SHARED] {
        let count = of(&files, half).len();
        assert!(count > 5, "{half}: {count} files were read");
    }
    assert!(added(&files, "write").contains("set_up"), "methods of Netlink that writers add");
    let wrong = [wrong_paths(&files), wrong_names(&files), wrong_calls(&files)].concat();
    assert!(
        wrong.is_empty(),
        "move what both halves need to a file of its own:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn each_way_from_a_reader_to_a_writer_is_found() {
    let files = [
        ("", "pub use read::nic::Nic;\npub use lab::owner::Owner;"),
        ("shared", "use crate::read::nic::Nic;"),
        ("read", "pub mod nic;"),
        ("read::nic", "use crate::{HostError, write::setter::{self, Setter}};\nuse super::cpu;"),
        ("read::cpu", "fn f() { super::super::lab::netns::enter(); crate::ioctl::order(); }"),
        (
            "read::link",
            "fn f(route: &mut Netlink) { route.links(); route.set_up(); route.change(); }",
        ),
        (
            "read::fine",
            "// use crate::write::setter;\n#[cfg(test)]\nmod tests {\n    use crate::lab::netns;\n}",
        ),
        ("write", "use crate::read::nic::Nic;"),
        (
            "write::link",
            "impl Netlink {\n    pub fn set_up(&mut self) {}\n}\nstruct Own;\nimpl Own {\n    fn links(&self) {}\n}",
        ),
        ("write::journal", "use crate::lab::owner::ProcessId;"),
    ];
    let files: Files = files.map(|(module, text)| (module.to_owned(), code(text))).into();
    assert_eq!(
        wrong_paths(&files),
        [
            "read::cpu: crate::ioctl::order",
            "read::cpu: super::super::lab::netns::enter",
            "read::nic: crate::write::setter::self",
            "read::nic: crate::write::setter::Setter",
            "write::journal: crate::lab::owner::ProcessId",
            "shared: crate::read::nic::Nic",
        ]
    );
    assert_eq!(wrong_names(&files), ["use lab::owner::Owner"]);
    assert_eq!(wrong_calls(&files), ["read::link: .change(", "read::link: .set_up("]);
}
