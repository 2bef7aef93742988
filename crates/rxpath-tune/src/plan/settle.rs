//! What rules want, one after the other: each is asked about the host as the plan so far would make it.
//!
//! Two rules may each be right about the host as it is and wrong together: more channels and RPS for the one that there is.
//! So the first change is made in a model of the host, and the rules are asked again.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_host::{Group, Knob, Target};

use super::LeftOut;
use crate::check::check;
use crate::facts::HostFacts;
use crate::finding::Finding;
use crate::knob::Set;
use crate::rule::Ask;
use crate::weight::Goal;

/// More rounds than a host has findings with changes: a bound for rules that would never end.
const MAX_ROUNDS: usize = 500;

/// The findings whose changes agree with each other.
#[derive(Debug, Default)]
pub struct CompatibleFindings {
    /// In the order in which they are to be made; those without a change last.
    pub findings: Vec<Finding>,
    /// Changes that another finding's change rules out, and what the rules find once all are made.
    pub left_out: Vec<LeftOut>,
}

type Place = (String, Option<String>);

fn place(finding: &Finding) -> Place {
    (finding.id.clone(), finding.device.clone())
}

/// Steps that recreate queues come first: all settings of queues depend on them.
fn makes_queues(finding: &Finding) -> bool {
    let is_channels =
        |target: &Target| matches!(target, Target::Group { group: Group::Channels, .. });
    finding.changes.iter().any(|set| is_channels(&set.knob.target))
}

/// Asks the rules until none wants a change that is not made.
///
/// `ids` keeps to these rules; empty takes all.
pub fn settle(facts: &HostFacts, goal: Option<Goal>, ids: &[String]) -> CompatibleFindings {
    let is_wanted = |finding: &&Finding| ids.is_empty() || ids.contains(&finding.id);
    let first = check(&Ask { facts, goal }).findings;
    let known: BTreeSet<Place> = first.iter().map(place).collect();
    let mut settled = CompatibleFindings::default();
    let mut made: BTreeMap<Knob, String> = BTreeMap::new();
    let mut done: BTreeSet<Place> = BTreeSet::new();
    let (mut host, mut found) = (facts.clone(), first.clone());
    for _ in 0..MAX_ROUNDS {
        let mut open = found
            .iter()
            .filter(is_wanted)
            .filter(|one| !one.changes.is_empty() && !done.contains(&place(one)));
        let Some(next) = open.clone().find(|one| makes_queues(one)).or_else(|| open.next()) else {
            break;
        };
        let mut next = next.clone();
        done.insert(place(&next));
        let (agreed, against): (Vec<Set>, Vec<Set>) =
            next.changes.drain(..).partition(|set| !made.contains_key(&set.knob));
        settled.left_out.extend(against.iter().map(|set| {
            let what = format!("{}: {set}", next.subject());
            LeftOut::new(what, format!("{} sets another value", made[&set.knob]))
        }));
        if agreed.is_empty() {
            continue;
        }
        host = host.planned(&agreed);
        made.extend(agreed.iter().map(|set| (set.knob.clone(), next.id.clone())));
        next.changes = agreed;
        settled.findings.push(next);
        found = check(&Ask { facts: &host, goal }).findings;
    }
    let news =
        found.iter().filter(|one| !known.contains(&place(one)) && !done.contains(&place(one)));
    settled.left_out.extend(news.map(|one| {
        let why = format!("found once the plan is applied: {}", one.observed);
        LeftOut::new(one.subject(), why)
    }));
    settled.findings.extend(first.into_iter().filter(|one| one.changes.is_empty()));
    settled
}
