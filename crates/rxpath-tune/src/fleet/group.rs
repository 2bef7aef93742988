//! Hosts of one kind, and how far each is from the others.
//!
//! A finding that most of a group has is what is usual there. A host's distance is the sum over all findings in which
//! it differs from what is usual: for one that it has alone the share of hosts without it, for one that it lacks the
//! share of hosts with it. The host with the largest distance is the odd one out.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use rxpath_core::SortFew;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::HostReport;

/// Fewer hosts have no majority.
const FEWEST: usize = 3;

/// Odd hosts of a group that are named.
const MOST_ODD: usize = 20;

/// Differences of a host that are named, the clearest first.
const MOST_DIFFERENCES: usize = 20;

/// Hosts with a NIC of one driver and firmware under one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostGroup {
    /// The driver; empty for hosts without a NIC.
    pub driver: String,
    /// The firmware, as the driver tells it; empty when it tells none.
    pub firmware: String,
    /// The kernel; empty when the report does not tell.
    pub kernel: String,
    /// Hosts of the group.
    pub hosts_count: u64,
    /// Hosts that differ from what is usual in the group; 0 in a group of one or two.
    pub odd_hosts_count: u64,
    /// The 20 that differ the most, the odd one out first.
    pub odd_hosts: Vec<OddHost>,
    /// Findings that more than half of the group has.
    pub usual_findings: Vec<String>,
}

/// A host that is not like the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OddHost {
    /// Its file below the directory, without `.json`.
    pub host: String,
    /// How far it is from what is usual: about the number of findings in which it stands alone.
    pub distance: f64,
    /// In what it differs, the clearest first.
    pub differences: Vec<Difference>,
}

/// A finding in which a host differs from most others of its group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The rule.
    pub id: String,
    /// It has the finding; else it is one of the few without it.
    pub has_it: bool,
    /// Hosts of the group that have it.
    pub hosts_count: u64,
}

/// A host in a group: its name and the findings about it and its NICs of that kind.
struct Member<'a> {
    host: &'a str,
    ids: BTreeSet<&'a str>,
}

type Key<'a> = (&'a str, &'a str, &'a str);

/// All groups, the largest first; one with odd hosts before one of the same size without.
pub(super) fn all(hosts: &[(String, HostReport)]) -> Vec<HostGroup> {
    let mut groups: BTreeMap<Key<'_>, Vec<Member<'_>>> = BTreeMap::new();
    for (name, report) in hosts {
        for (key, ids) in memberships(report) {
            groups.entry(key).or_default().push(Member { host: name, ids });
        }
    }
    let mut groups: Vec<HostGroup> =
        groups.iter().map(|(key, members)| one(*key, members)).collect();
    groups.sort_few_by_key(|group| std::cmp::Reverse((group.hosts_count, group.odd_hosts_count)));
    groups
}

/// The groups of a host with the findings that count in each: its own, and those of its NICs of that kind.
fn memberships(report: &HostReport) -> BTreeMap<Key<'_>, BTreeSet<&str>> {
    let kernel = report.kernel.as_str();
    let mut own: BTreeMap<Key<'_>, BTreeSet<&str>> = BTreeMap::new();
    for nic in &report.devices {
        own.entry((&nic.driver, &nic.firmware, kernel)).or_default();
    }
    if own.is_empty() {
        own.insert(("", "", kernel), BTreeSet::new());
    }
    for finding in &report.findings {
        match finding.device.and_then(|at| report.devices.get(at)) {
            Some(nic) => {
                own.entry((&nic.driver, &nic.firmware, kernel)).or_default().insert(&finding.id);
            }
            // A finding about a bridge or a tunnel says nothing about the kind of NIC.
            None if finding.is_of_device => {}
            None => {
                for ids in own.values_mut() {
                    ids.insert(&finding.id);
                }
            }
        }
    }
    own
}

fn one((driver, firmware, kernel): Key<'_>, members: &[Member<'_>]) -> HostGroup {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for member in members {
        for id in &member.ids {
            *counts.entry(id).or_default() += 1;
        }
    }
    let total = members.len() as u64;
    let mut usual: Vec<(&str, u64)> =
        counts.iter().map(|(id, n)| (*id, *n)).filter(|(_, n)| n * 2 > total).collect();
    usual.sort_unstable();
    let mut odd: Vec<(f64, &Member<'_>)> = Vec::new();
    if members.len() >= FEWEST {
        let share = |count: u64| count as f64 / total as f64;
        let all_usual: f64 = usual.iter().map(|(_, n)| share(*n)).sum();
        for member in members {
            let mut distance = all_usual;
            for id in &member.ids {
                let count = counts.get(id).copied().unwrap_or_default();
                match (count * 2).cmp(&total) {
                    Ordering::Greater => distance -= share(count),
                    Ordering::Less => distance += 1.0 - share(count),
                    Ordering::Equal => {}
                }
            }
            // Sums of shares do not cancel to the last bit.
            if distance > 1e-9 {
                odd.push((distance, member));
            }
        }
        odd.sort_few_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.host.cmp(b.1.host)));
    }
    let named = odd.iter().take(MOST_ODD).map(|(distance, member)| OddHost {
        host: member.host.to_owned(),
        distance: *distance,
        differences: differences(member, &counts, &usual, total),
    });
    HostGroup {
        hosts_count: total,
        odd_hosts_count: odd.len() as u64,
        odd_hosts: named.collect(),
        usual_findings: usual.iter().map(|(id, _)| (*id).to_owned()).collect(),
        driver: driver.to_owned(),
        firmware: firmware.to_owned(),
        kernel: kernel.to_owned(),
    }
}

fn differences(
    member: &Member<'_>,
    counts: &HashMap<&str, u64>,
    usual: &[(&str, u64)],
    total: u64,
) -> Vec<Difference> {
    let one = |others: u64, id: &str, has_it: bool, hosts_count: u64| {
        (others, Difference { id: id.to_owned(), has_it, hosts_count })
    };
    let extra = member.ids.iter().filter_map(|id| {
        let count = counts.get(id).copied().unwrap_or_default();
        (count * 2 < total).then(|| one(total - count, id, true, count))
    });
    let lacking = usual.iter().filter(|(id, _)| !member.ids.contains(id));
    let lacking = lacking.map(|(id, count)| one(*count, id, false, *count));
    let mut all: Vec<(u64, Difference)> = extra.chain(lacking).collect();
    all.sort_few_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.id.cmp(&b.1.id)));
    all.into_iter().take(MOST_DIFFERENCES).map(|(_, difference)| difference).collect()
}
