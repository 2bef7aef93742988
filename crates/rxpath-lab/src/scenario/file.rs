//! From the text of a scenario file to its typed form, each value with its line.

use std::collections::BTreeSet;

use rxpath_stats::metric::METRICS;

use super::error::{At, Flaw, ScenarioError, suggestion};
use super::keys::{Key, find, instead_of};
use super::merge::{Overlay, SECTIONS, read_key, read_section, tables_of, text_of, unknown};
use super::raw::{Entry, Raw, parse_file};
use super::spec::Parser;
use super::value::{Setting, Value, check};

/// A scenario as it was written: typed and checked, not yet of one host.
#[derive(Clone, Debug)]
pub struct ScenarioFile {
    /// The file as error messages name it.
    pub origin: String,
    /// Name; part of the run directory's name.
    pub name: String,
    /// The question it answers.
    pub question: String,
    /// What is expected and why.
    pub expected: Option<String>,
    /// Left out of `rxpath list` (tutorials and tests).
    pub hidden: bool,
    pub(super) base: Overlay,
    pub(super) variants: Vec<VariantFile>,
    pub(super) sweep: Vec<Axis>,
    pub(super) compare: Vec<CompareFile>,
}

/// One `[[variant]]`.
#[derive(Clone, Debug)]
pub(super) struct VariantFile {
    pub name: String,
    pub what: Option<String>,
    /// Index of the earlier variant that this one stacks on.
    pub from: Option<usize>,
    pub own: Overlay,
}

/// One key of `[sweep]`.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub key: &'static Key,
    pub values: Vec<Setting>,
}

/// One `[[compare]]`.
#[derive(Clone, Debug)]
pub(super) struct CompareFile {
    /// Without one it is the main metric of what the variants speak.
    pub metric: Option<String>,
    pub base: String,
    pub variant: String,
    pub expected: Option<String>,
}

/// Largest number of variants after sweeps are expanded.
const MAX_VARIANTS: usize = 200;

const TOP: [&str; 14] = [
    "name",
    "question",
    "expected",
    "hidden",
    "topology",
    "lab",
    "background",
    "observe",
    "serve",
    "load",
    "variant",
    "sweep",
    "compare",
    "trials",
];

/// Parses the text of a scenario file. `origin` is what errors call it, `stem` its name without ending.
pub fn parse(text: &str, origin: &str, stem: &str) -> Result<ScenarioFile, ScenarioError> {
    parse_flawed(text, origin, stem).map_err(|flaw| flaw.of(origin))
}

fn parse_flawed(text: &str, origin: &str, stem: &str) -> Result<ScenarioFile, Flaw> {
    let entries = parse_file(text)?;
    if let Some(entry) = entries.iter().find(|entry| !TOP.contains(&entry.key.as_str())) {
        return Err(unknown(entry, "a scenario", &TOP));
    }
    let get = |name: &str| entries.iter().find(|entry| entry.key == name);
    let question = get("question").ok_or_else(|| {
        Flaw::new(&At::Line(1), "`question` is missing", "say in one sentence what is asked")
    })?;
    let mut file = ScenarioFile {
        origin: origin.into(),
        name: get("name").map_or_else(|| Ok(stem.to_owned()), name_of)?,
        question: text_of(question)?,
        expected: get("expected").map(text_of).transpose()?,
        hidden: get("hidden").map_or(Ok(false), truth_of)?,
        base: Overlay::new(),
        variants: Vec::new(),
        sweep: Vec::new(),
        compare: Vec::new(),
    };
    for section in SECTIONS.into_iter().chain(["trials"]) {
        if let Some(entry) = get(section) {
            read_section(section, entry, &mut file.base)?;
        }
    }
    if let Some(entry) = get("variant") {
        read_variants(entry, &mut file.variants)?;
    }
    if let Some(entry) = get("sweep") {
        read_sweep(entry, &mut file)?;
    }
    if let Some(entry) = get("compare") {
        read_compare(entry, &mut file)?;
    }
    Ok(file)
}

