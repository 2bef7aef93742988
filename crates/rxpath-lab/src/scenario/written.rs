//! From the text of a scenario file to its typed form, each setting with its line.

use std::collections::BTreeSet;

use rxpath_core::SortFew;
use rxpath_record::axes::Axes;
use rxpath_record::comparison::Published;
use rxpath_record::metric::METRICS;
use rxpath_remote::Inventory;
use serde::Deserialize;
use serde_json::Value;

use super::empty;
use super::error::{At, FileError, ScenarioError, one_of};
use super::file::{Axis, ScenarioFile, VariantFile};
use super::forms::Parser;
use super::keys::{find, instead_of};
use super::merge::{Overlay, SECTIONS, read_section};
use super::search::WrittenSearch;
use super::source::{Positions, Table, leaves};
use super::spec::Compare;
use super::value::{check, kind};

/// A whole file as serde reads it; the keys of its sections are checked afterwards.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<Name>,
    question: Text,
    expected: Option<Text>,
    #[serde(default)]
    hidden: bool,
    #[serde(default)]
    figure: Axes,
    topology: Option<Table>,
    lab: Option<Table>,
    tune: Option<Table>,
    background: Option<Table>,
    observe: Option<Table>,
    serve: Option<Table>,
    load: Option<Table>,
    #[serde(default)]
    variant: Vec<WrittenVariant>,
    sweep: Option<Table>,
    #[serde(default)]
    compare: Vec<Compare>,
    search: Option<WrittenSearch>,
    #[serde(default)]
    trials: Table,
    hosts: Option<Table>,
    network: Option<Table>,
}

/// One `[[variant]]` as serde reads it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenVariant {
    name: Name,
    what: Option<Text>,
    from: Option<String>,
    topology: Option<Table>,
    lab: Option<Table>,
    tune: Option<Table>,
    background: Option<Table>,
    observe: Option<Table>,
    serve: Option<Table>,
    load: Option<Table>,
}

/// A text without the blanks around it.
#[derive(Deserialize)]
#[serde(from = "String")]
struct Text(String);

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.trim().into())
    }
}

/// A name that can be part of a file's name.
#[derive(Deserialize)]
#[serde(try_from = "Text")]
struct Name(String);

impl TryFrom<Text> for Name {
    type Error = String;

    fn try_from(Text(name): Text) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.len() <= 60 && name.chars().all(plain) {
            return Ok(Self(name));
        }
        Err(format!(
            "the name `{name}` cannot be part of a file name, use up to 60 letters, digits, - and _"
        ))
    }
}

/// Largest number of variants after sweeps are expanded.
const MAX_VARIANTS: usize = 200;

/// Parses the text of a scenario file. `origin` is what errors call it, `stem` its name without ending.
pub fn parse(text: &str, origin: &str, stem: &str) -> Result<ScenarioFile, ScenarioError> {
    let read = || -> Result<(bool, ScenarioFile), FileError> {
        let positions = Positions::find(text)?;
        let written: Written = positions.read()?;
        empty::refuse(&positions)?;
        let has_hosts = written.hosts.is_some() || written.network.is_some();
        Ok((has_hosts, ScenarioFile::new(written, &positions, origin, stem)?))
    };
    let (has_hosts, file) = read().map_err(|error| error.of(origin))?;
    let own = || Inventory::in_scenario(text, origin).map(|hosts| (hosts, text.to_owned()));
    let hosts = has_hosts.then(own).transpose()?;
    Ok(ScenarioFile { hosts, ..file })
}

impl ScenarioFile {
    fn new(
        written: Written,
        positions: &Positions<'_>,
        origin: &str,
        stem: &str,
    ) -> Result<Self, FileError> {
        let Written { topology, lab, tune, background, observe, serve, load, .. } = written;
        let tables = [topology, lab, tune, background, observe, serve, load];
        let mut base = overlay(tables, positions, "")?;
        let at = |key: &str| positions.at(&format!("trials.{key}"));
        read_section("trials", &written.trials, at, &mut base)?;
        let mut file = Self {
            origin: origin.into(),
            name: written.name.map_or_else(|| stem.to_owned(), |name| name.0),
            question: written.question.0,
            expected: written.expected.map(|text| text.0),
            hidden: written.hidden,
            figure: written.figure,
            base,
            ..Self::default()
        };
        for (i, variant) in written.variant.into_iter().enumerate() {
            file.add_variant(variant, positions, &format!("variant[{i}]."))?;
        }
        if let Some(sweep) = &written.sweep {
            file.read_sweep(sweep, positions)?;
        }
        for (i, compare) in written.compare.into_iter().enumerate() {
            let at = |key: &str| positions.at(&format!("compare[{i}].{key}"));
            file.compare.push(file.complete(compare, at)?);
        }
        file.search = written.search.map(|search| search.checked(&file, positions)).transpose()?;
        Ok(file)
    }

    fn add_variant(
        &mut self,
        written: WrittenVariant,
        positions: &Positions<'_>,
        path: &str,
    ) -> Result<(), FileError> {
        let WrittenVariant { topology, lab, tune, background, observe, serve, load, .. } = written;
        let name = written.name.0;
        if self.variants.iter().any(|variant| variant.name == name) {
            let at = positions.at(&format!("{path}name"));
            let wrong = format!("two variants are called `{name}`");
            return Err(FileError::new(&at, wrong, "rename one of them"));
        }
        let from = written.from.map(|name| {
            let at = positions.at(&format!("{path}from"));
            let wrong = format!("no variant above is called `{name}`");
            self.variant(&name).map_err(|right| FileError::new(&at, wrong, right))
        });
        let variant = VariantFile {
            name,
            what: written.what.map(|text| text.0),
            from: from.transpose()?,
            own: overlay([topology, lab, tune, background, observe, serve, load], positions, path)?,
        };
        self.variants.push(variant);
        Ok(())
    }

