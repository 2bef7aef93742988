//! What `tune apply` and `tune undo` did, as they print it in JSON.

use rxpath_host::Target;
use rxpath_host::pairs::Pairs;
use rxpath_host::write::change::SettingChange;
use rxpath_host::write::journal::{Restored, Undo};
use schemars::JsonSchema;
use serde::Serialize;

/// What `tune apply` did.
#[derive(Debug, Default, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShownUndo {
    /// Number of the journal.
    pub journal: u32,
    /// The setting, under its present name.
    pub set: String,
    /// The old value; for a group, the part that the change had altered.
    pub value: String,
    /// The value written back; for a group, the values that differed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// `restored`, `already`, `kept` (another program changed it), `gone` or `failed`.
    pub state: String,
    /// Why it is not restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The value that another program had set in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
    /// Settings that changed along with this one, with the values that another program had set in between.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_coupled: Vec<(String, String)>,
    /// Settings that changed along and could not be restored, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coupled: Vec<(String, String)>,
}

impl ShownUndo {
    /// The printed form.
    pub fn new(journal: u32, undo: &Undo) -> Self {
        let (state, why) = match &undo.restored {
            Restored::Yes => ("restored", None),
            Restored::Already => ("already", None),
            Restored::Kept => ("kept", None),
            Restored::Gone { why } => ("gone", Some(why.clone())),
            Restored::No { why } => ("failed", Some(why.clone())),
        };
        Self {
            journal,
            set: undo.target.to_string(),
            value: undo.value.clone(),
            written: undo.found.as_ref().map(|found| differing(undo, found)),
            state: state.into(),
            why,
            foreign: undo.foreign.clone(),
            foreign_coupled: words(&undo.foreign_coupled),
            coupled: words(&undo.coupled),
        }
    }
}

/// Settings by name, each with its text.
fn words(all: &[(Target, String)]) -> Vec<(String, String)> {
    all.iter().map(|(target, words)| (target.to_string(), words.clone())).collect()
}

/// The part of the old value that differed when it was restored.
fn differing(undo: &Undo, found: &str) -> String {
    match (undo.value.parse::<Pairs>(), found.parse::<Pairs>()) {
        (Ok(value), Ok(found)) if undo.target.has_parts() => value.unlike(&found).to_string(),
        _ => undo.value.clone(),
    }
}
