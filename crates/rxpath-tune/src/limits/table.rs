//! What each setting takes: `settings.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::takes::Takes;

/// Least and most of a number, both included, by its name.
pub(super) type Ranges = BTreeMap<String, (i64, i64)>;

/// The whole table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// Ranges of the kernel's own.
    pub kernel: Ranges,
    /// Ranges that make sense, where the kernel takes more.
    pub ours: Ranges,
    /// Of each device: the part after `conf.DEV.` or `neigh.DEV.`.
    pub of_device: Ranges,
    /// Sysctls that are not one number.
    pub others: BTreeMap<String, Takes>,
    /// Attributes of a device.
    pub attributes: BTreeMap<String, Takes>,
    /// Files that are ours to change.
    pub file: Vec<OwnFile>,
}

/// A file, or each of several.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnFile {
    /// How its path begins and ends.
    pub begin: String,
    pub end: String,
    pub takes: Takes,
}

pub(super) static SETTINGS: LazyLock<Settings> =
    LazyLock::new(|| crate::rule_file::table("limits/settings"));
