//! Which firmware and kernel the hosts of each driver run, the rare ones first.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::SortFew;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::HostReport;

/// A version that so few hosts run names them.
const NAMED: usize = 5;

/// A driver and what runs with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Driver {
    /// Its name; empty for hosts without a NIC.
    pub driver: String,
    /// Hosts with a NIC of it.
    pub hosts_count: u64,
    /// Its firmware versions, the rarest first.
    pub firmwares: Vec<Version>,
    /// Kernels, the rarest first.
    pub kernels: Vec<Version>,
}

/// A version and who runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// The version; empty when it is not reported.
    pub version: String,
    /// Hosts that run it.
    pub hosts_count: u64,
    /// Their names, when they are five or fewer and others run another version.
    pub hosts: Vec<String>,
}

#[derive(Default)]
struct Seen<'a> {
    hosts: BTreeSet<&'a str>,
    firmwares: BTreeMap<&'a str, BTreeSet<&'a str>>,
    kernels: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

/// All drivers, that of the most hosts first.
pub(super) fn all(hosts: &[(String, HostReport)]) -> Vec<Driver> {
    let mut drivers: BTreeMap<&str, Seen<'_>> = BTreeMap::new();
    for (name, report) in hosts {
        let nics = report.devices.iter().map(|nic| (nic.driver.as_str(), nic.firmware.as_str()));
        let none = report.devices.is_empty().then_some(("", ""));
        for (driver, firmware) in nics.chain(none) {
            let seen = drivers.entry(driver).or_default();
            seen.hosts.insert(name);
            seen.firmwares.entry(firmware).or_default().insert(name);
            seen.kernels.entry(&report.kernel).or_default().insert(name);
        }
    }
    let mut all: Vec<Driver> = drivers
        .into_iter()
        .map(|(driver, seen)| Driver {
            driver: driver.to_owned(),
            hosts_count: seen.hosts.len() as u64,
            firmwares: versions(seen.firmwares),
            kernels: versions(seen.kernels),
        })
        .collect();
    all.sort_few_by_key(|driver| std::cmp::Reverse(driver.hosts_count));
    all
}

fn versions(seen: BTreeMap<&str, BTreeSet<&str>>) -> Vec<Version> {
    let is_mixed = seen.len() > 1;
    let mut all: Vec<Version> = seen
        .into_iter()
        .map(|(version, hosts)| Version {
            version: version.to_owned(),
            hosts_count: hosts.len() as u64,
            hosts: if is_mixed && hosts.len() <= NAMED {
                hosts.into_iter().map(str::to_owned).collect()
            } else {
                Vec::new()
            },
        })
        .collect();
    all.sort_few_by_key(|version| version.hosts_count);
    all
}
