//! What a search on real traffic gives, as JSON.

use std::collections::BTreeMap;

use rxpath_host::write::change::SettingChange;
use rxpath_tune::auto::Phase;
use schemars::JsonSchema;
use serde::Serialize;

use crate::search::made::Made;

/// The `live` part of the settings.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LiveSettings {
    /// The device.
    pub device: String,
    /// Length of a slice. **Unit** s.
    pub slice_s: f64,
    /// Time after each switch that counts in no slice. **Unit** s.
    pub settle_s: f64,
}

/// What was seen of the traffic.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct LiveAnswer {
    /// Each slice that counts.
    pub slices: Vec<SliceOf>,
    /// The device's packets in each of them. **Unit** packets/s.
    pub loads_pps: Vec<f64>,
    /// Slices that say nothing: with less than half of the usual load, or in which the traffic itself broke a limit.
    pub void: Vec<VoidSlice>,
    /// Limits that were broken.
    pub breaches: Vec<Breach>,
    /// Settings that the kernel or the driver rounded: the rounded values were measured.
    pub rounded: Vec<SettingChange>,
    /// Settings that were read back at the end as they had been at the start.
    pub restored_count: usize,
}

/// What was kept, in force.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AppliedHere {
    /// The journal of the changes, for `rxpath tune undo`.
    pub journal: u32,
    /// Whether all of them are in force; otherwise none is.
    pub in_force: bool,
    /// The changes as they were made.
    pub changes: Vec<SettingChange>,
    /// They are undone after this time unless they are confirmed. **Unit** s.
    pub confirm_within_s: Option<u64>,
}

/// One slice.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SliceOf {
    /// What it was made for.
    pub phase: Phase,
    /// The block or pair within the phase, from 0.
    pub block: usize,
    /// The candidates that were on.
    pub on: Vec<String>,
    /// What was measured, by metric.
    pub metrics: BTreeMap<String, f64>,
}

impl SliceOf {
    /// What it was made for, and with what.
    pub fn made(&self) -> Made<'_> {
        Made { phase: self.phase, block: self.block, on: &self.on }
    }
}

/// A slice that says nothing of the settings.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VoidSlice {
    /// The candidates that were on.
    pub on: Vec<String>,
    /// Why, in words.
    pub why: String,
}

/// A limit that was broken.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Breach {
    /// The candidates that were on; empty: the traffic broke it by itself.
    pub on: Vec<String>,
    /// The limit, in words.
    pub limit: String,
    /// From the beginning of the first window that broke it to the base restored. **Unit** s.
    pub undone_after_s: f64,
    /// Whether settings were on and it held again once they were off.
    pub by_settings: bool,
}

impl Breach {
    /// What was on, in words.
    pub fn with(&self) -> String {
        if self.on.is_empty() { "nothing".into() } else { self.on.join(", ") }
    }

    /// Whether it was the settings, in words.
    pub fn whose(&self) -> &'static str {
        match (self.by_settings, self.on.is_empty()) {
            (true, _) => "the limit held again once they were off",
            (false, true) => "no setting was on",
            (false, false) => "it stayed broken once they were off",
        }
    }
}