    /// `[sweep]` takes `serve.batch = [1, 64]` and `"serve.batch" = [1, 64]`.
    fn read_sweep(&mut self, table: &Table, positions: &Positions<'_>) -> Result<(), FileError> {
        let mut flat = leaves(table);
        // In the order of the file.
        flat.sort_few_by_key(|(name, _)| positions.offset(&format!("sweep.{name}")));
        for (name, value) in flat {
            self.sweep.push(axis(&name, value, &positions.at(&format!("sweep.{name}")))?);
        }
        let names = self.names();
        let count = names.len();
        let wrong = |wrong: String, right: String| {
            Err(FileError::new(&positions.at("sweep"), wrong, right))
        };
        if count > MAX_VARIANTS {
            let what =
                format!("the sweep makes {count} variants (every combination of its values)");
            return wrong(what, format!("keep it to {MAX_VARIANTS}"));
        }
        if names.into_iter().collect::<BTreeSet<String>>().len() != count {
            return wrong("a swept value is listed twice".into(), "list each value once".into());
        }
        Ok(())
    }

    /// A comparison with its base and the full name of its metric, when both are known.
    fn complete(&self, written: Compare, at: impl Fn(&str) -> At) -> Result<Compare, FileError> {
        let (names, metrics) = (self.names(), self.metrics());
        let first = names.first().cloned().unwrap_or_default();
        let base = if written.base.is_empty() { first } else { written.base };
        one_of(&at("base"), "variant", &base, &names)?;
        one_of(&at("variant"), "variant", &written.variant, &names)?;
        if base == written.variant {
            let wrong = format!("`{base}` is compared with itself");
            let right = "name another base; trials.aa measures the noise";
            return Err(FileError::new(&at("variant"), wrong, right));
        }
        if !written.metric.is_empty() {
            one_of(&at("metric"), "metric", &written.metric, &metrics)?;
        }
        if let Some(expected) = &written.expected {
            one_of(&at("expected"), "direction", expected, &["up", "down", "same"])?;
        }
        if let Some((key, right)) = written.published.as_ref().and_then(Published::fault) {
            let wrong = format!("`published.{key}` is missing or not usable");
            return Err(FileError::new(&at("published"), wrong, right));
        }
        let metric = with_side(written.metric, &metrics);
        Ok(Compare { metric, base, ..written })
    }

    /// Metrics that can be compared: the built-in ones and those of the parsers named in the file.
    fn metrics(&self) -> Vec<String> {
        let overlays = std::iter::once(&self.base).chain(self.variants.iter().map(|v| &v.own));
        let own = overlays.flat_map(|overlay| {
            ["serve", "load"].into_iter().flat_map(|side| {
                let setting = overlay.get(format!("{side}.parser").as_str());
                let parser = setting.and_then(|it| serde_json::from_value(it.value.clone()).ok());
                parser.map_or_else(Vec::new, |parser: Parser| parser_metrics(side, &parser))
            })
        });
        METRICS.iter().map(|metric| metric.name.to_owned()).chain(own).collect()
    }
}

/// The settings of a base or a variant, whose tables are in the order of [`SECTIONS`].
fn overlay(
    tables: [Option<Table>; SECTIONS.len()],
    positions: &Positions<'_>,
    path: &str,
) -> Result<Overlay, FileError> {
    let mut own = Overlay::new();
    for (section, table) in SECTIONS.into_iter().zip(tables) {
        let at = |key: &str| positions.at(&format!("{path}{section}.{key}"));
        read_section(section, &table.unwrap_or_default(), at, &mut own)?;
    }
    Ok(own)
}

fn axis(name: &str, value: &Value, at: &At) -> Result<Axis, FileError> {
    let (section, own) = name.split_once('.').unwrap_or(("", name));
    if !SECTIONS.contains(&section) {
        let right = "sweep a key of lab, tune, background, serve or load: serve.batch";
        return Err(FileError::new(at, format!("`{name}` cannot be swept"), right));
    }
    let key = find(name).ok_or_else(|| {
        FileError::new(at, format!("[{section}] has no key `{own}`"), instead_of(section, own))
    })?;
    let Some(values) = value.as_array() else {
        let wrong = format!("`{name}` is {}", kind(value));
        return Err(FileError::new(at, wrong, "it takes a list of values to try"));
    };
    if values.is_empty() {
        return Err(FileError::new(at, format!("`{name}` has no values"), "list at least one"));
    }
    let values = values.iter().map(|value| check(key, name, value, at));
    Ok(Axis { key: name.to_owned(), values: values.collect::<Result<_, _>>()? })
}

/// A parser's metrics by their full names and, so that a file can leave the side out, by their own.
fn parser_metrics(side: &str, parser: &Parser) -> Vec<String> {
    let names = crate::output::metric_names(parser);
    names.into_iter().flat_map(|name| [format!("{side}.{name}"), name]).collect()
}

/// The full name of a parser's metric that was named without its side; the load's comes first.
fn with_side(name: String, known: &[String]) -> String {
    if METRICS.iter().any(|metric| metric.name == name) {
        return name;
    }
    let full = ["load", "serve"].map(|side| format!("{side}.{name}"));
    full.into_iter().find(|full| known.contains(full)).unwrap_or(name)
}
