//! The documents: their links lead somewhere, their command lines run, what they name is there, their tables are those of the code.

mod commands;
mod failures;
mod links;
mod names;
mod reference;

use std::fs;
use std::path::PathBuf;

use crate::commands::root;

/// Every Markdown file of `docs/`, and those of the root.
pub fn pages() -> Vec<PathBuf> {
    let names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
    let mut pages = names.map(|name| root().join(name)).to_vec();
    let mut dirs = vec![root().join("docs")];
    while let Some(dir) = dirs.pop() {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    assert!(pages.len() > 50, "{pages:?}");
    pages
}

/// The lines of a document outside its code blocks.
fn outside_blocks(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fence && !fenced
    })
}
