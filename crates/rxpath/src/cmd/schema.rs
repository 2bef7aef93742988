//! `rxpath schema`: the JSON Schemas of everything that is written or printed.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use rxpath_core::{Envelope, Warning};
use rxpath_load::tcp::result as tcp;
use rxpath_load::udp::result::{LoadResult, ServeResult};
use schemars::{Schema, schema_for};
use serde_json::Value;

use crate::exit::{Exit, Failure, Outcome};
use crate::output::{json, line};

/// Name and schema; a new kind of output is one line.
fn all() -> Vec<(&'static str, Schema)> {
    let mut all = rxpath_record::schema::schemas().to_vec();
    all.extend([
        ("serve-http", schema_for!(Envelope<Value, rxpath_load::http::serve::result::ServeResult>)),
        ("serve-udp", schema_for!(Envelope<Value, ServeResult>)),
        ("load-udp", schema_for!(Envelope<Value, LoadResult>)),
        ("load-http", schema_for!(Envelope<Value, rxpath_load::http::load::result::LoadResult>)),
        ("serve-tcp", schema_for!(Envelope<Value, tcp::ServeResult>)),
        ("load-tcp-stream", schema_for!(Envelope<Value, tcp::StreamResult>)),
        ("load-tcp-rr", schema_for!(Envelope<Value, tcp::TransactionsResult>)),
        ("load-tcp-crr", schema_for!(Envelope<Value, tcp::TransactionsResult>)),
        ("model-eval", schema_for!(Envelope<Value, rxpath_model::Evaluated>)),
        ("doctor", schema_for!(Envelope<Value, rxpath_bpf::doctor::Diagnosis>)),
        ("trace", schema_for!(Envelope<Value, super::trace::TraceResult>)),
        ("steal", schema_for!(Envelope<Value, rxpath_bpf::steal::Steal>)),
        ("model-bounds", schema_for!(Envelope<Value, rxpath_model::bounds::Bounds>)),
        ("check", schema_for!(Envelope<Value, rxpath_tune::Report>)),
        ("check-summary", schema_for!(Envelope<Value, super::check::summarize::Summarized>)),
        ("check-queues", schema_for!(Envelope<Value, super::check::queues::Queues>)),
        ("check-flow", schema_for!(Envelope<Value, super::check::flow::Landings>)),
        ("capture", schema_for!(Envelope<Value, rxpath_host::capture::Captured>)),
        ("compare", schema_for!(Envelope<Value, crate::cmd::compare::Compared>)),
        ("diagnose", schema_for!(Envelope<Value, crate::cmd::diagnose::host::Judged>)),
        ("diagnose-runs", schema_for!(Envelope<Value, crate::cmd::diagnose::runs::All>)),
        ("diagnose-selftest", schema_for!(Envelope<Value, crate::cmd::diagnose::selftest::Answer>)),
        ("calibration", schema_for!(rxpath_model::calibration::Calibration)),
        ("model-calibrate", schema_for!(Envelope<Value, rxpath_model::calibration::Calibration>)),
        ("model-validate", schema_for!(Envelope<Value, crate::cmd::model::Validation>)),
        ("model-simulate", schema_for!(Envelope<Value, crate::cmd::model::Simulated>)),
        (
            "watch",
            schema_for!(Envelope<rxpath_record::watch::Settings, rxpath_record::watch::Frame>),
        ),
        ("warning", schema_for!(Warning)),
    ]);
    all.extend(super::tune::schemas());
    all
}

/// Options of `rxpath schema`.
#[derive(Debug, Args)]
pub struct SchemaCommand {
    /// Which one; without it their names are listed
    name: Option<String>,
    /// Write all of them as NAME.schema.json into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    write: Option<PathBuf>,
}

impl SchemaCommand {
    /// Lists, prints or writes.
    pub fn run(self) -> Outcome {
        let all = all();
        if let Some(directory) = self.write {
            for (name, schema) in &all {
                let path = directory.join(format!("{name}.schema.json"));
                let text = serde_json::to_string_pretty(schema)? + "\n";
                std::fs::write(&path, text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            return Ok(Exit::Done);
        }
        let Some(wanted) = self.name else {
            for (name, _) in &all {
                line(name)?;
            }
            return Ok(Exit::Done);
        };
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        match all.iter().find(|(name, _)| *name == wanted) {
            Some((_, schema)) => json(schema)?,
            None => {
                return Err(Failure::usage(format!("no schema is called `{wanted}`"))
                    .hint(format!("one of {}", names.join(", "))));
            }
        }
        Ok(Exit::Done)
    }
}