fn name_of(entry: &Entry) -> Result<String, Flaw> {
    let name = text_of(entry)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.len() > 60 || !name.chars().all(plain) {
        let wrong = format!("the name `{name}` would not do as part of a file name");
        return Err(Flaw::new(&entry.at, wrong, "use up to 60 letters, digits, - and _"));
    }
    Ok(name)
}

fn truth_of(entry: &Entry) -> Result<bool, Flaw> {
    match entry.node.raw {
        Raw::Bool(value) => Ok(value),
        _ => Err(Flaw::new(
            &entry.at,
            format!("`{}` is {}", entry.key, entry.node.kind()),
            "it takes true or false",
        )),
    }
}

fn read_variants(entry: &Entry, variants: &mut Vec<VariantFile>) -> Result<(), Flaw> {
    for (at, entries) in tables_of(entry)? {
        let get = |name: &str| entries.iter().find(|entry| entry.key == name);
        let named = get("name").ok_or_else(|| {
            Flaw::new(&at, "the variant has no `name`", "give it one: name = \"pinned\"")
        })?;
        let name = name_of(named)?;
        if variants.iter().any(|variant| variant.name == name) {
            let wrong = format!("two variants are called `{name}`");
            return Err(Flaw::new(&named.at, wrong, "rename one of them"));
        }
        let from = get("from").map(|entry| stacks_on(entry, variants)).transpose()?;
        let mut own = Overlay::new();
        for entry in entries {
            match entry.key.as_str() {
                "name" | "from" | "what" => {}
                section if SECTIONS.contains(&section) => read_section(section, entry, &mut own)?,
                _ => {
                    let known = [&["name", "what", "from"], SECTIONS.as_slice()].concat();
                    return Err(unknown(entry, "a variant", &known));
                }
            }
        }
        variants.push(VariantFile { name, what: get("what").map(text_of).transpose()?, from, own });
    }
    Ok(())
}

fn stacks_on(entry: &Entry, earlier: &[VariantFile]) -> Result<usize, Flaw> {
    let name = text_of(entry)?;
    earlier.iter().position(|variant| variant.name == name).ok_or_else(|| {
        let known: Vec<&str> = earlier.iter().map(|variant| variant.name.as_str()).collect();
        let wrong = format!("no variant above is called `{name}`");
        Flaw::new(&entry.at, wrong, suggestion(&name, "variants", &known))
    })
}

/// `[sweep]` takes `serve.batch = [1, 64]` and `"serve.batch" = [1, 64]`.
fn read_sweep(entry: &Entry, file: &mut ScenarioFile) -> Result<(), Flaw> {
    let Raw::Table(entries) = &entry.node.raw else {
        return Err(Flaw::new(&entry.at, "`sweep` is not a table", "write [sweep]"));
    };
    let mut flat: Vec<(String, &Entry)> = Vec::new();
    for entry in entries {
        match &entry.node.raw {
            Raw::Table(inner) => {
                flat.extend(
                    inner.iter().map(|inner| (format!("{}.{}", entry.key, inner.key), inner)),
                );
            }
            _ => flat.push((entry.key.clone(), entry)),
        }
    }
    for (name, entry) in flat {
        let (section, own) = name.split_once('.').unwrap_or(("", &name));
        if !SECTIONS.contains(&section) {
            let wrong = format!("`{name}` cannot be swept");
            return Err(Flaw::new(
                &entry.at,
                wrong,
                "sweep a key of lab, background, serve or load: serve.batch",
            ));
        }
        let key = find(&name).ok_or_else(|| {
            Flaw::new(
                &entry.at,
                format!("[{section}] has no key `{own}`"),
                instead_of(section, own),
            )
        })?;
        let Raw::Array(nodes) = &entry.node.raw else {
            let wrong = format!("`{name}` is {}", entry.node.kind());
            return Err(Flaw::new(&entry.at, wrong, "it takes a list of values to try"));
        };
        let values = nodes.iter().map(|node| check(key, node)).collect::<Result<Vec<_>, _>>()?;
        if values.is_empty() {
            return Err(Flaw::new(
                &entry.at,
                format!("`{name}` has no values"),
                "list at least one",
            ));
        }
        file.sweep.push(Axis { key, values });
    }
    let count = file.names().len();
    if count > MAX_VARIANTS {
        let wrong = format!("the sweep makes {count} variants (every combination of its values)");
        return Err(Flaw::new(&entry.at, wrong, format!("keep it to {MAX_VARIANTS}")));
    }
    let distinct: BTreeSet<String> = file.names().into_iter().collect();
    if distinct.len() != count {
        return Err(Flaw::new(&entry.at, "a swept value is listed twice", "list each value once"));
    }
    Ok(())
}

