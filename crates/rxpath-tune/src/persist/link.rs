//! systemd.link(5): which key holds which value.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rxpath_host::{Group, Target};

use super::{Draft, Matching, NOTE, left, pairs};
use crate::plan::{LeftOut, Plan, PlanStep};
use crate::rule_file::table;

/// Keys of the `[Link]` section by group and name.
pub(crate) static KEYS: LazyLock<Vec<(Group, String, String)>> = LazyLock::new(|| {
    let all: BTreeMap<String, Vec<[String; 3]>> = table("persist/link");
    let of = |name: &str| Group::ALL.into_iter().find(|group| group.name() == name);
    let keys = all.into_values().flatten();
    keys.filter_map(|[group, name, key]| Some((of(&group)?, name, key))).collect()
});

/// A value as systemd writes it.
fn value(name: &str, value: &str) -> String {
    match value {
        "on" => "yes".into(),
        "off" => "no".into(),
        number if name.ends_with("-usecs") => format!("{number}us"),
        number if name == "speed" => format!("{number}M"),
        other => other.into(),
    }
}

fn lines(step: &PlanStep, group: Group) -> Vec<String> {
    let key = |name: &str| KEYS.iter().find(|(g, known, _)| *g == group && *known == name);
    let pairs = pairs(step);
    pairs
        .iter()
        .filter_map(|(name, v)| Some(format!("{}={}", key(name)?.2, value(name, v))))
        .collect()
}

/// One file for each device, and the steps that have no key.
pub(super) fn drafts(plan: &Plan, matching: &Matching) -> (Vec<Draft>, Vec<LeftOut>) {
    let (mut by_device, mut out) = (BTreeMap::<&str, Vec<String>>::new(), Vec::new());
    for step in &plan.steps {
        let Target::Group { dev, group } = &step.set else {
            out.push(left(step, "systemd.link has no key for it"));
            continue;
        };
        let found = lines(step, *group);
        if found.len() < pairs(step).iter().count() {
            let why = match group {
                Group::LinkModes => {
                    "systemd.link takes only the whole list of offered modes, Advertise="
                }
                _ => "systemd.link has no key for all of it",
            };
            out.push(left(step, why));
        }
        if !found.is_empty() {
            by_device.entry(dev).or_default().extend(found);
        }
    }
    let draft = |(dev, lines): (&str, Vec<String>)| {
        let (known_by, caution) = matching.line(dev);
        Draft {
            name: format!("10-rxpath-{dev}.link"),
            place: "/etc/systemd/network/",
            text: format!(
                "{NOTE}# Only the first .link file that matches is used: take over the names that the one in force gives\n\
                 # (networkctl status {dev}).\n\
                 [Match]\n{caution}{known_by}\n\n[Link]\nNamePolicy=keep kernel database onboard slot path\n{}\n",
                lines.join("\n")
            ),
        }
    };
    (by_device.into_iter().map(draft).collect(), out)
}

#[cfg(test)]
mod tests {
    use super::KEYS;
    use crate::rule_file::TEXTS;
    use crate::rules;

    /// A key that a rule tells people to write is one that a plan writes and a check reads.
    #[test]
    fn keys_that_rules_name_are_in_the_table() {
        let texts = rules::all().filter_map(|rule| rule.persist.split_once("systemd .link: "));
        let words = texts.flat_map(|(_, text)| text.split([' ', ';']));
        let named: Vec<&str> = words.filter_map(|word| Some(word.split_once('=')?.0)).collect();
        let unknown: Vec<&&str> =
            named.iter().filter(|name| KEYS.iter().all(|(_, _, key)| key != *name)).collect();
        assert!(named.len() > 12 && unknown.is_empty(), "{unknown:?} of {}", named.len());
    }
    #[test]
    fn each_row_names_a_group() {
        let rows = TEXTS.text("persist/link").lines().filter(|line| line.starts_with("    ["));
        assert_eq!(KEYS.len(), rows.count());
    }
}
