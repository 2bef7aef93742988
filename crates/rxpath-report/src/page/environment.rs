//! The host facts of the run, grouped by the first word of their names; gaps are shown as gaps.

use std::collections::BTreeMap;

use rxpath_core::Fact;
use rxpath_record::environment::RecordedFacts;

use super::settings::plain;
use crate::prelude::*;

/// The section, or nothing when the environment could not be read (the top of the page says so).
pub(super) fn section(run: &Run) -> Option<Section> {
    let environment = run.environment.as_ref()?;
    Some(Section {
        id: "environment",
        title: "Environment",
        lead: "Where it was measured. What could not be read is shown with its reason.",
        body: html! {
            @for (name, facts) in &environment.hosts {
                h3 { "Host " (name) }
                (gaps(facts))
                (host(facts))
            }
        },
    })
}

fn gaps(facts: &RecordedFacts) -> Markup {
    let gaps = facts.values().filter(|fact| fact.gap().is_some()).count();
    html! {
        p.quiet {
            (facts.len()) " facts were requested"
            @if gaps == 0 { "; all were read." } @else { "; " (gaps) " could not be read." }
        }
    }
}

fn host(facts: &RecordedFacts) -> Markup {
    let mut groups: BTreeMap<&str, Vec<(&str, &Fact<serde_json::Value>)>> = BTreeMap::new();
    for (name, fact) in facts {
        let (group, rest) = name.split_once('.').unwrap_or((name, name));
        groups.entry(group).or_default().push((rest, fact));
    }
    html! {
        div.facts {
            @for (group, facts) in &groups {
                section.group {
                    h4 { (group) }
                    dl {
                        @for (name, fact) in facts {
                            dt { (name) }
                            @match fact.value() {
                                Some(value) => dd { (plain(value)) },
                                None => dd.gap { (fact.gap().unwrap_or_default()) },
                            }
                        }
                    }
                }
            }
        }
    }
}
