//! What measuring costs a host: its endpoint, and the connection that controls the endpoint.

use std::collections::BTreeMap;

use rxpath_core::number::{percent, si};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;

/// CPU time of an endpoint, and bytes over its control connection, in the window of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlCost {
    /// Time over which both were counted. **Unit** ns.
    pub span_ns: u64,
    /// CPU time of all threads of the endpoint, without the programs that it started. **Unit** ns.
    pub cpu_ns: u64,
    /// Bytes in both directions, before ssh encrypts them. **Unit** bytes.
    pub control_bytes: u64,
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

    /// For people: `0.4 % of a CPU, 210B/s`.
    pub fn text(&self) -> String {
        let cpu = percent(self.cpu_ratio(), 1);
        format!("{cpu} of a CPU, {}B/s", si(self.bytes_per_s().round()))
    }

    fn per_ns(&self, value: u64) -> f64 {
        if self.span_ns == 0 { 0.0 } else { value as f64 / self.span_ns as f64 }
    }

    fn add(&mut self, more: &Self) {
        self.span_ns += more.span_ns;
        self.cpu_ns += more.cpu_ns;
        self.control_bytes += more.control_bytes;
    }
}

impl Manifest {
    /// What measuring cost each host, by alias: the sum over the windows of all trials that are not void.
    pub fn control_costs(&self) -> BTreeMap<String, ControlCost> {
        let mut all: BTreeMap<String, ControlCost> = BTreeMap::new();
        let trials = self.trials.iter().filter(|trial| trial.void.is_none());
        for (alias, host) in trials.flat_map(|trial| &trial.hosts) {
            if let Some(cost) = &host.control {
                all.entry(alias.clone()).or_default().add(cost);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::HostTrial;
    use crate::manifest::Trial;

    #[test]
    fn what_measuring_cost_a_host_is_the_sum_of_the_windows_that_are_not_void() {
        let trial = |void: Option<&str>, cpu_ns| {
            let cost = ControlCost { span_ns: 1_000_000_000, cpu_ns, control_bytes: 210 };
            let host = HostTrial { control: Some(cost), ..HostTrial::default() };
            // An earlier version did not measure it.
            let hosts = [("gen1".to_owned(), HostTrial::default()), ("sut".to_owned(), host)];
            let void = void.map(str::to_owned);
            Trial { void, hosts: hosts.into(), ..Trial::default() }
        };
        let trials =
            vec![trial(None, 3_000_000), trial(Some("noise"), 900), trial(None, 5_000_000)];
        let costs = Manifest { trials, ..Manifest::default() }.control_costs();
        assert_eq!(costs.keys().collect::<Vec<_>>(), ["sut"]);
        assert_eq!(costs["sut"].text(), "0.4 % of a CPU, 210B/s");
        assert_eq!(ControlCost::default().text(), "0.0 % of a CPU, 0B/s");
    }
}
