//! The schemas of what the `tune` commands print.

use rxpath_core::Envelope;
use rxpath_tune::verify::Verified;
use schemars::{Schema, schema_for};
use serde_json::Value;

use super::auto::answer::{AutoAnswer, AutoSettings};
use super::confirm::Confirmed;
use super::expected::Planned;
use super::shown::{ApplyResult, ShownUndo};
use super::status::Status;

/// Each with its name.
pub fn schemas() -> [(&'static str, Schema); 7] {
    [
        ("tune-plan", schema_for!(Envelope<Value, Planned>)),
        ("tune-auto", schema_for!(Envelope<AutoSettings, AutoAnswer>)),
        ("tune-apply", schema_for!(Envelope<Value, ApplyResult>)),
        ("tune-undo", schema_for!(Envelope<Value, Vec<ShownUndo>>)),
        ("tune-verify", schema_for!(Envelope<Value, Vec<Verified>>)),
        ("tune-confirm", schema_for!(Envelope<Value, Confirmed>)),
        ("tune-status", schema_for!(Envelope<Value, Vec<Status>>)),
    ]
}
