//! JSON Schemas of the files that a run leaves behind, made from the types that write them.

use schemars::Schema;

use crate::environment::Environment;
use crate::event::Event;
use crate::manifest::Manifest;
use crate::samples::TrialSamples;

/// The schemas of this crate by name: `run` (manifest.json), `event` (a line of events.jsonl), `samples` (a line of
/// samples.jsonl.gz), `environment`.
pub fn schemas() -> [(&'static str, Schema); 4] {
    [
        ("environment", schemars::schema_for!(Environment)),
        ("event", schemars::schema_for!(Event)),
        ("run", schemars::schema_for!(Manifest)),
        ("samples", schemars::schema_for!(TrialSamples)),
    ]
}

/// The schema called `name`.
pub fn schema(name: &str) -> Option<Schema> {
    schemas().into_iter().find(|(known, _)| *known == name).map(|(_, schema)| schema)
}
