//! The text of a scenario as a tree of values, and the line of each of them.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{At, FileError};
use super::reworded::reworded;

/// A TOML table as JSON.
pub(super) type Table = Map<String, Value>;

/// Where each value of a text begins, by its path: `variant[0].serve.batch`.
pub(super) struct Positions<'a> {
    text: &'a str,
    offsets: BTreeMap<String, usize>,
}

impl<'a> Positions<'a> {
    /// Finds the place of every key.
    pub fn find(text: &'a str) -> Result<Self, FileError> {
        let table = DeTable::parse(text).map_err(|error| not_toml(text, &error))?;
        let mut positions = Self { text, offsets: BTreeMap::new() };
        positions.table("", table.get_ref());
        Ok(positions)
    }

    fn table(&mut self, path: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let name = key.get_ref();
            let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            self.value(path, key.span().start, value);
        }
    }

    fn value(&mut self, path: String, offset: usize, value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::Table(table) => self.table(&path, table),
            DeValue::Array(values) => {
                for (i, value) in values.iter().enumerate() {
                    // The first key of a table says more than its header.
                    let first = value
                        .get_ref()
                        .as_table()
                        .and_then(|table| table.keys().map(|key| key.span().start).min());
                    self.value(format!("{path}[{i}]"), first.unwrap_or(value.span().start), value);
                }
            }
            _ => {}
        }
        self.offsets.insert(path, offset);
    }

    /// Offset of the value at a path, or of the nearest one around it.
    pub fn offset(&self, path: &str) -> usize {
        match (self.offsets.get(path), path.rfind(['.', '['])) {
            (Some(offset), _) => *offset,
            (None, Some(end)) => self.offset(&path[..end]),
            (None, None) => 0,
        }
    }

    /// Line of the value at a path.
    pub fn at(&self, path: &str) -> At {
        At::Line(line(self.text, self.offset(path)))
    }

    /// The whole text as values.
    pub fn tree(&self) -> Result<Table, FileError> {
        toml::from_str(self.text).map_err(|error| not_toml(self.text, &error))
    }

    /// The whole text in its typed form. A wrong key or type is reported with its line.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, FileError> {
        serde_path_to_error::deserialize(Value::Object(self.tree()?)).map_err(|error| {
            let path = error.path().to_string();
            let (wrong, right) = reworded(&error.inner().to_string(), owner(&path));
            let is_named = path == "." || wrong.contains(&format!("`{path}`"));
            let named = is_named || wrong.starts_with(owner(&path));
            let wrong = if named { wrong } else { format!("`{path}`: {wrong}") };
            FileError::new(&self.at(&path), wrong, right.unwrap_or_else(|| HELP.into()))
        })
    }
}

/// What the table at a path is, in words.
fn owner(path: &str) -> &'static str {
    match path.split(['[', '.']).next() {
        Some("variant") => "a variant",
        Some("compare") => "a comparison",
        Some("search") => "a search",
        _ => "a scenario",
    }
}

const HELP: &str = "`rxpath list --keys` shows what a scenario file takes";

fn line(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset.min(text.len())).unwrap_or_default();
    before.split(|byte| *byte == b'\n').count()
}

fn not_toml(text: &str, error: &toml::de::Error) -> FileError {
    let at = At::Line(line(text, error.span().map_or(0, |span| span.start)));
    FileError::new(&at, format!("not TOML: {}", error.message().replace('\n', ", ")), HELP)
}

/// The values of a table by their whole names: `serve.batch = [1]` and `"serve.batch" = [1]` are the same.
pub(super) fn leaves(table: &Table) -> Vec<(String, &Value)> {
    let mut all = Vec::new();
    for (name, value) in table {
        match value.as_object() {
            Some(inner) => {
                let inner = leaves(inner).into_iter();
                all.extend(inner.map(|(own, value)| (format!("{name}.{own}"), value)));
            }
            None => all.push((name.clone(), value)),
        }
    }
    all
}

/// The right side of a `--set`: TOML, or a bare text.
pub(super) fn set_value(text: &str) -> Value {
    let text = text.trim();
    let parsed = toml::from_str::<Table>(&format!("x = {text}")).ok();
    parsed
        .filter(|table| table.len() == 1 && !text.contains('\n'))
        .and_then(|mut table| table.remove("x"))
        .unwrap_or_else(|| text.into())
}
