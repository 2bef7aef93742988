//! A scenario as it was written: typed and checked, not yet of one host.

use rxpath_record::axes::Axes;
use rxpath_remote::Inventory;

use super::error::suggestion;
use super::merge::Overlay;
use super::spec::{Compare, Search};
use super::value::Setting;

/// A scenario file.
#[derive(Clone, Debug, Default)]
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
    /// The axes of its figure in a book of several experiments.
    pub figure: Axes,
    pub(super) base: Overlay,
    pub(super) variants: Vec<VariantFile>,
    pub(super) sweep: Vec<Axis>,
    pub(super) compare: Vec<Compare>,
    /// What its run searches, instead of comparing variants.
    pub search: Option<Search>,
    /// The hosts between which it runs unless the command names others, with the text in which they are.
    pub hosts: Option<(Inventory, String)>,
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
    pub key: String,
    pub values: Vec<Setting>,
}

impl ScenarioFile {
    /// Index of the variant of that name. The error says what would be right.
    pub(super) fn variant(&self, name: &str) -> Result<usize, String> {
        let known: Vec<&str> = self.variants.iter().map(|variant| variant.name.as_str()).collect();
        let found = known.iter().position(|known| *known == name);
        found.ok_or_else(|| suggestion(name, "variants", &known))
    }

    /// Whether the file gives the whole scenario a value for this key.
    pub fn has(&self, key: &str) -> bool {
        self.base.contains_key(key)
    }

    /// Whether a comparison has an expectation or a published figure.
    pub fn expects(&self) -> bool {
        self.compare.iter().any(|one| one.expected.is_some() || one.published.is_some())
    }
}
