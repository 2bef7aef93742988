//! Each relative link of a document leads to a file, and its anchor to a heading there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{outside_blocks, pages};
use crate::commands::root;

/// The lines outside code blocks, with inline code emptied.
fn prose(text: &str) -> Vec<String> {
    let emptied = |line: &str| line.split('`').step_by(2).collect::<Vec<_>>().join("``");
    outside_blocks(text).map(emptied).collect()
}

/// The targets of links and images.
fn links(text: &str) -> Vec<String> {
    let of_line = |line: String| {
        let targets = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
        targets.map(str::to_owned).collect::<Vec<_>>()
    };
    prose(text).into_iter().flat_map(of_line).collect()
}

/// The anchors of a page, as GitHub and mdBook make them of its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut all = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        let Some(heading) = line.strip_prefix('#').filter(|_| !fenced) else { continue };
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
        all.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
    }
    all
}

/// What is wrong with a link of this page.
fn broken(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
    let place = || format!("{}: {link}", page.strip_prefix(root()).unwrap().display());
    if !target.exists() {
        return Some(format!("{}: no such file", place()));
    }
    let missing =
        !anchor.is_empty() && !anchors(&fs::read_to_string(&target).unwrap()).contains(anchor);
    missing.then(|| format!("{}: no such heading", place()))
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        for link in links(&fs::read_to_string(&page).unwrap()) {
            count += 1;
            wrong.extend(broken(&page, &link));
        }
    }
    assert!(count > 200, "{count} links");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_is_in_the_books_contents() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let named = links(&fs::read_to_string(&summary).unwrap());
    let named: BTreeSet<PathBuf> = named.iter().map(|link| docs.join(link)).collect();
    let there = pages().into_iter().filter(|page| page.starts_with(&docs) && *page != summary);
    assert_eq!(there.collect::<BTreeSet<_>>(), named);
}

#[test]
fn a_broken_link_is_found() {
    let page = root().join("docs/index.md");
    let text = "See [a](no.md) and `[b](code.md)`.\n```\n[c](fenced.md)\n```\n";
    assert_eq!(links(text), ["no.md"]);
    assert!(broken(&page, "no.md").is_some());
    assert!(broken(&page, "SUMMARY.md#how-to").is_none());
    assert!(broken(&page, "SUMMARY.md#nowhere").is_some());
}
