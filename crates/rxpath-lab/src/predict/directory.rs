//! A simulation saved as a run directory: readers of real runs can read it, and every page says that it is simulated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use rxpath_core::{Fact, IntoMap, Warning};
use rxpath_model::sim::{Parameters, SimulationOutcome};
use rxpath_record::environment::{Environment, RecordedFacts};
use rxpath_record::event::{RunEvent, What};
use rxpath_record::manifest::{Manifest, Metric, Status, Trial, VariantSummary};
use rxpath_record::run::{ENVIRONMENT_SCHEMA, MANIFEST_SCHEMA, RunError, RunWriter, hlog, run_id};
use rxpath_record::samples::TrialSamples;
use serde_json::json;

/// The name of the one variant.
const VARIANT: &str = "simulated";

/// Writes the directory below `base` and returns its path; the command line and the version are those of the program that
/// simulated.
///
/// # Errors
/// If it can't be written.
pub fn write(
    (base, command, version): (&Path, Vec<String>, &str),
    parameters: &Parameters,
    simulation: &SimulationOutcome,
    warnings: &[Warning],
) -> Result<PathBuf, RunError> {
    let random = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    let started = Timestamp::now();
    let id = run_id(started, &parameters.name, random);
    let mut writer = RunWriter::create(base, &id)?;
    let mut manifest = manifest(parameters, simulation, warnings);
    manifest.command = command;
    manifest.version = version.into();
    manifest.run_id.clone_from(&id);
    manifest.started = started.to_string();
    manifest.ended = Some(Timestamp::now().to_string());
    let end = simulation.figures.simulated_ns as i64;
    let tell = |t_ns, what| RunEvent { t_ns, what };
    writer.event(&tell(0, What::RunStarted { run_id: id, scenario: parameters.name.clone() }))?;
    let variant = VARIANT.to_owned();
    writer.event(&tell(0, What::TrialStarted { trial: 0, block: 0, variant: variant.clone() }))?;
    for event in &simulation.events {
        writer.event(event)?;
    }
    writer.event(&tell(end, What::TrialEnded { trial: 0, void: None }))?;
    writer.event(&tell(end, What::RunEnded { how: "complete".into() }))?;
    writer.environment(&environment(parameters))?;
    writer.samples(&TrialSamples { variant, ..simulation.samples.clone() })?;
    let window = simulation.window_ns.map(|ns| ns as u64);
    for (name, histogram) in &simulation.histograms {
        let file = format!("trial0-serve-{name}-time");
        let unwritable = |why: String| RunError::Io {
            op: "encode",
            path: PathBuf::from(&file),
            source: std::io::Error::other(why),
        };
        let v2 = histogram.to_v2().map_err(|error| unwritable(error.to_string()))?;
        let log = hlog::text(&file, [(window, BASE64.encode(v2).as_str())]).map_err(unwritable)?;
        writer.histogram(&file, |out| out.write_all(log.as_bytes()))?;
    }
    writer.finish(manifest)
}

fn manifest(p: &Parameters, simulation: &SimulationOutcome, warnings: &[Warning]) -> Manifest {
    let figures = &simulation.figures;
    let metrics = BTreeMap::from([
        ("delivered_pps".to_owned(), figures.delivered_pps),
        ("offered_pps".to_owned(), figures.offered_pps),
        ("loss_ratio".to_owned(), figures.loss_ratio),
    ]);
    let verdict = rxpath_diagnose::diagnose(&simulation.evidence);
    let one = |value: f64| Metric {
        median: value,
        min: value,
        max: value,
        interval: None,
        values: vec![value],
    };
    let simulated = Warning::new("simulated", "all results here are simulated, none was measured");
    Manifest {
        schema: MANIFEST_SCHEMA.into(),
        status: Status::Complete,
        scenario: p.name.clone(),
        question: p.question.clone(),
        expected: (!p.expected.is_empty()).then(|| p.expected.clone()),
        resolved: p.values.to_json(),
        seed: p.seed,
        main_metric: "delivered_pps".into(),
        variants: vec![VariantSummary {
            name: VARIANT.into(),
            what: "the parameters as given".into(),
            trials_count: 1,
            metrics: metrics.iter().map(|(name, value)| (name.clone(), one(*value))).into_map(),
            verdict: Some(verdict.clone()),
            ..VariantSummary::default()
        }],
        trials: vec![trial(simulation, metrics, verdict.clone())],
        headline: format!("Simulated: {}", verdict.sentence),
        warnings: [simulated].into_iter().chain(warnings.iter().cloned()).collect(),
        ..Manifest::default()
    }
}

fn trial(
    simulation: &SimulationOutcome,
    metrics: BTreeMap<String, f64>,
    verdict: rxpath_record::verdict::DiagnosisVerdict,
) -> Trial {
    Trial {
        variant: VARIANT.into(),
        noise: vec!["simulated: nothing disturbed it".into()],
        window_ns: simulation.window_ns,
        ledger: simulation.ledger.clone(),
        moved: simulation.moved.clone(),
        evidence: simulation.evidence.clone(),
        verdict: Some(verdict),
        metrics,
        workloads: BTreeMap::from([("simulation".to_owned(), json!(simulation.figures))]),
        ..Trial::default()
    }
}

/// A placeholder machine, so that nobody takes it for the machine that computed the simulation.
fn environment(p: &Parameters) -> Environment {
    let mut facts = RecordedFacts::new();
    if let serde_json::Value::Object(all) = p.values.to_json() {
        facts.extend(
            all.into_iter().map(|(name, value)| (format!("simulated.{name}"), Fact::ok(value))),
        );
    }
    let hosts = BTreeMap::from([("simulated".to_owned(), facts)]);
    Environment { schema: ENVIRONMENT_SCHEMA.into(), hosts }
}
