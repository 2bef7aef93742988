//! The limits that can be made on purpose in a lab of two CPUs or more: `cases.toml`.
//!
//! A draw is a list of settings of a scenario's variant. Its parameters vary where the limit does not depend on them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use chacha20::ChaCha8Rng;
use rxpath_record::verdict::Stage;
use serde::Deserialize;

mod draws;

pub(super) use draws::{busy, drawn, in_the_way};

/// A limit that is made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name.
    pub id: &'static str,
    /// What is done.
    pub what: &'static str,
    /// The stages that say so.
    pub expected: Vec<Stage>,
    /// What a host must have for it.
    #[serde(default)]
    pub needs: Needs,
    /// Of a case whose datagrams are made to cost a drawn time: the share of a CPU, in percent, that all of them are to
    /// take in the softirq, from the least to the most. `load.rate` is among its settings.
    busy_percent: Option<(u32, u32)>,
    /// Settings that other cases have too: in the file their names, once it is read their templates.
    #[serde(default)]
    shared: Vec<&'static str>,
    /// Templates of its other settings, as `draws::drawn` reads them; empty where a function draws them.
    #[serde(default)]
    settings: &'static str,
}

/// How a draw of a case is made.
pub(super) enum Draw {
    /// From its templates.
    Lines,
    /// Settings that depend on each other; the others are from its templates.
    Plain(fn(&mut ChaCha8Rng) -> Vec<String>),
    /// From its templates. The share of a CPU; what a datagram costs is made as for `Timed`.
    Busy((u32, u32)),
    /// What a datagram is to cost in the softirq, in ns, and the other settings. How many firewall rules make it cost that
    /// is the host's affair: the time decides what is the limit, and a rule takes 10 to 60 ns by the host.
    Timed(fn(&mut ChaCha8Rng) -> (f64, Vec<String>)),
}

impl Case {
    /// How it is drawn.
    pub(super) fn draw(&self) -> Draw {
        match (self.id, self.busy_percent) {
            ("filter", _) => Draw::Plain(draws::filter),
            ("conntrack-full", _) => Draw::Plain(draws::conntrack_full),
            ("no-listener", _) => Draw::Plain(draws::no_listener),
            ("socket-queue", _) => Draw::Plain(draws::socket_queue),
            ("tick-artefact", _) => Draw::Timed(draws::tick_artefact),
            ("near-reader", _) => Draw::Plain(draws::near_reader),
            ("near-stall", _) => Draw::Plain(draws::near_stall),
            ("two-limits", _) => Draw::Plain(draws::two_limits),
            (_, Some(share)) => Draw::Busy(share),
            (_, None) => Draw::Lines,
        }
    }

    /// Templates of its settings.
    pub(super) fn templates(&self) -> Vec<&'static str> {
        [self.shared.as_slice(), &[self.settings]].concat()
    }

    /// Whether its datagrams are made to cost a drawn time by firewall rules.
    pub fn is_timed(&self) -> bool {
        matches!(self.draw(), Draw::Busy(..) | Draw::Timed(_))
    }
}

/// What a case needs in addition to a lab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Nothing.
    #[default]
    Lab,
    /// BPF: its verdict rests on what tracepoints measure.
    Probes,
    /// A connection table that can be filled.
    Conntrack,
    /// BPF, and four CPUs for three readers and a sender.
    FourCpus,
}

/// Every case, in the order of the path.
pub static CASES: LazyLock<Vec<Case>> = LazyLock::new(read);

#[expect(clippy::panic, reason = "the file is part of the program; the tests read it")]
fn read() -> Vec<Case> {
    cases(include_str!("cases.toml")).unwrap_or_else(|why| panic!("cases.toml: {why}"))
}

/// What the file says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    /// Templates of settings by the names under which cases share them.
    #[serde(borrow)]
    shared: BTreeMap<&'static str, &'static str>,
    case: Vec<Case>,
}

/// The cases of a file. An error names the case that shares what the file does not have.
fn cases(text: &'static str) -> Result<Vec<Case>, String> {
    let CaseFile { shared, case: mut all } = toml::from_str(text).map_err(|e| e.to_string())?;
    for case in &mut all {
        for name in &mut case.shared {
            let Some(template) = shared.get(*name) else {
                return Err(format!("{}: no shared settings are named {name}", case.id));
            };
            *name = *template;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_settings_or_a_function_that_draws_them() {
        let is_right = |case: &&Case| {
            let has_none = case.templates().concat().is_empty();
            match case.draw() {
                Draw::Lines | Draw::Busy(_) => !has_none,
                Draw::Plain(_) => true,
                Draw::Timed(_) => has_none,
            }
        };
        let wrong: Vec<&Case> = CASES.iter().filter(|case| !is_right(case)).collect();
        assert!(wrong.is_empty() && !CASES.is_empty(), "{wrong:?}");
    }

    #[test]
    fn a_case_has_the_settings_that_it_shares_and_a_misspelt_name_is_an_error() {
        const RIGHT: &str = r"
[shared]
some = 'load.rate = 5'
[[case]]
id = 'one'
what = 'it'
expected = ['nothing']
shared = ['some']
settings = 'load.size = 16'
";
        const MISSPELT: &str = r"
[shared]
[[case]]
id = 'one'
what = 'it'
expected = ['nothing']
shared = ['sme']
";
        assert_eq!(cases(RIGHT).unwrap()[0].templates(), ["load.rate = 5", "load.size = 16"]);
        assert_eq!(cases(MISSPELT).unwrap_err(), "one: no shared settings are named sme");
    }
}
