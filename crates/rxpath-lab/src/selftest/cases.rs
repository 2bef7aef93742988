//! The limits that can be made on purpose in a lab of two CPUs or more: `cases.toml`.
//!
//! A draw is a list of settings of a scenario's variant. Its parameters vary where the limit does not depend on them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rand_chacha::ChaCha8Rng;
use rxpath_record::verdict::Stage;
use serde::Deserialize;

mod draws;

pub(super) use draws::{busy, drawn, in_the_way};

/// A limit that is made.
#[derive(Deserialize)]
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
    /// Templates of its settings, as `draws::drawn` reads them; empty where a function draws them.
    #[serde(default)]
    settings: &'static str,
}

/// How a draw of a case is made.
pub(super) enum Draw {
    /// From templates of its settings.
    Lines(&'static str),
    /// Its settings.
    Plain(fn(&mut ChaCha8Rng) -> Vec<String>),
    /// The share of a CPU and templates of the settings. What a datagram costs is made as for `Timed`.
    Busy((u32, u32), &'static str),
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
            (_, Some(share)) => Draw::Busy(share, self.settings),
            (_, None) => Draw::Lines(self.settings),
        }
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

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

/// Every case, in the order of the path.
pub static CASES: LazyLock<Vec<Case>> = LazyLock::new(read);

#[expect(clippy::panic, reason = "the file is part of the program; the tests read it")]
fn read() -> Vec<Case> {
    let file: Result<BTreeMap<String, Vec<Case>>, _> = toml::from_str(include_str!("cases.toml"));
    file.unwrap_or_else(|why| panic!("{why}")).remove("case").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_settings_or_a_function_that_draws_them() {
        let is_right = |case: &&Case| {
            case.settings.is_empty() == matches!(case.draw(), Draw::Plain(_) | Draw::Timed(_))
        };
        let wrong: Vec<&Case> = CASES.iter().filter(|case| !is_right(case)).collect();
        assert!(wrong.is_empty() && !CASES.is_empty(), "{wrong:?}");
    }
}
