//! How to run it again.

use crate::prelude::*;

/// The section, or nothing when the command is not known.
pub(super) fn section(run: &Run) -> Option<Section> {
    let manifest = &run.manifest;
    if manifest.command.is_empty() {
        return None;
    }
    let scenario = serde_json::to_string_pretty(&manifest.resolved).unwrap_or_default();
    Some(Section {
        id: "reproduce",
        title: "Reproduce it",
        lead: "The exact command, the seed, and the scenario with every default filled in.",
        body: html! {
            h3 { "The command of this run" }
            pre { code { (shell(&manifest.command)) } }
            @if !manifest.command.iter().any(|word| word.contains("trials.seed")) {
                h3 { "The same order again" }
                pre { code { (shell(&seeded(&manifest.command, manifest.seed))) } }
            }
            h3 { "This page" }
            pre { code { "rxpath report " (quote(&run.name)) } }
            (fold("The scenario as it was resolved", &html! { pre.long { code { (scenario) } } }))
            (files(run))
        },
    })
}

fn seeded(command: &[String], seed: u64) -> Vec<String> {
    let seed = ["--set".to_owned(), format!("trials.seed={seed}")];
    command.iter().cloned().chain(seed).collect()
}

fn files(run: &Run) -> Markup {
    let mut files = Table::new("file | SHA-256");
    let listed = run.manifest.files.iter();
    files.rows.extend(listed.map(|(name, sum)| vec![name.clone(), sum.clone()]));
    html! { @if !files.rows.is_empty() { (fold("Data files", &table(&files, "Data files"))) } }
}

/// A command line that a shell parses back into the same words.
pub(crate) fn shell(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        let words = ["rxpath", "run", "x", "--set", "load.size=1 KiB", "it's", ""];
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        assert_eq!(shell(&words), r"rxpath run x --set 'load.size=1 KiB' 'it'\''s' ''");
    }
}
