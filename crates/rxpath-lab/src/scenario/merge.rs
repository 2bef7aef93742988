//! Overlays: settings by dotted key, and how one is laid over another.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::{At, FileError};
use super::keys::{find, instead_of};
use super::source::Table;
use super::value::{Setting, check};

/// Settings by dotted key: the `name` of a `Key`, or one that it stands for.
pub(super) type Overlay = BTreeMap<String, Setting>;

/// Sections that a variant and the base have in common.
pub(super) const SECTIONS: [&str; 7] =
    ["topology", "lab", "tune", "background", "observe", "serve", "load"];

/// Checks the keys of one section into an overlay. `at` tells where the key of a name is.
pub(super) fn read_section(
    section: &str,
    table: &Table,
    at: impl Fn(&str) -> At,
    into: &mut Overlay,
) -> Result<(), FileError> {
    table.iter().try_for_each(|(name, value)| read_key(section, name, value, &at(name), into))
}

/// Checks one `name = value` of a section.
pub(super) fn read_key(
    section: &str,
    name: &str,
    value: &Value,
    at: &At,
    into: &mut Overlay,
) -> Result<(), FileError> {
    let full = format!("{section}.{name}");
    let key = find(&full).ok_or_else(|| {
        FileError::new(at, format!("[{section}] has no key `{name}`"), instead_of(section, name))
    })?;
    put(into, &full, check(key, &full, value, at)?);
    Ok(())
}

/// What a key is set to.
pub(super) fn value_of<'a>(overlay: &'a Overlay, key: &str) -> Option<&'a Value> {
    overlay.get(key).map(|setting| &setting.value)
}

/// Puts a setting over what is there. Names in `tune` are added to those that are there.
pub(super) fn put(into: &mut Overlay, key: &str, mut setting: Setting) {
    if let Some(below) = into.get(key).filter(|_| key.starts_with("tune.")) {
        for (own, below) in [(&mut setting.value, &below.value), (&mut setting.shown, &below.shown)]
        {
            let (Some(own), Some(below)) = (own.as_object_mut(), below.as_object()) else {
                continue;
            };
            for (name, value) in below {
                own.entry(name).or_insert_with(|| value.clone());
            }
        }
    }
    into.insert(key.to_owned(), setting);
}

/// Lays `over` on `base`; `"default"` takes a setting away.
pub(super) fn lay(base: &Overlay, over: &Overlay) -> Overlay {
    let mut merged = base.clone();
    for (key, setting) in over {
        put(&mut merged, key, setting.clone());
    }
    merged.retain(|_, setting| !setting.value.is_null());
    merged
}