fn read_compare(entry: &Entry, file: &mut ScenarioFile) -> Result<(), Flaw> {
    let names = file.names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let metrics = file.metrics();
    let metrics: Vec<&str> = metrics.iter().map(String::as_str).collect();
    for (at, entries) in tables_of(entry)? {
        let known = ["metric", "base", "variant", "expected"];
        if let Some(entry) = entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
            return Err(unknown(entry, "a comparison", &known));
        }
        let get = |name: &str| entries.iter().find(|entry| entry.key == name);
        let one_of = |name: &str, what: &str, known: &[&str]| {
            let Some(entry) = get(name) else { return Ok(None) };
            let text = text_of(entry)?;
            if known.contains(&text.as_str()) {
                return Ok(Some(text));
            }
            let wrong = format!("`{text}` is no {what} of this scenario");
            Err(Flaw::new(&entry.at, wrong, suggestion(&text, &format!("{what}s"), known)))
        };
        let metric = one_of("metric", "metric", &metrics)?;
        let base = one_of("base", "variant", &names)?;
        let missing =
            || Flaw::new(&at, "the comparison has no `variant`", "name the variant to judge");
        let variant = one_of("variant", "variant", &names)?.ok_or_else(missing)?;
        let base = base.unwrap_or_else(|| names.first().map_or_else(String::new, |n| (*n).into()));
        if base == variant {
            let wrong = format!("`{variant}` is compared with itself");
            return Err(Flaw::new(&at, wrong, "name another base; trials.aa measures the noise"));
        }
        let expected = one_of("expected", "direction", &["up", "down", "same"])?;
        let metric = metric.map(|name| with_side(name, &metrics));
        file.compare.push(CompareFile { metric, base, variant, expected });
    }
    Ok(())
}

impl ScenarioFile {
    /// Names of all variants, sweeps expanded; `base` when there are neither.
    pub fn names(&self) -> Vec<String> {
        super::resolve::expand(self).into_iter().map(|made| made.name).collect()
    }

    /// Metrics that can be compared: the built-in ones and those of the parsers named in the file.
    fn metrics(&self) -> Vec<String> {
        let overlays = std::iter::once(&self.base).chain(self.variants.iter().map(|v| &v.own));
        let parsers = overlays.flat_map(|overlay| {
            let of = |side| Some((side, overlay.get(format!("{side}.parser").as_str())?));
            ["serve", "load"].into_iter().filter_map(of)
        });
        let own = parsers.flat_map(|(side, setting)| match &setting.value {
            Value::Parser(parser) => parser_metrics(side, parser),
            _ => Vec::new(),
        });
        METRICS.iter().map(|metric| metric.name.to_owned()).chain(own).collect()
    }

    /// Adds `key = value` of a `--set` to the base or to one variant.
    pub(super) fn put(
        &mut self,
        variant: Option<usize>,
        section: &str,
        entry: &Entry,
    ) -> Result<(), Flaw> {
        let overlay = match variant.and_then(|index| self.variants.get_mut(index)) {
            Some(variant) => &mut variant.own,
            None => &mut self.base,
        };
        read_key(section, entry, overlay)
    }
}

/// A parser's metrics by their full names and, so that a file can leave the side out, by their own.
fn parser_metrics(side: &str, parser: &Parser) -> Vec<String> {
    let names = crate::output::metric_names(parser);
    names.into_iter().flat_map(|name| [format!("{side}.{name}"), name]).collect()
}

/// The full name of a parser's metric that was named without its side; the load's comes first.
fn with_side(name: String, known: &[&str]) -> String {
    if METRICS.iter().any(|metric| metric.name == name) {
        return name;
    }
    let full = ["load", "serve"].map(|side| format!("{side}.{name}"));
    full.into_iter().find(|full| known.contains(&full.as_str())).unwrap_or(name)
}
