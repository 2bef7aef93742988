//! What `tune apply` and `tune undo` did, as they print it in JSON.

use rxpath_host::pairs::Pairs;
use rxpath_host::write::change::SettingChange;
use rxpath_host::write::journal::Undo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `tune apply` did.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ApplyResult {
    /// Number of the journal; none if there was nothing to change.
    pub journal: Option<u32>,
    /// Completed and attempted steps.
    pub changes: Vec<SettingChange>,
    /// Number of steps that were not tried.
    pub not_tried_count: usize,
    /// Why it stopped early.
    pub stopped: Option<String>,
    /// Changes undone at once, with `--on-failure undo`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<ShownUndo>,
    /// Seconds until the changes are undone unless they are confirmed.
    pub confirm_within_s: Option<u64>,
}

/// The result of undoing one change.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShownUndo {
    /// Number of the journal.
    pub journal: u32,
    /// What undoing did.
    #[serde(flatten)]
    pub undo: Undo,
    /// The value written back; for a group, the values that differed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
}

impl ShownUndo {
    /// The printed form.
    pub fn new(journal: u32, undo: Undo) -> Self {
        let written = undo.found.as_ref().map(|found| differing(&undo, found));
        Self { journal, undo, written }
    }
}

/// The part of the old value that differed when it was restored.
fn differing(undo: &Undo, found: &str) -> String {
    match (undo.value.parse::<Pairs>(), found.parse::<Pairs>()) {
        (Ok(value), Ok(found)) if undo.target.has_parts() => value.unlike(&found).to_string(),
        _ => undo.value.clone(),
    }
}
