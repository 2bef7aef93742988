//! Keys that say nothing without others, and keys that exclude others.

use std::sync::LazyLock;

use serde::Deserialize;

use super::error;
use crate::scenario::error::FileError;
use crate::scenario::reader::Reader;

static BONDS: LazyLock<Bonds> = LazyLock::new(read);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bonds {
    bond: Vec<Bond>,
}

/// Conditions are a key, for one that is set, or `KEY=VALUE`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bond {
    /// What is wrong, and where.
    keys: Vec<String>,
    /// It is wrong unless one of these holds.
    #[serde(default)]
    without: Vec<String>,
    /// It is wrong if one of these holds.
    #[serde(default)]
    with: Vec<String>,
    /// `{key}` stands for the key, `{value}` for the value of the other one.
    wrong: String,
    right: String,
}

#[expect(clippy::panic, reason = "the file is part of the program; the tests read it")]
fn read() -> Bonds {
    toml::from_str(include_str!("bonds.toml")).unwrap_or_else(|why| panic!("bonds.toml: {why}"))
}

/// An error at the first key that lacks what it needs or has what it excludes.
pub(super) fn kept(reader: &Reader<'_>) -> Result<(), FileError> {
    let holds = |condition: &&String| match condition.split_once('=') {
        Some((key, value)) => reader.text(key) == Some(value),
        None => reader.get(condition).is_some(),
    };
    for bond in &BONDS.bond {
        let Some(key) = bond.keys.iter().find(holds) else { continue };
        let with = bond.with.iter().find(holds);
        let has_other = bond.without.iter().any(|other| holds(&other));
        if has_other || (with.is_none() && !bond.with.is_empty()) {
            continue;
        }
        let key = key.split('=').next().unwrap_or_default();
        let value = with.and_then(|with| with.split('=').nth(1)).unwrap_or_default();
        let wrong = bond.wrong.replace("{key}", key).replace("{value}", value);
        return Err(error(reader, key, wrong, &bond.right));
    }
    Ok(())
}
