//! Many hosts at once: which findings are common, and which host is not like the others of its kind.
//!
//! The question it answers: *of hosts that should be alike, which one is not, and in what?* The input is what
//! `rxpath check --json` printed on each host. Hosts are alike when they have a NIC of the same driver and firmware
//! under the same kernel. [`directory`] reads the files; all else takes bytes, from as many threads as the caller likes.

pub mod directory;
mod group;
mod kinds;
mod report;

pub use group::{Difference, HostGroup, OddHost};
pub use kinds::{Driver, Version};
pub use report::{Bad, HostReport, Ids, parse};

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::{SortFew, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::weight::{Magnitude, Severity};

/// How common a finding is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommonFinding {
    /// The rule.
    pub id: String,
    /// The worst severity that a host had.
    pub severity: Severity,
    /// The largest effect that a host's advice has.
    pub effect_size: Magnitude,
    /// Hosts that have it.
    pub hosts_count: u64,
    /// How often it was found, a host's devices counted singly.
    pub findings_count: u64,
}

/// A file that holds no report that can be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct BadFile {
    /// Its path below the directory.
    pub file: String,
    /// What is wrong with it.
    pub why: String,
}

/// What many reports say together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Reports that were read.
    pub hosts_count: u64,
    /// Hosts without a finding.
    pub clean_hosts_count: u64,
    /// Findings of all hosts.
    pub findings_count: u64,
    /// Goals that the hosts were judged for; `any` is none. Several make counts that cannot be compared.
    pub goals: BTreeMap<String, u64>,
    /// Findings, those of the most hosts first.
    pub findings: Vec<CommonFinding>,
    /// Hosts of one driver, firmware and kernel, the largest group first; in each the odd one out comes first.
    pub groups: Vec<HostGroup>,
    /// Firmware and kernel versions by driver, the rarest version first.
    pub drivers: Vec<Driver>,
    /// Files that could not be used, by name.
    pub bad_files: Vec<BadFile>,
}

impl Summary {
    /// What makes it less than it seems: files that could not be used, and hosts that were judged for different goals.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if !self.bad_files.is_empty() {
            let count = self.bad_files.len();
            let named: Vec<String> = self
                .bad_files
                .iter()
                .take(5)
                .map(|bad| format!("{}: {}", bad.file, bad.why))
                .collect();
            let more = if count > named.len() { ", ..." } else { "" };
            let text = format!("{count} files could not be used: {}{more}", named.join(", "));
            warnings.push(
                Warning::new("bad-reports", text)
                    .cure("run `rxpath check --json` again on those hosts"),
            );
        }
        if self.goals.len() > 1 {
            let goals: Vec<String> =
                self.goals.iter().map(|(goal, n)| format!("{n} for {goal}")).collect();
            warnings.push(
                Warning::new(
                    "mixed-goals",
                    format!("hosts were judged for different goals: {}", goals.join(", ")),
                )
                .because("a finding for one goal may be none for another")
                .cure("check all hosts with the same --goal"),
            );
        }
        warnings
    }
}

/// The reports that one reader has taken in.
#[derive(Debug, Default)]
pub struct Fleet {
    hosts: Vec<(String, HostReport)>,
    bad: Vec<BadFile>,
    ids: Ids,
}

impl Fleet {
    /// Takes in the content of a file; `name` stands for the host.
    pub fn add(&mut self, name: &str, content: &[u8]) {
        match parse(content, &mut self.ids) {
            Ok(report) => self.hosts.push((name.to_owned(), report)),
            Err(bad) => self.bad(name, bad.to_string()),
        }
    }

    /// Notes a file that could not even be read.
    pub fn bad(&mut self, name: &str, why: String) {
        self.bad.push(BadFile { file: name.to_owned(), why });
    }

    /// Takes over what another reader has.
    pub fn merge(&mut self, other: Self) {
        self.hosts.extend(other.hosts);
        self.bad.extend(other.bad);
    }

    /// Whether there is no report.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// What they say together; the same for the same reports, in whatever order they came.
    pub fn summary(mut self) -> Summary {
        self.hosts.sort_few_by(|a, b| a.0.cmp(&b.0));
        self.bad.sort_unstable();
        let mut goals: BTreeMap<String, u64> = BTreeMap::new();
        for (_, host) in &self.hosts {
            *goals.entry(host.goal.clone().unwrap_or_else(|| "any".into())).or_default() += 1;
        }
        let clean = self.hosts.iter().filter(|(_, host)| host.findings.is_empty());
        Summary {
            hosts_count: self.hosts.len() as u64,
            clean_hosts_count: clean.count() as u64,
            findings_count: self.hosts.iter().map(|(_, host)| host.findings.len() as u64).sum(),
            goals,
            findings: common(&self.hosts),
            groups: group::all(&self.hosts),
            drivers: kinds::all(&self.hosts),
            bad_files: self.bad,
        }
    }
}

fn common(hosts: &[(String, HostReport)]) -> Vec<CommonFinding> {
    let mut seen: BTreeMap<&str, CommonFinding> = BTreeMap::new();
    for (_, host) in hosts {
        let mut ids = BTreeSet::new();
        for finding in &host.findings {
            let one = seen.entry(&finding.id).or_insert_with(|| CommonFinding {
                id: finding.id.to_string(),
                severity: finding.severity,
                effect_size: finding.effect_size,
                hosts_count: 0,
                findings_count: 0,
            });
            one.severity = one.severity.max(finding.severity);
            one.effect_size = one.effect_size.max(finding.effect_size);
            one.findings_count += 1;
            // A host counts once, however many devices of it have the finding.
            one.hosts_count += u64::from(ids.insert(&finding.id));
        }
    }
    let mut all: Vec<CommonFinding> = seen.into_values().collect();
    all.sort_few_by_key(|one| std::cmp::Reverse((one.hosts_count, one.severity, one.effect_size)));
    all
}

#[cfg(test)]
mod tests;
