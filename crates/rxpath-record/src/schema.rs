//! JSON Schemas, made from the types: of the files that a run leaves behind, and how those of printed output are made.
//!
//! The two differ in what they require. Files are read again, also those of earlier versions, so their schemas require
//! what a reader needs (schemars' contract of deserializing). Output is only written, so its schemas require all that is
//! always written.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::environment::Environment;
use crate::event::RunEvent;
use crate::manifest::Manifest;
use crate::samples::TrialSamples;

/// The schemas of this crate by name: `run` (manifest.json), `event` (a line of events.jsonl), `samples` (a line of
/// samples.jsonl.gz), `environment`.
pub fn schemas() -> [(&'static str, Schema); 4] {
    [
        ("environment", schemars::schema_for!(Environment)),
        ("event", schemars::schema_for!(RunEvent)),
        ("run", schemars::schema_for!(Manifest)),
        ("samples", schemars::schema_for!(TrialSamples)),
    ]
}

/// The schema (JSON Schema 2020-12) of what is printed as a `T`: each field without `skip_serializing_if` is required.
pub fn printed<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// The schema called `name`.
pub fn schema(name: &str) -> Option<Schema> {
    schemas().into_iter().find(|(known, _)| *known == name).map(|(_, schema)| schema)
}
