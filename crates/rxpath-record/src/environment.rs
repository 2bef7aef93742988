//! The host facts of a run: each probe ok, absent or denied, never a silent hole.

use std::collections::BTreeMap;

use rxpath_core::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `environment.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// `rxpath/environment/1.0`.
    pub schema: String,
    /// One entry per host; the lab on one machine has one, called `local`.
    pub hosts: BTreeMap<String, RecordedFacts>,
}

/// Facts of one host by probe name: `kernel.release`, `cpu.model`, `cpu.online`, `sysctl.net.core.rmem_max`.
pub type RecordedFacts = BTreeMap<String, Fact<serde_json::Value>>;
