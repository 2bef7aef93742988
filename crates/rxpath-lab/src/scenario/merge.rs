//! Overlays: settings by dotted key, and how one is laid over another.

use std::collections::BTreeMap;

use super::error::{At, Flaw, suggestion};
use super::keys::{find, instead_of};
use super::raw::{Entry, Raw};
use super::value::{Setting, Value, check};

/// Settings by dotted key (the `name` of a `Key`).
pub(super) type Overlay = BTreeMap<&'static str, Setting>;

/// Sections that a variant and the base have in common.
pub(super) const SECTIONS: [&str; 6] =
    ["topology", "lab", "background", "observe", "serve", "load"];

/// Reads one section's table into an overlay.
pub(super) fn read_section(section: &str, entry: &Entry, into: &mut Overlay) -> Result<(), Flaw> {
    let Raw::Table(entries) = &entry.node.raw else {
        return Err(Flaw::new(
            &entry.at,
            format!("`{section}` is {}", entry.node.kind()),
            format!("it is a table: [{section}]"),
        ));
    };
    for entry in entries {
        read_key(section, entry, into)?;
    }
    Ok(())
}

/// Reads one `key = value` of a section.
pub(super) fn read_key(section: &str, entry: &Entry, into: &mut Overlay) -> Result<(), Flaw> {
    let Some(key) = find(&format!("{section}.{}", entry.key)) else {
        return Err(Flaw::new(
            &entry.at,
            format!("[{section}] has no key `{}`", entry.key),
            instead_of(section, &entry.key),
        ));
    };
    into.insert(key.name, check(key, &entry.node)?);
    Ok(())
}

/// Lays `over` on `base`; `"default"` takes a setting away.
pub(super) fn lay(base: &Overlay, over: &Overlay) -> Overlay {
    let mut merged = base.clone();
    for (name, setting) in over {
        match setting.value {
            Value::Default => merged.remove(name),
            _ => merged.insert(name, setting.clone()),
        };
    }
    merged
}

/// The text of an entry that must be one.
pub(super) fn text_of(entry: &Entry) -> Result<String, Flaw> {
    match &entry.node.raw {
        Raw::Text(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Raw::Text(_) => {
            Err(Flaw::new(&entry.at, format!("`{}` is empty", entry.key), "write a text in quotes"))
        }
        _ => Err(Flaw::new(
            &entry.at,
            format!("`{}` is {}", entry.key, entry.node.kind()),
            "it takes a text in quotes",
        )),
    }
}

/// The tables of an array of tables such as `[[variant]]`.
pub(super) fn tables_of(entry: &Entry) -> Result<Vec<(At, &[Entry])>, Flaw> {
    let wrong = |at: &At| {
        Flaw::new(
            at,
            format!("`{}` is not a list of tables", entry.key),
            format!("write [[{}]] above each", entry.key),
        )
    };
    let Raw::Array(nodes) = &entry.node.raw else { return Err(wrong(&entry.at)) };
    nodes
        .iter()
        .map(|node| match &node.raw {
            Raw::Table(entries) => {
                let at = entries.first().map_or(&node.at, |first| &first.at);
                Ok((at.clone(), entries.as_slice()))
            }
            _ => Err(wrong(&node.at)),
        })
        .collect()
}

/// Refuses a key that a table does not have.
pub(super) fn unknown(entry: &Entry, table: &str, known: &[&str]) -> Flaw {
    Flaw::new(
        &entry.at,
        format!("{table} has no key `{}`", entry.key),
        suggestion(&entry.key, "keys", known),
    )
}
