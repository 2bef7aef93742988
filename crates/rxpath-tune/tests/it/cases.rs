//! Every judging rule is triggered by a host, and is silent or content on another.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rxpath_tune::rule::RuleKind;
use rxpath_tune::{Ask, Goal, Report, Scope, Severity, check, rules};

use crate::fixture::{Bench, Overlay, dir};

/// What a case expects of its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expect {
    Found,
    Fine,
    Silent,
    Unjudged,
    Unseen,
    Recorded,
    Caution,
}

/// One case of a file of `testdata/rules/cases`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub rule: String,
    pub expect: Expect,
    pub goal: Option<Goal>,
    /// Part of what the rule must say.
    says: Option<String>,
    /// A change that the finding must propose.
    change: Option<String>,
    /// How bad the finding must be.
    severity: Option<Severity>,
    #[serde(default)]
    pub host: Overlay,
}

#[derive(serde::Deserialize)]
struct Cases {
    case: Vec<Case>,
}

pub fn cases() -> Vec<(String, Case)> {
    let mut all = Vec::new();
    let mut files: Vec<_> =
        fs::read_dir(dir().join("cases")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let read: Cases = toml::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        all.extend(
            read.case
                .into_iter()
                .enumerate()
                .map(|(at, case)| (format!("{name} #{}", at + 1), case)),
        );
    }
    all
}

/// What a rule said, over all devices: by kind, with its words.
fn answers(report: &Report, id: &str) -> Vec<(Expect, String)> {
    let notes = [
        (Expect::Fine, &report.fine),
        (Expect::Silent, &report.silent),
        (Expect::Unseen, &report.unseen),
        (Expect::Recorded, &report.records),
        (Expect::Caution, &report.cautions),
    ];
    let mut all: Vec<(Expect, String)> = notes
        .into_iter()
        .flat_map(|(kind, notes)| {
            notes.iter().filter(|note| note.id == id).map(move |note| (kind, note.text.clone()))
        })
        .collect();
    let unjudged = report.unjudged.iter().filter(|one| one.id == id);
    all.extend(unjudged.map(|one| (Expect::Unjudged, one.text.clone())));
    for finding in report.findings.iter().filter(|finding| finding.id == id) {
        let texts = [&finding.observed, &finding.expected, &finding.why];
        assert!(texts.iter().all(|text| !text.is_empty()), "{finding:?}: a text is missing");
        let advice = finding.advice.as_deref().unwrap_or("");
        all.push((
            Expect::Found,
            format!("{}; {}; {}; {advice}", finding.observed, finding.expected, finding.why),
        ));
    }
    all
}

#[test]
fn rules_say_what_the_cases_expect() {
    let mut wrong = Vec::new();
    let bench = Bench::new();
    for (name, case) in cases() {
        assert!(rules::find(&case.rule).is_some(), "{name}: no rule {}", case.rule);
        let report = bench.with(&case.host, |facts| check(&Ask { facts, goal: case.goal }));
        let said = answers(&report, &case.rule);
        let of_kind: Vec<&String> =
            said.iter().filter(|(kind, _)| *kind == case.expect).map(|(_, text)| text).collect();
        let words = case.says.as_deref().unwrap_or("");
        let told = of_kind.iter().any(|text| text.contains(words));
        // A rule that should be quiet must not find anything on any device.
        let found = said.iter().any(|(kind, _)| *kind == Expect::Found);
        let quiet = case.expect == Expect::Found || !found;
        let changes: Vec<String> = report
            .findings
            .iter()
            .filter(|finding| finding.id == case.rule)
            .flat_map(|finding| finding.changes.iter().map(ToString::to_string))
            .collect();
        let proposed = case.change.as_ref().is_none_or(|wanted| changes.contains(wanted));
        let mut found = report.findings.iter().filter(|finding| finding.id == case.rule);
        let severe = case.severity.is_none_or(|wanted| found.any(|one| one.severity == wanted));
        if !(told && quiet && proposed && severe) {
            wrong.push(format!(
                "{name} {}: expected {:?} `{words}`, said {said:?}, changes {changes:?}",
                case.rule, case.expect
            ));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_healthy_host_has_nothing_to_change_for_any_goal() {
    Bench::new().with(&Overlay::default(), |facts| {
        assert!(facts.lost_devices.is_empty(), "{:?}", facts.lost_devices);
        for goal in [None].into_iter().chain(Goal::ALL.map(Some)) {
            let report = check(&Ask { facts, goal });
            let found: Vec<String> =
                report.findings.iter().map(|f| format!("{}: {}", f.id, f.observed)).collect();
            assert!(found.is_empty(), "{goal:?}: {found:#?}");
        }
    });
}

#[test]
fn every_judging_rule_has_a_host_that_triggers_it_and_one_that_does_not() {
    let mut by_rule: BTreeMap<String, BTreeSet<bool>> = BTreeMap::new();
    for (_, case) in cases() {
        by_rule.entry(case.rule).or_default().insert(case.expect == Expect::Found);
    }
    // On the healthy host a rule that is content has judged, and found nothing.
    Bench::new().with(&Overlay::default(), |facts| {
        for goal in [None].into_iter().chain(Goal::ALL.map(Some)) {
            for note in check(&Ask { facts, goal }).fine {
                by_rule.entry(note.id).or_default().insert(false);
            }
        }
    });
    let judging = rules::all().filter(|rule| rule.kind == RuleKind::Judge);
    let missing: Vec<String> = judging
        .filter_map(|rule| {
            let has = by_rule.get(rule.id).cloned().unwrap_or_default();
            match (has.contains(&true), has.contains(&false)) {
                (true, true) => None,
                (false, _) => Some(format!("{}: no host triggers it", rule.id)),
                (true, false) => Some(format!("{}: no host on which it is quiet", rule.id)),
            }
        })
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn an_empty_host_is_silent_and_nothing_is_invented() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("proc")).unwrap();
    let facts = rxpath_tune::HostFacts::collect(
        &rxpath_host::Root::tree(dir.path()).unwrap(),
        &Scope::default(),
    );
    for goal in [None].into_iter().chain(Goal::ALL.map(Some)) {
        let report = check(&Ask { facts: &facts, goal });
        assert!(report.findings.is_empty(), "{:#?}", report.findings);
        assert!(report.fine.is_empty() && report.records.is_empty(), "{report:#?}");
    }
}
