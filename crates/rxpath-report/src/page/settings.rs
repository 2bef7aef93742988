//! What differs between the variants, side by side.

use std::collections::BTreeSet;

use maud::html;
use rxpath_record::event::What;

use super::Section;
use super::part::{Table, fold, table};
use crate::source::Run;

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
        lead: "Settings in which the variants differ from the scenario's base. A dot stands for the base's value.",
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

/// A JSON value as a person writes it: strings without quotes.
pub(super) fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn changed(run: &Run) -> Table {
    let mut table = Table::new(&["side", "setting", "before", "read back after the write"]);
    for event in &run.events {
        if let What::SettingChanged { side, setting, old, new } = &event.what {
            table.rows.push(vec![side.to_string(), setting.clone(), old.clone(), new.clone()]);
        }
    }
    table
}
