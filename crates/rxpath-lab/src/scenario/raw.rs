//! A TOML value that remembers the line it was written on.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{At, Flaw};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub at: At,
    pub raw: Raw,
}

/// TOML without dates, which no scenario key takes.
#[derive(Clone, Debug)]
pub(super) enum Raw {
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    Array(Vec<Node>),
    Table(Vec<Entry>),
}

/// One key of a table, in the file's order.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub key: String,
    pub at: At,
    pub node: Node,
}

impl Node {
    /// What it is, in the words of an error message.
    pub fn kind(&self) -> &'static str {
        match self.raw {
            Raw::Bool(_) => "true/false",
            Raw::Int(_) => "a whole number",
            Raw::Float(_) => "a number with a fraction",
            Raw::Text(_) => "a text",
            Raw::Array(_) => "a list",
            Raw::Table(_) => "a table",
        }
    }

    /// The value as it was written, for results and for names of swept variants.
    pub fn shown(&self) -> serde_json::Value {
        match &self.raw {
            Raw::Bool(value) => (*value).into(),
            Raw::Int(value) => i64::try_from(*value).map_or(serde_json::Value::Null, Into::into),
            Raw::Float(value) => (*value).into(),
            Raw::Text(text) => text.as_str().into(),
            Raw::Array(nodes) => nodes.iter().map(Self::shown).collect(),
            Raw::Table(entries) => serde_json::Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.node.shown())).collect(),
            ),
        }
    }
}

/// Turns a place of the text into where it was written.
type Locate<'a> = &'a dyn Fn(usize) -> At;

/// Parses a whole file.
pub(super) fn parse_file(text: &str) -> Result<Vec<Entry>, Flaw> {
    let line = |offset: usize| {
        let before = text.as_bytes().get(..offset.min(text.len())).unwrap_or_default();
        At::Line(before.split(|byte| *byte == b'\n').count())
    };
    parse(text, &line, "`rxpath list --keys` shows what a scenario file takes")
}

/// Parses the right side of a `--set`: TOML, or a bare text.
pub(super) fn parse_set(value: &str, at: &At) -> Node {
    let text = format!("x = {}", value.trim());
    let locate = |_: usize| at.clone();
    let parsed = parse(&text, &locate, "").ok().filter(|entries| entries.len() == 1);
    parsed
        .and_then(|mut entries| entries.pop())
        .map(|entry| entry.node)
        .filter(|_| !value.contains('\n'))
        .unwrap_or_else(|| Node { at: at.clone(), raw: Raw::Text(value.trim().into()) })
}

fn parse(text: &str, locate: Locate<'_>, right: &str) -> Result<Vec<Entry>, Flaw> {
    let table = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let message = error.message().replace('\n', ", ");
        Flaw::new(&locate(offset), format!("not TOML: {message}"), right)
    })?;
    entries(table.into_inner(), locate)
}

fn entries(table: DeTable<'_>, locate: Locate<'_>) -> Result<Vec<Entry>, Flaw> {
    let mut found = Vec::new();
    for (key, value) in table {
        let start = key.span().start;
        let at = locate(start);
        let node = node(value, locate, &at)?;
        found.push((start, Entry { key: key.into_inner().into_owned(), at, node }));
    }
    found.sort_by_key(|(start, _)| *start);
    Ok(found.into_iter().map(|(_, entry)| entry).collect())
}

fn node(value: Spanned<DeValue<'_>>, locate: Locate<'_>, key: &At) -> Result<Node, Flaw> {
    let at = match value.get_ref() {
        // The span of a [table] starts at its header or its first key; the key's own line is better.
        DeValue::Table(_) => key.clone(),
        _ => locate(value.span().start),
    };
    let raw = match value.into_inner() {
        DeValue::Boolean(value) => Raw::Bool(value),
        DeValue::String(text) => Raw::Text(text.into_owned()),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            Raw::Int(i128::from_str_radix(&digits, number.radix()).map_err(|_| {
                Flaw::new(
                    &at,
                    format!("`{}` is too large", number.as_str()),
                    "use a smaller number",
                )
            })?)
        }
        DeValue::Float(number) => Raw::Float(
            number
                .as_str()
                .replace('_', "")
                .parse()
                .ok()
                .filter(|f: &f64| f.is_finite())
                .ok_or_else(|| {
                    Flaw::new(
                        &at,
                        format!("`{}` is no finite number", number.as_str()),
                        "write 0.5",
                    )
                })?,
        ),
        DeValue::Datetime(_) => {
            return Err(Flaw::new(&at, "a date is no value here", "write texts in quotes"));
        }
        DeValue::Array(values) => Raw::Array(
            values
                .into_iter()
                .map(|value| {
                    let own = locate(value.span().start);
                    node(value, locate, &own)
                })
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => Raw::Table(entries(table, locate)?),
    };
    Ok(Node { at, raw })
}
