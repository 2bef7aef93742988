//! How to run it again.

use rxpath_core::shell::{line, quoted};

use crate::prelude::*;

/// The section, or nothing when the command is not known.
pub(super) fn section(run: &Run) -> Option<Section> {
    let manifest = &run.manifest;
    let seed = ["--set".to_owned(), format!("trials.seed={}", manifest.seed)];
    let seeded: Vec<String> = manifest.command.iter().cloned().chain(seed).collect();
    let scenario = serde_json::to_string_pretty(&manifest.resolved).unwrap_or_default();
    (!manifest.command.is_empty()).then(|| Section {
        id: "reproduce",
        title: "Reproduce it",
        lead: "The exact command, the seed, and the scenario with every default filled in.",
        body: html! {
            h3 { "The command of this run" }
            pre { code { (line(&manifest.command)) } }
            @if !manifest.command.iter().any(|word| word.contains("trials.seed")) {
                h3 { "The same order again" }
                pre { code { (line(&seeded)) } }
            }
            h3 { "This page" }
            pre { code { "rxpath report " (quoted(&run.name())) } }
            (fold("The scenario as it was resolved", &html! { pre.long { code { (scenario) } } }))
            (files(run))
        },
    })
}

fn files(run: &Run) -> Markup {
    let listed = run.manifest.files.iter().map(|(name, sum)| vec![name.clone(), sum.clone()]);
    let files = Table::of("file | SHA-256", listed);
    html! { @if !files.rows.is_empty() { (fold("Data files", &table(&files, "Data files"))) } }
}
