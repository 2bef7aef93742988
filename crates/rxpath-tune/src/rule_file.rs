//! A file of rules: the texts are data (`rules/AREA/NAME.toml`), the checks are code (`NAME.rs`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rxpath_texts::PackedTexts;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::rule::{Check, Rule, RuleKind};

/// The rules and tables that are part of the program: each `src/NAME.toml`.
pub(crate) static TEXTS: LazyLock<PackedTexts> = rxpath_texts::texts_of_build!();

/// A table that is part of the program: what `src/NAME.toml` says.
#[expect(clippy::panic, reason = "the files are part of the program; the tests read them all")]
pub(crate) fn table<T: DeserializeOwned>(name: &str) -> T {
    toml::from_str(TEXTS.text(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// The check of each rule of a file, by its id.
pub type Checks = &'static [(&'static str, Check)];

/// What the file says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    /// Texts that several rules of the file share: a value that is a name stands for its text.
    #[serde(borrow, default)]
    short: BTreeMap<&'static str, &'static str>,
    rule: Vec<Rule>,
}

/// Names that every file may use.
const COMMON: [(&str, &str); 3] = [
    ("VALUE_BACK", "restore the previous value; a plan's journal has it"),
    ("NO_SETTING", "no setting: recorded so that two results can be compared"),
    ("NOTHING_CHANGED", "nothing to undo: rxpath reads this and never changes it"),
];

/// The rules of a file, in its order, each with its check. Its text is TOML: one `[[rule]]` for each rule, whose keys are
/// the fields of [`Rule`]. An error names the rule without a check, or the check without a rule.
pub(crate) fn rules_of(text: &'static str, checks: Checks) -> Result<Vec<Rule>, String> {
    let Texts { mut short, rule } =
        toml::from_str(text).map_err(|why| format!("the file of {}: {why}", first(text)))?;
    short.extend(COMMON);
    let mut checks: BTreeMap<&str, Check> = checks.iter().copied().collect();
    let mut rules = Vec::new();
    for rule in rule {
        let check = checks.remove(rule.id).ok_or_else(|| format!("{}: no check", rule.id))?;
        rules.push(complete(Rule { check, ..rule }, &short));
    }
    match checks.keys().next() {
        None => Ok(rules),
        Some(id) => Err(format!("{id}: a check without a rule")),
    }
}

/// The id of a file's first rule, which names the file in an error.
fn first(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("id = ")).unwrap_or("no rule")
}

/// The rule with the usual texts of its kind where it has none, and with the text of each name.
fn complete(mut rule: Rule, short: &BTreeMap<&str, &'static str>) -> Rule {
    let (setting, undo) = match rule.kind {
        RuleKind::Judge => ("", "VALUE_BACK"),
        RuleKind::Record | RuleKind::Honesty => ("NO_SETTING", "NOTHING_CHANGED"),
    };
    let texts = [
        (&mut rule.figure_from, ""),
        (&mut rule.not_when, setting),
        (&mut rule.side_effects, "none"),
        (&mut rule.set_now, setting),
        (&mut rule.persist, setting),
        (&mut rule.undo, undo),
        (&mut rule.verify, ""),
        (&mut rule.since, "any"),
    ];
    for (text, usual) in texts {
        let said = if text.is_empty() { usual } else { *text };
        *text = short.get(said).copied().unwrap_or(said);
    }
    for source in &mut rule.sources {
        *source = short.get(*source).copied().unwrap_or(*source);
    }
    rule
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Answer;
    use crate::weight::Severity;

    const TEXT: &str = r#"
[short]
DOC = "kernel: Documentation/some.rst"

[[rule]]
id = "one"
area = "napi"
what = "Is it?"
applies = "every host"
why = "It matters."
mechanism = "net/core/dev.c"
not_when = "never"
set_now = "sysctl -w a=1"
persist = "/etc/sysctl.d/"
verify = "sysctl a"
sources = ["DOC", "a paper"]

[[rule]]
id = "two"
area = "cpu"
kind = "record"
what = "How much is it?"
applies = "every host"
why = "It differs."
mechanism = "kernel/sched/fair.c"
undo = "VALUE_BACK"
verify = "cat it"
since = "5.7"
sources = ["DOC"]
"#;

    const ONE: (&str, Check) = ("one", Check::Host(|_| Answer::fine("well")));
    const TWO: (&str, Check) = ("two", Check::Host(|_| Answer::fine("well")));
    const THREE: (&str, Check) = ("three", Check::Host(|_| Answer::fine("well")));

    #[test]
    fn a_rule_has_the_usual_texts_of_its_kind_where_its_file_says_nothing() {
        let rules = rules_of(TEXT, &[TWO, ONE]).unwrap();
        let [one, two] = rules.as_slice() else { panic!("{rules:?}") };
        assert_eq!((one.id, two.id), ("one", "two"));
        assert_eq!(one.undo, "restore the previous value; a plan's journal has it");
        assert_eq!((one.side_effects, one.since), ("none", "any"));
        assert_eq!(one.weight.of(None), Some(Severity::Info));
        assert!(two.not_when.starts_with("no setting") && two.set_now.starts_with("no setting"));
        assert_eq!((two.undo, two.since), (one.undo, "5.7"));
    }

    #[test]
    fn a_name_of_the_file_stands_for_its_text() {
        let rules = rules_of(TEXT, &[ONE, TWO]).unwrap();
        assert_eq!(rules[0].sources, ["kernel: Documentation/some.rst", "a paper"]);
    }

    #[test]
    fn each_rule_has_a_check_and_each_check_a_rule() {
        assert_eq!(rules_of(TEXT, &[ONE]).unwrap_err(), "two: no check");
        assert_eq!(
            rules_of(TEXT, &[ONE, TWO, THREE]).unwrap_err(),
            "three: a check without a rule"
        );
        let misspelt = "[[rule]]\nid = \"one\"\nwhy_not = \"it\"\n";
        let why = rules_of(misspelt, &[ONE]).unwrap_err();
        assert!(why.starts_with("the file of \"one\": ") && why.contains("why_not"), "{why}");
    }
}
