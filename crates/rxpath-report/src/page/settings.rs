//! Differences between the variants' settings, side by side.

use std::collections::BTreeSet;

use rxpath_record::event::What;
use serde_json::{Map, Value};

use crate::prelude::*;

/// The section, or nothing when there is at most one variant and it changes nothing.
pub(super) fn section(run: &Run) -> Option<Section> {
    let manifest = Some(&run.manifest).filter(|m| !m.variants.is_empty())?;
    let keys: BTreeSet<&String> =
        manifest.variants.iter().flat_map(|v| v.settings.keys()).collect();
    let mut heads = vec!["variant".to_owned()];
    heads.extend(keys.iter().map(|key| (*key).clone()));
    let mut settings =
        Table { head: heads.into_iter().map(|h| (h, false)).collect(), rows: vec![] };
    for variant in &manifest.variants {
        let mut row = vec![variant.name.clone()];
        row.extend(keys.iter().map(|key| variant.settings.get(*key).map_or("·".into(), plain)));
        settings.rows.push(row);
    }
    let changed = changed(run);
    Some(Section {
        id: "settings",
        title: "What differs",
        lead: "Settings in which the variants differ from the scenario's base. A dot means the base's value.",
        body: html! {
            @if keys.is_empty() {
                p { "No variant changes a setting of the base." }
            } @else {
                (table(&settings, "Settings by variant"))
            }
            @if !changed.rows.is_empty() {
                (fold("Every setting written during the run", &table(&changed, "Settings written")))
            }
        },
    })
}

/// A JSON value as plain text: strings without quotes, lists with commas, objects as `key value`.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(fields) if fields.get("state").is_some_and(Value::is_string) => fact(fields),
        Value::Object(fields) => {
            let pair = |(key, value): (&String, &Value)| format!("{key} {}", plain(value));
            fields.iter().map(pair).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// A fact inside of a value: what was read, or why it was not.
fn fact(fields: &Map<String, Value>) -> String {
    match fields.get("value") {
        Some(value) => plain(value),
        None => fields.values().map(plain).collect::<Vec<_>>().join(": "),
    }
}

fn changed(run: &Run) -> Table {
    let mut table = Table::new("side | setting | before | read back after the write");
    for event in &run.events {
        if let What::SettingChanged { side, setting, old, new, since_trial } = &event.what {
            let new = read_back(new, *since_trial);
            table.rows.push(vec![side.to_string(), setting.clone(), old.clone(), new]);
        }
    }
    table
}

/// The value after the write, with the trial that wrote it if that was an earlier one.
fn read_back(value: &str, since_trial: Option<u32>) -> String {
    match since_trial {
        Some(trial) => format!("{value}, kept since trial {}", u64::from(trial) + 1),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_was_kept_has_the_trial_that_made_it() {
        assert_eq!(read_back("rx=4096", Some(0)), "rx=4096, kept since trial 1");
        assert_eq!(read_back("rx=4096", None), "rx=4096");
    }

    #[test]
    fn values_are_words() {
        let value = serde_json::json!({"a": [1, "x"], "b": null});
        assert_eq!(plain(&value), "a 1, x, b null");
        let facts = serde_json::json!({
            "rps_cpus": {"state": "ok", "value": "f"}, "turbo": {"state": "absent", "why": "no cpufreq"},
        });
        assert_eq!(plain(&facts), "rps_cpus f, turbo absent: no cpufreq");
    }
}
