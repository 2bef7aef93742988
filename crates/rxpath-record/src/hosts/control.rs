//! The cost of measuring on a host: its endpoint, and the connection that controls the endpoint.

use std::collections::BTreeMap;

use rxpath_core::CpuList;
use rxpath_core::number::{percent, si};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;

/// CPU time of an endpoint, its CPUs, and bytes over its control connection, in the window of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlCost {
    /// Time over which both were counted. **Unit** ns.
    pub span_ns: u64,
    /// CPU time of all threads of the endpoint, without the programs that it started. **Unit** ns.
    pub cpu_ns: u64,
    /// Bytes in both directions, before ssh encrypts them. **Unit** bytes.
    pub control_bytes: u64,
    /// CPUs on which threads of the endpoint were seen that had run, at most once a second; empty if the kernel has no
    /// scheduler statistics, and in runs of versions that did not look.
    #[serde(default, skip_serializing_if = "CpuList::is_empty")]
    pub cpus: CpuList,
}

/// By which device of a host its control connection comes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlPath {
    /// The device.
    pub device: String,
    /// It is the measured device, or both are on one device.
    pub is_measured: bool,
}

impl ControlPath {
    /// For people: `control over eno1, not the measured link`.
    pub fn text(&self) -> String {
        let is = if self.is_measured { "the measured link" } else { "not the measured link" };
        format!("control over {}, {is}", self.device)
    }
}

impl ControlCost {
    /// Share of one CPU that the endpoint took.
    pub fn cpu_ratio(&self) -> f64 {
        self.per_ns(self.cpu_ns)
    }

    /// **Unit** bytes/s.
    pub fn bytes_per_s(&self) -> f64 {
        self.per_ns(self.control_bytes) * 1e9
    }

    /// For people: `0.4 % of a CPU (CPUs 2-4), 210B/s`.
    pub fn text(&self) -> String {
        let cpu = percent(self.cpu_ratio(), 1);
        let cpus = match self.cpus.as_slice() {
            [] => String::new(),
            [one] => format!(" (CPU {one})"),
            _ => format!(" (CPUs {})", self.cpus),
        };
        format!("{cpu} of a CPU{cpus}, {}B/s", si(self.bytes_per_s().round()))
    }

    fn per_ns(&self, value: u64) -> f64 {
        if self.span_ns == 0 { 0.0 } else { value as f64 / self.span_ns as f64 }
    }

    fn add(&mut self, more: &Self) {
        self.span_ns += more.span_ns;
        self.cpu_ns += more.cpu_ns;
        self.control_bytes += more.control_bytes;
        let CpuList(cpus) = &mut self.cpus;
        cpus.extend(more.cpus.as_slice());
        cpus.sort_unstable();
        cpus.dedup();
    }
}

impl Manifest {
    /// The cost of measuring on each host, by alias: the sum over the windows of all trials that are not void.
    pub fn control_costs(&self) -> BTreeMap<String, ControlCost> {
        let mut all: BTreeMap<String, ControlCost> = BTreeMap::new();
        let trials = self.trials.iter().filter(|trial| trial.void.is_none());
        for (alias, host) in trials.flat_map(|trial| &trial.hosts) {
            if let Some(cost) = &host.endpoint_cost {
                all.entry(alias.clone()).or_default().add(cost);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use rxpath_core::PathSide;

    use super::*;
    use crate::hosts::HostTrial;
    use crate::manifest::{HostPart, Trial};

    #[test]
    fn what_measuring_cost_a_host_is_the_sum_of_the_windows_that_are_not_void() {
        let trial = |void: Option<&str>, cpu_ns, cpu| {
            let cpus = CpuList(vec![cpu]);
            let cost = ControlCost { span_ns: 1_000_000_000, cpu_ns, control_bytes: 210, cpus };
            let host = HostTrial { endpoint_cost: Some(cost), ..HostTrial::of(PathSide::Tx) };
            // An earlier version did not measure it.
            let hosts =
                [("gen1".to_owned(), HostTrial::of(PathSide::Tx)), ("sut".to_owned(), host)];
            let void = void.map(str::to_owned);
            Trial { void, hosts: hosts.into(), ..Trial::default() }
        };
        let void = trial(Some("noise"), 900, 0);
        let trials = vec![trial(None, 3_000_000, 3), void, trial(None, 5_000_000, 2)];
        let costs = Manifest { trials, ..Manifest::default() }.control_costs();
        assert_eq!(costs.keys().collect::<Vec<_>>(), ["sut"]);
        assert_eq!(costs["sut"].text(), "0.4 % of a CPU (CPUs 2,3), 210B/s");
        let one = ControlCost { cpus: CpuList(vec![7]), ..ControlCost::default() };
        assert_eq!(one.text(), "0.0 % of a CPU (CPU 7), 0B/s");
        assert_eq!(ControlCost::default().text(), "0.0 % of a CPU, 0B/s");
    }

    #[test]
    fn a_host_says_whether_its_control_connection_is_on_the_measured_link() {
        let of = |is_measured| {
            let control_path = Some(ControlPath { device: "eno1".into(), is_measured });
            HostPart { control_path, ..HostPart::of(PathSide::Tx) }.text()
        };
        assert!(of(false).contains("; control over eno1, not the measured link, round trip "));
        assert!(of(true).contains("; control over eno1, the measured link, round trip "));
        assert!(HostPart::of(PathSide::Tx).text().contains("; control round trip "));
    }
}
