//! The lines of a recording.

use rxpath_core::envelope::line_schema_id;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WatchFrame;

/// What the recording is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WatchSettings {
    /// Name of the host that was watched.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// Version of rxpath.
    pub rxpath: String,
    /// Time between two looks.
    pub interval_s: f64,
    /// Which probes ran: `counters and BPF`, or `counters only: WHY`.
    pub probes: String,
}

/// The first line.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    #[serde(rename = "type")]
    kind: String,
    /// Of the lines.
    pub schema: String,
    /// What the recording is about.
    #[serde(flatten)]
    pub settings: WatchSettings,
}

#[derive(Serialize)]
struct Tail<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    frame: &'a WatchFrame,
}

/// The first line, without its end.
///
/// # Errors
/// None with these types; a serializer's are passed on.
pub fn head_line(settings: &WatchSettings) -> serde_json::Result<String> {
    let (kind, schema) = ("settings".to_owned(), line_schema_id("watch"));
    serde_json::to_string(&Head { kind, schema, settings: settings.clone() })
}

/// A frame's line, without its end.
///
/// # Errors
/// None with these types; a serializer's are passed on.
pub fn tail_line(frame: &WatchFrame) -> serde_json::Result<String> {
    serde_json::to_string(&Tail { kind: "interval", frame })
}
