//! The schemas of what the `tune` commands print.

use rxpath_core::Envelope;
use rxpath_lab::search::answer::{AutoAnswer, AutoSettings};
use rxpath_record::schema::printed;
use rxpath_tune::outcome::{ApplyResult, ShownUndo};
use rxpath_tune::plan::expected::Planned;
use rxpath_tune::status::JournalStatus;
use rxpath_tune::verify::Verified;
use schemars::Schema;
use serde_json::Value;

use super::confirm::Confirmed;

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
