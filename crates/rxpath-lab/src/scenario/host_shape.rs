//! The CPUs of a host as far as placing threads needs to know them.

use serde::Serialize;

/// The online CPUs of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostShape {
    /// One entry per online CPU, in the order of their numbers.
    pub cpus: Vec<CpuShape>,
}

/// One online CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    /// A host of `count` cores without SMT on one node with one cache.
    pub fn flat(count: u32) -> Self {
        let cpu = |cpu| CpuShape { cpu, core: cpu, node: 0, l3: Some(0), allowed: true };
        Self { cpus: (0..count).map(cpu).collect() }
    }
}
