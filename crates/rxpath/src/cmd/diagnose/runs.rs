//! Judges earlier runs by the current rules.

use rxpath_diagnose::diagnose;
use rxpath_record::agreement::agreed;
use rxpath_record::doubts::doubts;
use rxpath_record::manifest::{Manifest, Trial};
use rxpath_record::run::RunReader;
use rxpath_record::verdict::{Agreement, DiagnosisVerdict};

use crate::cmd::prelude::*;
use crate::output::table::sentences;

#[derive(Serialize, schemars::JsonSchema)]
struct Judged {
    /// Its id.
    run: String,
    /// Problems of the run: incomplete, edited, of a newer version.
    problems: Vec<String>,
    /// Its variants with a valid trial over UDP.
    variants: Vec<JudgedVariant>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct JudgedVariant {
    /// Its name.
    variant: String,
    /// How many of its valid trials have this verdict, and which of them speaks for them.
    #[serde(flatten)]
    agreement: Agreement,
    /// The verdict of most trials.
    verdict: DiagnosisVerdict,
}

/// The `result` object.
#[derive(Serialize, schemars::JsonSchema)]
pub struct All {
    /// The runs in the order of the command line.
    runs: Vec<Judged>,
}

pub(super) fn run(paths: &[PathBuf], format: &FormatArgs) -> Outcome {
    let all = paths.iter().map(|path| judged(path)).collect::<Result<Vec<_>, _>>()?;
    let (runs, doubts): (Vec<Judged>, Vec<Vec<Warning>>) = all.into_iter().unzip();
    let ended = status(&runs);
    let warn = |problem: &String| Warning::new("run-not-whole", problem.clone());
    let problems = runs.iter().flat_map(|run| &run.problems).map(warn);
    let warnings: Vec<Warning> = problems.chain(doubts.into_iter().flatten()).collect();
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let settings = json!({ "runs": paths });
    let answer = Envelope::new("diagnose-runs", settings, All { runs }, warnings);
    output::answer(format.is_json(), &answer, |all| all.runs.iter().map(text).collect())?;
    Ok(ended)
}

fn text(run: &Judged) -> String {
    if run.variants.is_empty() {
        return format!("{}: no valid UDP trial: nothing to judge\n", run.run);
    }
    let variants = run.variants.iter().map(|variant| {
        let (name, agreement) = (&variant.variant, variant.agreement.text());
        let verdict = super::text(&variant.verdict);
        sentences(&format!("{} {name} ({agreement}): {verdict}", run.run))
    });
    variants.collect()
}

/// If nothing was judged, there is no answer; if only some runs were judged, the answer is partial.
fn status(runs: &[Judged]) -> Exit {
    if runs.iter().all(|run| run.variants.is_empty()) {
        return Exit::Inconclusive;
    }
    let whole = |run: &Judged| run.problems.is_empty() && !run.variants.is_empty();
    if runs.iter().all(whole) { Exit::Done } else { Exit::Partial }
}

/// One run, and what it says against its own figures.
fn judged(path: &Path) -> Result<(Judged, Vec<Warning>), Failure> {
    let reader = RunReader::open(path).map_err(Failure::usage_of)?;
    let manifest = &reader.manifest;
    let names = manifest.variants.iter().map(|variant| variant.name.as_str());
    let variants = names.filter_map(|name| of_variant(manifest, name)).collect();
    let problems = reader.problems.iter().map(ToString::to_string).collect();
    // A run without a manifest has no id of its own.
    let run = if manifest.run_id.is_empty() {
        path.display().to_string()
    } else {
        manifest.run_id.clone()
    };
    Ok((Judged { run, problems, variants }, doubts(&reader)))
}

/// The verdict of most of a variant's trials that are in its medians; `None` if the diagnosis knows no trial of it.
fn of_variant(manifest: &Manifest, name: &str) -> Option<JudgedVariant> {
    // Trials over TCP never had one: their evidence differs in kind.
    let counted = manifest.counted(name).into_iter().filter(|trial| trial.verdict.is_some());
    let judged: Vec<(&Trial, DiagnosisVerdict)> =
        counted.map(|trial| (trial, diagnose(&trial.evidence))).collect();
    let (verdict, agreement) = agreed(&judged, &manifest.main_metric)?;
    Some(JudgedVariant { variant: name.to_owned(), agreement, verdict })
}
