//! The schemas of what the `tune` commands print.

use rxpath_core::Envelope;
use rxpath_lab::search::answer::{AutoAnswer, AutoSettings};
use rxpath_record::schema::printed;
use rxpath_tune::verify::Verified;
use schemars::Schema;
use serde_json::Value;

use super::confirm::Confirmed;
use super::expected::Planned;
use super::shown::{ApplyResult, ShownUndo};
use super::status::JournalStatus;

/// Each with its name.
pub fn schemas() -> [(&'static str, Schema); 7] {
    [
        ("tune-plan", printed::<Envelope<Value, Planned>>()),
        ("tune-auto", printed::<Envelope<AutoSettings, AutoAnswer>>()),
        ("tune-apply", printed::<Envelope<Value, ApplyResult>>()),
        ("tune-undo", printed::<Envelope<Value, Vec<ShownUndo>>>()),
        ("tune-verify", printed::<Envelope<Value, Vec<Verified>>>()),
        ("tune-confirm", printed::<Envelope<Value, Confirmed>>()),
        ("tune-status", printed::<Envelope<Value, Vec<JournalStatus>>>()),
    ]
}
