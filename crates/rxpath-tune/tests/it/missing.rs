//! A rule answers from what was read alone: what is missing is never fine, and never changes an answer to fine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rxpath_host::Root;
use rxpath_tune::{Ask, Goal, HostFacts, Report, Scope, check};

use crate::cases::{Expect, cases};
use crate::fixture::{Bench, copy, dir};

/// Answers by rule and device: whether it was fine, and its words.
type Answers = BTreeMap<(Option<Goal>, String, Option<String>), (bool, String)>;

fn goals() -> impl Iterator<Item = Option<Goal>> {
    [None].into_iter().chain(Goal::ALL.map(Some))
}

fn collect(tree: &Path) -> HostFacts {
    HostFacts::collect(&Root::tree(tree).unwrap(), &Scope::default())
}

fn answers(facts: &HostFacts, goals: impl IntoIterator<Item = Option<Goal>>) -> Answers {
    let mut all = Answers::new();
    for goal in goals {
        let Report { fine, findings, .. } = check(&Ask { facts, goal });
        for note in fine {
            all.insert((goal, note.id, note.device), (true, note.text));
        }
        for one in findings {
            all.insert((goal, one.id, one.device), (false, one.observed));
        }
    }
    all
}

fn files(dir: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), all);
        } else {
            all.push(entry.path());
        }
    }
}

/// The first two files of each kind, where names that differ in numbers alone are one kind: CPUs, queues, interrupts.
fn of_each_kind(mut all: Vec<PathBuf>) -> Vec<PathBuf> {
    // That these links are not there is the fact: no hardware, no bridge above.
    let links = ["device", "master"];
    all.retain(|path| !links.iter().any(|link| path.ends_with(link)));
    all.sort();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    all.retain(|path| {
        let mut kind = path.to_string_lossy().replace(|c: char| c.is_ascii_digit(), "N");
        while kind.contains("NN") {
            kind = kind.replace("NN", "N");
        }
        let count = seen.entry(kind).or_default();
        *count += 1;
        *count <= 2
    });
    all
}

/// Every captured or made host of the test data, by name.
fn hosts() -> Vec<(String, PathBuf)> {
    let mut all = vec![("base".to_owned(), dir().join("base"))];
    for entry in fs::read_dir(dir().join("../hosts")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.push((path.file_name().unwrap().to_string_lossy().into_owned(), path));
        }
    }
    all.sort();
    all
}

/// The answers that became fine when one file of a host was gone, in words.
fn answers_from_nothing(nth: usize, (host, path): &(String, PathBuf)) -> BTreeSet<String> {
    let mut wrong = BTreeSet::new();
    let tree = tempfile::tempdir().unwrap();
    copy(path, tree.path());
    let whole = answers(&collect(tree.path()), goals());
    let mut all = Vec::new();
    files(tree.path(), &mut all);
    // Thousands of checks: without each file for no goal and for one, which is another for the next file and on the next host.
    let goals = Goal::ALL.into_iter().cycle().skip(nth);
    for (file, goal) in of_each_kind(all).into_iter().zip(goals) {
        let aside = tree.path().join("aside");
        fs::rename(&file, &aside).unwrap();
        for (key, (is_fine, words)) in answers(&collect(tree.path()), [None, Some(goal)]) {
            let before = whole.get(&key);
            if is_fine && before.is_none_or(|(was_fine, _)| !was_fine) {
                let name = file.strip_prefix(tree.path()).unwrap().display();
                wrong.insert(format!(
                    "{host} without {name}: {} ({:?}) fine `{words}`, before {before:?}",
                    key.1, key.2
                ));
            }
        }
        fs::rename(&aside, &file).unwrap();
    }
    wrong
}

/// Without a file no answer becomes fine that was not, and none is fine with words that say what was not read.
#[test]
fn no_answer_becomes_fine_when_a_file_goes() {
    // Thousands of checks: the hosts share the CPUs.
    let hosts = hosts();
    let wrong: BTreeSet<String> = std::thread::scope(|scope| {
        let started: Vec<_> = hosts
            .iter()
            .enumerate()
            .map(|(nth, host)| scope.spawn(move || answers_from_nothing(nth, host)))
            .collect();
        started.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} answers from nothing: {wrong:#?}", wrong.len());
}

/// The file that makes a rule find something is its source: without it the rule is not fine.
#[test]
fn a_rule_without_its_source_is_not_fine() {
    let bench = Bench::new();
    let mut wrong = Vec::new();
    let mut asked = 0;
    for (name, case) in cases().into_iter().filter(|(_, case)| case.expect == Expect::Found) {
        for path in case.host.files.keys() {
            if !dir().join("base").join(path.trim_start_matches('/')).is_file() {
                continue;
            }
            let mut host = case.host.clone();
            host.files.remove(path);
            host.remove.push(path.clone());
            asked += 1;
            let fine = bench.with(&host, |facts| check(&Ask { facts, goal: case.goal }).fine);
            if let Some(note) = fine.iter().find(|note| note.id == case.rule) {
                wrong.push(format!("{name} without {path}: {} fine `{}`", note.id, note.text));
            }
        }
    }
    assert!(asked > 30, "{asked}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A host of which nothing can be read is not told that all is well.
#[test]
fn where_nothing_can_be_read_nothing_is_judged() {
    let path = dir().join("../hosts/garbage");
    let facts = collect(&path);
    for goal in goals() {
        let report = check(&Ask { facts: &facts, goal });
        assert!(!report.has_judged(), "{goal:?}: {:#?}", report.fine);
        assert!(report.unjudged_rules().total() > 50, "{goal:?}: {}", report.unjudged_rules());
    }
}
