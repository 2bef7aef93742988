//! Every variant of a scenario: those that stack on others, and each combination of swept values.

use serde_json::Value as Json;

use super::file::{Axis, ScenarioFile};
use super::merge::{Overlay, put};
use super::value::Setting;

/// A variant before this host is known.
pub(super) struct Made {
    pub name: String,
    pub what: String,
    /// Everything laid over the base.
    pub over: Overlay,
}

impl ScenarioFile {
    /// Names of all variants, sweeps expanded; `base` when there are neither.
    pub fn names(&self) -> Vec<String> {
        expand(self).into_iter().map(|made| made.name).collect()
    }
}

/// Every variant, sweeps expanded: each variant with every combination of the swept values.
pub(super) fn expand(file: &ScenarioFile) -> Vec<Made> {
    let mut made: Vec<Made> = Vec::new();
    for variant in &file.variants {
        let below = variant.from.and_then(|index| made.get(index));
        let mut over = below.map(|made| made.over.clone()).unwrap_or_default();
        variant.own.iter().for_each(|(key, setting)| put(&mut over, key, setting.clone()));
        let what = variant.what.clone().unwrap_or_else(|| describe(&variant.own));
        made.push(Made { name: variant.name.clone(), what, over });
    }
    if made.is_empty() {
        let is_alone = file.sweep.is_empty();
        let [name, what] = if is_alone { ["base", "the scenario as it is"] } else { [""; 2] };
        made.push(Made { name: name.into(), what: what.into(), over: Overlay::new() });
    }
    for axis in &file.sweep {
        let short = short_name(axis, &file.sweep);
        let with_each = |below: &Made| -> Vec<Made> {
            axis.values.iter().map(|value| step(below, axis, short, value)).collect()
        };
        made = made.iter().flat_map(with_each).collect();
    }
    made
}

fn step(below: &Made, axis: &Axis, short: &str, value: &Setting) -> Made {
    let part = format!("{short}={}", plain(&value.shown));
    let join = |text: &str, by: &str| {
        if text.is_empty() { part.clone() } else { format!("{text}{by}{part}") }
    };
    let mut over = below.over.clone();
    over.insert(axis.key.clone(), value.clone());
    Made { name: join(&below.name, ","), what: join(&below.what, ", "), over }
}

/// `batch` for `serve.batch`, unless `load.batch` is swept too.
fn short_name<'a>(axis: &'a Axis, all: &[Axis]) -> &'a str {
    let own = own_name(&axis.key);
    let alone = all.iter().filter(|other| own_name(&other.key) == own).count() == 1;
    if alone { own } else { &axis.key }
}

/// A key without its section.
fn own_name(key: &str) -> &str {
    key.split_once('.').map_or(key, |(_, own)| own)
}

fn describe(own: &Overlay) -> String {
    if own.is_empty() {
        return "the scenario's base".into();
    }
    let parts = own.iter().map(|(key, setting)| format!("{key} = {}", plain(&setting.shown)));
    parts.collect::<Vec<_>>().join(", ")
}

/// A value as it is typed behind `KEY=`.
pub(super) fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
