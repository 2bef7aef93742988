//! The command lines of the documents: each is one that this version takes.

use std::fs;
use std::path::Path;
use std::process::Command;

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
    // Choices and what may be left out are written as in a synopsis.
    let words = words.replace(['[', ']'], "");
    (!words.contains(['|', '<', '…', '*', '→'])).then(|| words.trim().to_owned())
}

/// What this version says against it; nothing where it takes the words. A word in capitals stands for another.
fn refusal(command: &str) -> Option<String> {
    let own = command.split(" -- ").next().unwrap_or(command).trim_end_matches(" ...");
    let mut words: Vec<&str> = own.split_whitespace().collect();
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

#[test]
fn every_command_line_of_the_documents_is_taken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<_> =
        fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    files.extend(["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(|name| root.join(name)));
    let mut count = 0;
    let mut wrong = Vec::new();
    for file in files {
        for command in of_document(&fs::read_to_string(&file).unwrap()) {
            count += 1;
            let what = || format!("{}: rxpath {command}", file.file_name().unwrap().display());
            wrong.extend(refusal(&command).map(|said| format!("{}\n{said}", what())));
        }
    }
    assert!(count > 100, "{count} command lines");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_command_line_ends_where_its_words_are_told_of() {
    let text = "Say `rxpath check --all` here.\n```\nsudo rxpath trace -d 5s    tables\nrxpath   # alone\nother\n```\n    rxpath list\n";
    assert_eq!(of_document(text), ["check --all", "trace -d 5s", "", "list"]);
    assert!(refusal("trace --no-such-option").is_some());
    assert!(refusal("explain no-such-rule-at-all").is_some());
    assert_eq!(refusal("watch --top N"), None);
}
