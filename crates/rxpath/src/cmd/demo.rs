//! `rxpath demo`: the tutorial. A lab with a planted bottleneck: found, explained, fixed, measured again, reported.

use std::path::PathBuf;

use clap::Args;
use rxpath_record::manifest::{Comparison, Manifest, VariantSummary};
use rxpath_stats::metric;

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
    let (name, effect) = (found.metric.as_str(), &found.effect);
    let what = metric::metric(name).map_or(name, |known| known.what);
    format!(
        "{what}: {} ({} over {} blocks): {}\n",
        effect.amount(name),
        effect.sureness(name),
        found.pairs_count,
        effect.verdict("blocks")
    )
}
