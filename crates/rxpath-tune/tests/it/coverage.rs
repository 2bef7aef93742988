//! Every setting of the receive path has a rule, and most of them are judged.

use std::collections::BTreeSet;
use std::fs;

use rxpath_tune::rule::RuleKind;
use rxpath_tune::{Goal, rules};

use crate::fixture::dir;

/// Settings that the list holds, and how many of them a rule must judge.
const SETTINGS: usize = 149;
const JUDGED: usize = 95;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    name: String,
    rules: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Settings {
    setting: Vec<Setting>,
}

fn settings() -> Vec<Setting> {
    let text = fs::read_to_string(dir().join("settings.toml")).unwrap();
    toml::from_str::<Settings>(&text).unwrap().setting
}

#[test]
fn no_setting_is_without_a_rule_and_no_rule_without_a_setting() {
    let settings = settings();
    let mut names = BTreeSet::new();
    let mut answered = BTreeSet::new();
    for setting in &settings {
        assert!(names.insert(&setting.name), "{} twice", setting.name);
        assert!(!setting.rules.is_empty(), "{} has no rule", setting.name);
        for id in &setting.rules {
            assert!(rules::find(id).is_some(), "{}: no rule {id}", setting.name);
            assert!(answered.insert(id.as_str()), "{id} answers for two settings");
        }
    }
    assert_eq!(settings.len(), SETTINGS);
    let all: BTreeSet<&str> = rules::all().map(|rule| rule.id).collect();
    let missing: Vec<&&str> = all.difference(&answered).collect();
    assert!(missing.is_empty(), "rules that answer for no setting of the list: {missing:?}");
}

/// The size of an effect on a goal orders findings for it: a rule that is not asked then needs none.
#[test]
fn only_goals_that_a_rule_judges_have_a_size() {
    for rule in rules::all() {
        for goal in Goal::ALL.into_iter().filter(|goal| rule.weight.size(Some(*goal)).is_some()) {
            assert!(rule.kind == RuleKind::Judge, "{} judges nothing", rule.id);
            assert!(rule.weight.of(Some(goal)).is_some(), "{} is not asked for {goal:?}", rule.id);
        }
    }
}

#[test]
fn most_settings_are_judged_and_the_rest_is_recorded_or_warned_about() {
    let judged = settings()
        .iter()
        .filter(|setting| {
            setting.rules.iter().any(|id| rules::find(id).unwrap().kind == RuleKind::Judge)
        })
        .count();
    assert!(judged >= JUDGED, "{judged} of {SETTINGS} settings are judged, {JUDGED} are promised");
}
