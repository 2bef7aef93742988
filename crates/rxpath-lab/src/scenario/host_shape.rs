//! The CPUs of a host as far as placing threads needs to know them.

use rxpath_core::{CpuList, Fact};
use rxpath_host::read::thread;
use rxpath_host::read::topology::{self, CpuTopology};
use rxpath_host::{HostError, Root};
use serde::{Deserialize, Serialize};

use super::offers::Offers;
use super::power::Power;

/// The online CPUs of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostShape {
    /// One entry per online CPU, in the order of their numbers.
    pub cpus: Vec<CpuShape>,
    /// What of its power management an experiment may depend on.
    pub power: Power,
    /// What its kernel and tools lack.
    pub offers: Offers,
    /// NUMA node of the network card that an experiment uses, where there is one and the kernel says it.
    #[serde(default)]
    pub card_node: Option<u32>,
}

/// One online CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuShape {
    /// Its number.
    pub cpu: u32,
    /// A number equal for the SMT siblings of one core and different for every other core of the host.
    pub core: u32,
    /// NUMA node; 0 where the kernel has none.
    pub node: u32,
    /// A number equal for the CPUs that share one last-level cache; `None` when it is not known.
    pub l3: Option<u32>,
    /// Whether this process may run on it (its cpuset and affinity).
    pub allowed: bool,
}

impl HostShape {
    /// The shape of a host whose topology was read; `allowed` are the CPUs this process may run on.
    ///
    /// A host that does not tell its siblings, nodes or caches counts as one without them.
    pub fn of(topology: &CpuTopology, allowed: &CpuList) -> Self {
        let first = |list: &Fact<CpuList>| list.value()?.as_slice().iter().min().copied();
        let shape = |cpu: &rxpath_host::read::topology::Cpu| CpuShape {
            cpu: cpu.cpu,
            core: first(&cpu.siblings).unwrap_or(cpu.cpu),
            node: cpu.node.value().copied().unwrap_or(0),
            l3: first(&cpu.llc_cpus),
            allowed: allowed.as_slice().contains(&cpu.cpu),
        };
        Self { cpus: topology.cpus.iter().map(shape).collect(), ..Self::default() }
    }

    /// This host, with its power management and what its kernel and tools lack.
    pub fn here(root: &Root) -> Result<Self, HostError> {
        let shape = Self::of(&topology::read(root)?, &thread::allowed_cpus()?);
        Ok(Self { power: Power::read(root), offers: Offers::read(root), ..shape })
    }

    /// A host of `count` cores without SMT on one node with one cache.
    pub fn flat(count: u32) -> Self {
        let cpu = |cpu| CpuShape { cpu, core: cpu, node: 0, l3: Some(0), allowed: true };
        Self { cpus: (0..count).map(cpu).collect(), ..Self::default() }
    }
}
