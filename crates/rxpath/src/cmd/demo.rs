//! `rxpath demo`: the tutorial. A lab with a planted bottleneck: find, explain, fix, measure again, report.

use clap::Args;
use rxpath_record::manifest::{Manifest, VariantSummary};
use rxpath_record::metric;
use rxpath_record::verdict::Stage;

use super::lab_args::LabArgs;
use super::report::write_report;
use super::run::{Ways, conclusion, conduct, without_root};
use super::scenario::resolved;
use crate::exit::Outcome;
use crate::output::bars::Bars;
use crate::output::color::bold;
use crate::output::{experiment, line, text};

/// The bundled scenario behind it.
const SCENARIO: &str = "demo";

/// Options of `rxpath demo`.
#[derive(Debug, Args)]
pub struct DemoCommand {
    #[command(flatten)]
    lab: LabArgs,
}

impl DemoCommand {
    /// Runs the tutorial.
    pub fn run(self) -> Outcome {
        let scenario = resolved(SCENARIO, &[])?;
        line(&bold("The question"))?;
        line(&scenario.question)?;
        line(
            "A lab of two network namespaces is built on this machine, a sender in one and a receiver in the other.\n",
        )?;
        // A user's machine is rarely quiet: disturbed trials count, and their grade is shown.
        let ways = Ways {
            keep_noisy: true,
            patience: self.lab.wait.patience(),
            without_root: without_root(SCENARIO, &[]),
            ..Ways::default()
        };
        let ended = conduct(&scenario, &self.lab.out, ways, &mut Bars::new())?;
        let manifest = &ended.manifest;
        if let Some(busy) = ended.disturbed() {
            line(&bold("Before you trust it"))?;
            line(&format!("{busy}"))?;
            line(&format!("{PLANTED}; other load on the machine can cause another limit.\n"))?;
        }
        for (title, index) in [("What limits it", 0), ("After the fix", 1)] {
            if let Some(variant) = manifest.variants.get(index) {
                line(&bold(title))?;
                text(&told(variant, manifest))?;
                if index == 0 {
                    text(&not_planted(variant))?;
                }
            }
        }
        line(&bold("What the fix gained"))?;
        text(&gain(manifest))?;
        text(&experiment::accounted(manifest))?;
        let report = write_report(&ended.directory)?;
        line(&format!("\nreport: {}", report.display()))?;
        line(&format!("run it yourself: rxpath run {SCENARIO}    more experiments: rxpath list"))?;
        conclusion(&ended)
    }
}

/// The bottleneck that the demo plants, and the stage that it limits.
const PLANTED: &str = "The demo planted a receive buffer that is too small for the reader's stalls";
const PLANTED_STAGE: Stage = Stage::SocketQueue;

/// How to read a verdict other than the planted one; nothing for the planted one.
fn not_planted(variant: &VariantSummary) -> String {
    match &variant.verdict {
        Some(verdict) if verdict.stage == PLANTED_STAGE => String::new(),
        Some(_) => format!(
            "{PLANTED}. The verdict above names another limit, caused by other load on the machine.\n\n"
        ),
        None => format!("{PLANTED}. No verdict was reached.\n\n"),
    }
}

fn told(variant: &VariantSummary, manifest: &Manifest) -> String {
    let mut out = format!("{} ({}): {}\n", variant.name, variant.what, experiment::rates(variant));
    out += &experiment::where_lost(manifest, &variant.name);
    if let Some(verdict) = &variant.verdict {
        out += &format!("{}{}\n", verdict.sentence, experiment::share(variant));
        let evidence = verdict.evidence.iter().take(4);
        out.extend(evidence.map(|it| format!("  because {} [{}]\n", it.text, it.source)));
        out.extend(verdict.remedies.first().map(|remedy| format!("  remedy: {remedy}\n")));
    }
    out + "\n"
}

fn gain(manifest: &Manifest) -> String {
    let Some(found) = manifest.comparisons.first() else {
        return "inconclusive: the time ended before both variants had run\n".into();
    };
    let name = found.metric.as_str();
    let what = metric::metric(name).map_or(name, |known| known.what);
    format!("{what}: {}\n", found.finding())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rxpath_record::run::RunReader;

    use super::*;

    #[test]
    fn a_verdict_that_is_not_the_planted_one_is_said_so() {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs/recorded-demo");
        let mut planted = RunReader::open(&kept).unwrap().manifest.variants.remove(0);
        assert_eq!(planted.verdict.as_ref().unwrap().stage, PLANTED_STAGE);
        assert_eq!(not_planted(&planted), "");
        planted.verdict.as_mut().unwrap().stage = Stage::ApplicationDescheduled;
        assert!(not_planted(&planted).contains("names another limit"));
    }
}
