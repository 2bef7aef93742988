//! The rules by area, in the order of the receive path: texts in `AREA/NAME.toml`, checks in `AREA/NAME.rs`. A new file
//! of rules is one line in `FILES`.

mod cpu;
mod hooks;
mod interrupts;
mod napi;
mod offloads;
mod queues;
mod sockets;
mod surroundings;

use std::sync::LazyLock;

use crate::rule::Rule;
use crate::rule_file::{Checks, TEXTS, rules_of};

/// The files of rules: the name of each `AREA/NAME.toml`, and the checks of `AREA/NAME.rs`.
macro_rules! files {
    ($($area:ident::$name:ident,)*) => {
        &[$((
            concat!("rules/", stringify!($area), "/", stringify!($name)),
            $area::$name::CHECKS,
        )),*]
    };
}

/// Every file of rules.
const FILES: &[(&str, Checks)] = files![
    // NIC: interrupts and coalescing.
    interrupts::coalesce,
    interrupts::affinity,
    interrupts::lines,
    // NIC: rings, queues, steering.
    queues::rings,
    queues::drops,
    queues::channels,
    queues::rss,
    queues::rps,
    queues::steering,
    queues::rfs,
    // NIC: offloads, link, PCIe.
    offloads::aggregate,
    offloads::link,
    offloads::pause,
    offloads::bonds,
    offloads::fit,
    offloads::pcie,
    // NAPI, softirq, polling.
    napi::budget,
    napi::backlog,
    napi::moderation,
    napi::polling,
    // Sockets and protocol.
    sockets::buffers,
    sockets::tcp,
    sockets::floors,
    sockets::limits,
    sockets::losses,
    sockets::neighbours,
    sockets::lookup,
    sockets::placement,
    // Netfilter and other hooks on the path.
    hooks::netfilter,
    hooks::taps,
    hooks::policy,
    hooks::dropping,
    hooks::undelivered,
    // CPU, power, scheduling, kernel.
    cpu::guest,
    cpu::power,
    cpu::clocks,
    cpu::kernel,
    cpu::company,
    cpu::quiet,
    cpu::quota,
    // Queueing, virtualisation, managers, honesty of benchmarks.
    surroundings::virtual_machine,
    surroundings::netvsc,
    surroundings::queueing,
    surroundings::managers,
    surroundings::owners,
    surroundings::link_files,
];

static ALL: LazyLock<Vec<Rule>> = LazyLock::new(read);

#[expect(clippy::panic, reason = "the files are part of the program; the tests read them all")]
fn read() -> Vec<Rule> {
    let rules = |&(name, checks): &(&str, Checks)| {
        rules_of(TEXTS.text(name), checks).unwrap_or_else(|why| panic!("rules: {why}"))
    };
    FILES.iter().flat_map(rules).collect()
}

/// Every rule, in order.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    ALL.iter()
}

/// The rule of this id.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    #[test]
    fn ids_are_stable_words_and_unique() {
        let mut seen = BTreeSet::new();
        for rule in all() {
            assert!(!rule.id.is_empty(), "a rule without id: {}", rule.what);
            assert!(seen.insert(rule.id), "{} twice", rule.id);
            assert!(
                rule.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{}",
                rule.id
            );
        }
    }

    /// Path and text of each file below `src/rules`.
    fn sources() -> Vec<(PathBuf, String)> {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules")];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push((path.clone(), std::fs::read_to_string(path).unwrap()));
                }
            }
        }
        files
    }

    /// What a rule says, and what its check may say: the files are read, because advice is made of what was found.
    #[test]
    fn no_rule_speaks_of_the_workloads_of_a_trial() {
        let files = sources();
        for (path, text) in &files {
            for verb in ["serve", "load"] {
                for what in ["udp", "tcp", "http"] {
                    let workload = format!("{verb} {what}");
                    assert!(!text.contains(&workload), "{}: {workload}", path.display());
                }
            }
            for option in ["--rcvbuf", "--threads", "--work", "--rate", "`--cpu`"] {
                assert!(!text.contains(option), "{}: {option}", path.display());
            }
        }
        assert!(files.len() >= FILES.len(), "{} files", files.len());
    }

    #[test]
    fn every_file_of_rules_is_read_once() {
        let has_rules = |(path, text): &(PathBuf, String)| {
            path.extension().is_some_and(|ending| ending == "toml") && text.contains("[[rule]]")
        };
        let files: Vec<_> = sources().into_iter().filter(has_rules).collect();
        for (path, text) in &files {
            let readers = FILES.iter().filter(|(name, _)| TEXTS.text(name) == text).count();
            assert_eq!(readers, 1, "{}", path.display());
        }
        assert_eq!(files.len(), FILES.len());
    }

    /// A misspelt name of a shared text (`VALUE_BAK`) is no text.
    #[test]
    fn no_name_of_a_shared_text_is_left_in_a_rule() {
        let is_name = |text: &str| {
            text.len() > 1
                && text.starts_with(|first: char| first.is_ascii_uppercase())
                && text.bytes().all(|b| matches!(b, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
        };
        assert!(is_name("VALUE_BAK") && !is_name("No IRQ.") && !is_name("any"));
        for rule in all() {
            let texts = [
                rule.figure_from,
                rule.not_when,
                rule.side_effects,
                rule.set_now,
                rule.persist,
                rule.undo,
                rule.verify,
                rule.since,
            ];
            for text in texts.iter().chain(&rule.sources).copied() {
                assert!(!is_name(text), "{}: no text is named {text}", rule.id);
            }
        }
    }

    #[test]
    fn every_rule_is_explained_has_sources_and_an_undo() {
        for rule in all() {
            let parts = [
                ("what", rule.what),
                ("applies", rule.applies),
                ("why", rule.why),
                ("mechanism", rule.mechanism),
                ("not_when", rule.not_when),
                ("side_effects", rule.side_effects),
                ("set_now", rule.set_now),
                ("persist", rule.persist),
                ("undo", rule.undo),
                ("verify", rule.verify),
                ("since", rule.since),
            ];
            for (name, part) in parts {
                assert!(part.trim().len() > 2, "{}: no {name}", rule.id);
            }
            assert!(!rule.sources.is_empty(), "{}: no source", rule.id);
            assert!(rule.what.ends_with('?'), "{}: the question ends with ?", rule.id);
        }
    }
}
