//! The command lines of the documents: each is one that this version takes, and those that need nothing run.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use super::pages;
use crate::program::said;

/// Command lines of a document: those of blocks that are set apart, and those between backticks.
fn of_document(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced || line.starts_with("    ") {
            found.extend(command(line));
        } else {
            found.extend(line.split('`').skip(1).step_by(2).filter_map(command));
        }
    }
    found
}

/// What comes after `rxpath`, up to what is said of it.
fn command(line: &str) -> Option<String> {
    let line = line.trim().trim_start_matches("$ ");
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    let words = line.strip_prefix("rxpath")?;
    if !words.is_empty() && !words.starts_with(' ') {
        return None;
    }
    let end = words.find(" #").into_iter().chain(words.trim_end().find("  ")).min();
    let words = &words[..end.unwrap_or(words.len())];
    // What may be left out is written as in a synopsis; an address of IPv6 has brackets, too.
    let words = if words.contains("[:") { words.to_owned() } else { words.replace(['[', ']'], "") };
    (!words.contains(['|', '<', '…', '*', '→'])).then(|| words.trim().to_owned())
}

/// What this version says against it; nothing where it takes the words. A word in capitals stands for another.
fn refusal(command: &str) -> Option<String> {
    let own = command.split(" -- ").next().unwrap_or(command).trim_end_matches(" ...");
    let unquoted = own.replace(['\'', '"'], "");
    let mut words: Vec<&str> = unquoted.split_whitespace().collect();
    let is_name = |word: &&str| word.contains(|c: char| c.is_ascii_lowercase());
    let says = words.first() == Some(&"explain") && words.get(1).is_none_or(is_name);
    if !says {
        words.push("--help");
    }
    let done = Command::new(env!("CARGO_BIN_EXE_rxpath")).args(&words).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let placeholder = |quoted: &str| {
        quoted.chars().all(|c| c.is_ascii_uppercase() || "-_.:/".contains(c)) && !quoted.is_empty()
    };
    let stands_for_another =
        said.contains("invalid value") && said.split('\'').nth(1).is_some_and(placeholder);
    (!done.status.success() && !stands_for_another).then_some(said)
}

/// Command lines that need no root, no network and no file, and end at once.
const QUICK: [&str; 9] = [
    "list",
    "doctor",
    "schema",
    "completions",
    "man load",
    "model bounds --arrival-rate",
    "model simulate --list",
    "check --goal",
    "check --all",
];

/// Whether a command line is one of these, without a word that stands for another.
fn is_quick(command: &str) -> bool {
    let of = |quick: &str| command == quick || command.starts_with(&format!("{quick} "));
    let needs_more = command.contains(char::is_uppercase)
        || ["--write", "--calibrated"].iter().any(|option| command.contains(option));
    QUICK.iter().any(|quick| of(quick)) && !needs_more
}

/// What a quick command line says where it fails. With `--fail-on` a finding is no failure.
fn failure(command: &str) -> Option<String> {
    let words = command.split_whitespace();
    let done = Command::new(env!("CARGO_BIN_EXE_rxpath")).args(words).output().unwrap();
    let finished =
        done.status.success() || (command.contains("--fail-on") && done.status.code() == Some(1));
    (!finished || done.stdout.is_empty())
        .then(|| String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn every_command_line_of_the_documents_is_taken() {
    let mut all = BTreeMap::new();
    for page in pages() {
        // What changed once is no instruction.
        if page.ends_with("CHANGELOG.md") {
            continue;
        }
        for command in of_document(&fs::read_to_string(&page).unwrap()) {
            all.entry(command).or_insert(page.clone());
        }
    }
    assert!(all.len() > 100, "{} command lines", all.len());
    let mut wrong = Vec::new();
    let mut ran = 0;
    for (command, page) in all {
        let runs = is_quick(&command);
        ran += usize::from(runs);
        let said = refusal(&command).or_else(|| runs.then(|| failure(&command)).flatten());
        wrong.extend(said.map(|said| format!("{}: rxpath {command}\n{said}", page.display())));
    }
    assert!(ran > 10, "{ran} command lines ran");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The blocks of a document in TOML.
fn toml_blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next())
}

#[test]
fn every_scenario_of_the_documents_can_be_planned() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("example.toml");
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for scenario in toml_blocks(&text).filter(|block| block.contains("question = ")) {
            count += 1;
            fs::write(&file, scenario).unwrap();
            let mut run = Command::new(env!("CARGO_BIN_EXE_rxpath"));
            let done = said(run.arg("run").arg(&file).arg("--dry-run"));
            // What this machine lacks for a variant is no fault of the page.
            let lacks = matches!(done.code, Some(3 | 5)) && done.err.contains(" not available: ");
            assert!(done.code == Some(0) || lacks, "{}: {done:?}", page.display());
        }
    }
    assert!(count >= 2, "{count} scenarios");
}

#[test]
fn a_command_line_ends_before_its_comment() {
    let text = "Say `rxpath check --all` here.\n```\nsudo rxpath trace -d 5s    tables\nrxpath   # alone\nother\n```\n    rxpath list\n";
    assert_eq!(of_document(text), ["check --all", "trace -d 5s", "", "list"]);
    assert!(refusal("trace --no-such-option").is_some());
    assert!(refusal("explain no-such-rule-at-all").is_some());
    assert_eq!(refusal("watch --top N"), None);
}
