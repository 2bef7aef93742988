//! What users read has the field's words, not a private language.

use std::path::PathBuf;

use regex_lite::Regex;

use crate::commands::{files, literals, sources};
use crate::docs;

/// What readers stumble over, and what an engineer writes.
const WORDS: [(&str, &str); 17] = [
    (r"\bby turns\b", "duty-cycled, sampled"),
    (r"\btold apart\b|\btells? apart\b", "distinguish"),
    (r"\b(is|are|be|was|were|not) told\b", "reported, shown"),
    (r"\btells? (of|whether|what|who|why|which)\b", "reports, says"),
    (r"\banew\b", "again"),
    (r"\bbeside\b", "next to, in addition to"),
    (r"\bin vain\b", "useless"),
    (r"\bwish(es)?\b", "request"),
    (r"\bcures?\b", "remedy, fix"),
    (r"\bwhoever\b", "the program that, the user who"),
    (r"\bnoteworthy\b", "significant"),
    (r"\bpolitely\b", "cleanly"),
    (r"\bat rest\b|\bstands? still\b|\bstood still\b", "quiescent, does not rise"),
    (r"\bon (its|their) way\b", "in flight"),
    (r"\bto be (seen|had|found out)\b", "visible, available"),
    (r"\bnot to be\b", "cannot be"),
    (r"\bg(a|i)ven? back\b", "restored, released"),
];

/// Words that name something: a value of a key.
const NAMES: [&str; 3] = ["`beside`", "\"beside\"", "one of beside, instead"];

/// Words of the text that are in the list, as `place:line: word: what to write`.
fn stumbles(place: &str, text: &str, list: &[(Regex, &str)]) -> Vec<String> {
    let of_line = |(number, line): (usize, &str)| {
        let line = NAMES.iter().fold(line.to_owned(), |line, name| line.replace(name, ""));
        let found = list.iter().filter_map(|(word, better)| Some((word.find(&line)?, better)));
        let told = found.map(|(word, better)| {
            format!("{place}:{}: {:?}: write {better}", number + 1, word.as_str())
        });
        told.collect::<Vec<_>>()
    };
    text.lines().enumerate().flat_map(of_line).collect()
}

#[test]
fn what_users_read_has_the_fields_words() {
    let list = WORDS.map(|(word, better)| (Regex::new(&format!("(?i){word}")).unwrap(), better));
    let mut found = Vec::new();
    // Tables that other programs write keep the words of their rows.
    let written = |page: &PathBuf| {
        ["causes.md", "campaign.md", "fuzz.md"].iter().any(|name| page.ends_with(name))
    };
    let pages = docs::pages().into_iter().filter(|page| !written(page));
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        found.extend(stumbles(&page.display().to_string(), &text, &list));
    }
    for (path, source) in sources("crates") {
        // Help is made of the comments of its options.
        if path.starts_with("crates/rxpath/src/cmd/") {
            let help = source.lines().filter(|line| line.trim_start().starts_with("/// "));
            found.extend(stumbles(&path, &help.collect::<Vec<_>>().join("\n"), &list));
        }
        // A word by itself is a name; a text has several.
        for literal in literals(&source).iter().filter(|literal| literal.contains(' ')) {
            found.extend(stumbles(&path, literal, &list));
        }
    }
    // Texts that are data: rules, topics of `explain`, examples, remedies, scenarios.
    for (path, text) in files("crates", &["toml", "txt"]) {
        found.extend(stumbles(&path, &text, &list));
    }
    assert!(found.is_empty(), "{}: {found:#?}", found.len());
}

#[test]
fn a_private_word_is_found() {
    let list = WORDS.map(|(word, better)| (Regex::new(&format!("(?i){word}")).unwrap(), better));
    assert_eq!(stumbles("page", "one line\nSampled by turns.", &list).len(), 1);
    assert_eq!(stumbles("page", "the rate rises", &list).len(), 0);
}
