//! `rxpath demo`: the tutorial. A lab with a planted bottleneck: found, explained, fixed, measured again, reported.

use std::path::PathBuf;

use clap::Args;
use rxpath_record::manifest::{Comparison, Manifest, Outcome as Word, VariantSummary};

use super::report::write_report;
use super::run::{BASE, Ways, conduct, ending, resolved};
use crate::exit::Outcome;
use crate::output::bars::Bars;
use crate::output::color::{Paint, Stream, paint};
use crate::output::{experiment, line, text};

/// The bundled scenario behind it.
const SCENARIO: &str = "demo";

/// Options of `rxpath demo`.
#[derive(Debug, Args)]
pub struct DemoCommand {
    /// Directory in which the run directory is made
    #[arg(long, value_name = "DIR", default_value = BASE)]
    out: PathBuf,
}

impl DemoCommand {
    /// Tells the story.
    pub fn run(self) -> Outcome {
        let scenario = resolved(SCENARIO, &[])?;
        line(&heading("The question"))?;
        line(&scenario.question)?;
        line(
            "A lab of two network namespaces is built on this machine, a sender in one and a receiver in the other.\n",
        )?;
        // A stranger's machine is rarely quiet: disturbed trials count, and their grade is shown.
        let ended = conduct(
            &scenario,
            &self.out,
            Ways { keep_noisy: true, ..Ways::default() },
            &mut Bars::new(),
        )?;
        let manifest = &ended.manifest;
        for (title, index) in [("What limits it", 0), ("After the fix", 1)] {
            if let Some(variant) = manifest.variants.get(index) {
                line(&heading(title))?;
                text(&told(variant, manifest))?;
            }
        }
        line(&heading("What the fix gained"))?;
        text(&gain(manifest))?;
        text(&experiment::accounted(manifest))?;
        let report = write_report(&ended.directory)?;
        line(&format!("\nreport: {}", report.display()))?;
        line(&format!("run it yourself: rxpath run {SCENARIO}    more experiments: rxpath list"))?;
        ending(&ended)
    }
}

fn heading(title: &str) -> String {
    paint(Paint::Bold, Stream::Out, title)
}

fn told(variant: &VariantSummary, manifest: &Manifest) -> String {
    let mut out = format!("{} ({}): {}\n", variant.name, variant.what, experiment::rates(variant));
    out += &experiment::where_lost(manifest, &variant.name);
    if let Some(verdict) = &variant.verdict {
        out += &format!("{}\n", verdict.sentence);
        for evidence in verdict.evidence.iter().take(4) {
            out += &format!("  because {} [{}]\n", evidence.text, evidence.source);
        }
        for remedy in verdict.remedies.iter().take(1) {
            out += &format!("  remedy: {remedy}\n");
        }
    }
    out + "\n"
}

fn gain(manifest: &Manifest) -> String {
    match manifest.comparisons.first() {
        Some(found) => sentence(found),
        None => "inconclusive: time was up before both variants had run\n".into(),
    }
}

fn sentence(found: &Comparison) -> String {
    let interval = match found.interval {
        Some([low, high]) => {
            format!("95 % interval {low:.2} to {high:.2} over {} blocks", found.pairs_count)
        }
        None => format!(
            "inconclusive: only {} blocks in the time, range {:.2} to {:.2}",
            found.pairs_count, found.range[0], found.range[1]
        ),
    };
    let word = match found.outcome {
        Word::Better => "better",
        Word::Worse => "worse",
        Word::Same => "the same",
        Word::Inconclusive => "inconclusive",
    };
    let metric = rxpath_stats::metric::metric(&found.metric)
        .map_or(found.metric.as_str(), |known| known.what);
    format!("{:.2} times the {metric} ({interval}): {word}\n", found.ratio)
}
