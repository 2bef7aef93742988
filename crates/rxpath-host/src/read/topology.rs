//! Which CPUs there are and what they share: cores, SMT siblings, NUMA nodes, last-level caches.
//!
//! **Source** `/sys/devices/system/cpu` (Documentation/ABI/stable/sysfs-devices-system-cpu) and
//! `/sys/devices/system/node`.

use std::collections::BTreeSet;

use rxpath_core::{CpuList, Fact};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{fact, parts_of};
use crate::{HostError, Root};

const CPU: &str = "/sys/devices/system/cpu";

/// More cache levels than any CPU lists (`index0` to `index3` today).
const MAX_CACHES: usize = 16;

/// The machine's CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuTopology {
    /// CPUs that run.
    pub online: CpuList,
    /// CPUs that could ever be there: the length of per-CPU tables.
    pub possible: Fact<CpuList>,
    /// CPUs kept from the scheduler's balancing (`isolcpus=`).
    pub isolated: Fact<CpuList>,
    /// CPUs without a tick while one task runs (`nohz_full=`).
    pub nohz_full: Fact<CpuList>,
    /// Each online CPU.
    pub cpus: Vec<Cpu>,
}

/// One online CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// Its number.
    pub cpu: u32,
    /// Socket.
    pub package: Fact<i32>,
    /// Core number within its package.
    pub core: Fact<i32>,
    /// CPUs of the same core, itself included: SMT siblings.
    pub siblings: Fact<CpuList>,
    /// NUMA node.
    pub node: Fact<u32>,
    /// CPUs that share its last-level cache, itself included.
    pub llc_cpus: Fact<CpuList>,
    /// Size of its last-level cache, in bytes.
    pub llc_bytes: Fact<u64>,
}

/// How near two CPUs are, the nearest first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// The same CPU.
    Same,
    /// SMT siblings: one core.
    Sibling,
    /// Different cores, one last-level cache.
    Cache,
    /// One NUMA node, no shared cache.
    Node,
    /// Different NUMA nodes.
    Remote,
}

impl CpuTopology {
    /// The entry of `cpu`, when it is online.
    pub fn cpu(&self, cpu: u32) -> Option<&Cpu> {
        self.cpus.iter().find(|entry| entry.cpu == cpu)
    }

    /// How near two online CPUs are; `None` when one is not online or the host does not tell.
    pub fn distance(&self, a: u32, b: u32) -> Option<Distance> {
        let (first, second) = (self.cpu(a)?, self.cpu(b)?);
        if a == b {
            return Some(Distance::Same);
        }
        let shares = |fact: &Fact<CpuList>| fact.value().map(|cpus| cpus.as_slice().contains(&b));
        if shares(&first.siblings) == Some(true) {
            return Some(Distance::Sibling);
        }
        if shares(&first.llc_cpus) == Some(true) {
            return Some(Distance::Cache);
        }
        match (first.node.value(), second.node.value()) {
            (Some(one), Some(other)) if one == other => Some(Distance::Node),
            (Some(_), Some(_)) => Some(Distance::Remote),
            // A kernel without NUMA has one node.
            _ if first.node.gap().is_some() && first.llc_cpus.value().is_some() => {
                Some(Distance::Node)
            }
            _ => None,
        }
    }

    /// Number of different cores among the online CPUs, when every CPU tells its siblings.
    pub fn cores(&self) -> Option<usize> {
        let first = |cpu: &Cpu| {
            Some(cpu.siblings.value()?.as_slice().iter().min().copied().unwrap_or(cpu.cpu))
        };
        let firsts: Option<BTreeSet<u32>> = self.cpus.iter().map(first).collect();
        firsts.map(|firsts| firsts.len())
    }
}

/// Reads the topology.
///
/// **Errors** only when the list of online CPUs can't be read; all else is a fact or a gap.
pub fn read(root: &Root) -> Result<CpuTopology, HostError> {
    let online = root.cpus(&format!("{CPU}/online"))?;
    let nodes = nodes(root);
    let cpus = online.as_slice().iter().map(|cpu| one(root, *cpu, &nodes)).collect();
    Ok(CpuTopology {
        possible: fact(root.cpus(&format!("{CPU}/possible"))),
        isolated: fact(root.cpus(&format!("{CPU}/isolated"))),
        nohz_full: fact(nohz_full(root)),
        online,
        cpus,
    })
}

/// `nohz_full` holds `(null)` when the kernel can do it and was not asked to.
fn nohz_full(root: &Root) -> Result<CpuList, HostError> {
    let path = format!("{CPU}/nohz_full");
    if root.value(&path)? == "(null)" { Ok(CpuList::default()) } else { root.cpus(&path) }
}

type Nodes = Result<Vec<(u32, CpuList)>, HostError>;

fn nodes(root: &Root) -> Nodes {
    const NODE: &str = "/sys/devices/system/node";
    let numbers = root.cpus(&format!("{NODE}/online"))?;
    numbers
        .as_slice()
        .iter()
        .map(|node| Ok((*node, root.cpus(&format!("{NODE}/node{node}/cpulist"))?)))
        .collect()
}

fn one(root: &Root, cpu: u32, nodes: &Nodes) -> Cpu {
    let topology = format!("{CPU}/cpu{cpu}/topology");
    // `core_cpus_list` has been the name since 5.3; `thread_siblings_list` is the old one.
    let siblings = root
        .cpus(&format!("{topology}/core_cpus_list"))
        .or_else(|_| root.cpus(&format!("{topology}/thread_siblings_list")));
    let node = parts_of(nodes).and_then(|nodes| {
        let own = nodes.iter().find(|(_, cpus)| cpus.as_slice().contains(&cpu));
        Fact::of(own.map(|(node, _)| *node), "in no node's CPU list")
    });
    let no_cache = || HostError::Missing { path: format!("{CPU}/cpu{cpu}/cache").into() };
    let llc = fact(last_cache(root, cpu).ok_or_else(no_cache));
    Cpu {
        cpu,
        package: fact(root.number(&format!("{topology}/physical_package_id"))),
        core: fact(root.number(&format!("{topology}/core_id"))),
        siblings: fact(siblings),
        node,
        llc_cpus: llc.as_ref().and_then(|dir| fact(root.cpus(&format!("{dir}/shared_cpu_list")))),
        llc_bytes: llc.and_then(|dir| fact(cache_bytes(root, &format!("{dir}/size")))),
    }
}

/// The directory of the cache with the highest level.
fn last_cache(root: &Root, cpu: u32) -> Option<String> {
    let dir = format!("{CPU}/cpu{cpu}/cache");
    let names = root.list(&dir).ok()?;
    names
        .iter()
        .filter(|name| name.starts_with("index"))
        .take(MAX_CACHES)
        .filter_map(|name| {
            let index = format!("{dir}/{name}");
            Some((root.number::<u32>(&format!("{index}/level")).ok()?, index))
        })
        .max()
        .map(|(_, index)| index)
}

fn cache_bytes(root: &Root, path: &str) -> Result<u64, HostError> {
    let text = root.value(path)?;
    let (digits, unit) = text.split_at(text.len() - usize::from(text.ends_with(['K', 'M', 'G'])));
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => 0,
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| HostError::malformed(root.path(path), 1, "no cache size such as 512K"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Two packages, two cores each, two threads a core: CPU n and n+4 are siblings.
    fn big(dir: &std::path::Path) -> Root {
        let put = |path: String, text: String| {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text + "\n").unwrap();
        };
        put("sys/devices/system/cpu/online".into(), "0-7".into());
        put("sys/devices/system/cpu/nohz_full".into(), "(null)".into());
        put("sys/devices/system/node/online".into(), "0-1".into());
        put("sys/devices/system/node/node0/cpulist".into(), "0-1,4-5".into());
        put("sys/devices/system/node/node1/cpulist".into(), "2-3,6-7".into());
        for cpu in 0..8 {
            let base = format!("sys/devices/system/cpu/cpu{cpu}");
            put(format!("{base}/topology/physical_package_id"), (cpu % 4 / 2).to_string());
            put(format!("{base}/topology/core_id"), (cpu % 2).to_string());
            put(
                format!("{base}/topology/thread_siblings_list"),
                format!("{},{}", cpu % 4, cpu % 4 + 4),
            );
            put(format!("{base}/cache/index2/level"), "2".into());
            put(format!("{base}/cache/index3/level"), "3".into());
            put(format!("{base}/cache/index3/size"), "32768K".into());
            let shared = if cpu % 4 < 2 { "0-1,4-5" } else { "2-3,6-7" };
            put(format!("{base}/cache/index3/shared_cpu_list"), shared.into());
        }
        Root::tree(dir).unwrap()
    }

    #[test]
    fn distances_follow_what_is_shared() {
        let dir = tempfile::tempdir().unwrap();
        let topology = read(&big(dir.path())).unwrap();
        assert_eq!(topology.cores(), Some(4));
        assert_eq!(topology.distance(1, 1), Some(Distance::Same));
        assert_eq!(topology.distance(1, 5), Some(Distance::Sibling));
        assert_eq!(topology.distance(0, 1), Some(Distance::Cache));
        assert_eq!(topology.distance(0, 2), Some(Distance::Remote));
        assert_eq!(topology.distance(0, 9), None);
        assert_eq!(topology.cpu(2).unwrap().llc_bytes, Fact::ok(32 << 20));
        assert_eq!(topology.nohz_full, Fact::ok(CpuList::default()));
        assert!(topology.isolated.gap().is_some(), "not in this tree");
    }

    #[test]
    fn a_host_that_tells_little_has_gaps() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sys/devices/system/cpu")).unwrap();
        fs::write(dir.path().join("sys/devices/system/cpu/online"), "0-1\n").unwrap();
        let topology = read(&Root::tree(dir.path()).unwrap()).unwrap();
        assert_eq!(topology.cores(), None);
        assert_eq!(topology.distance(0, 1), None);
        assert!(topology.cpus[0].llc_bytes.gap().unwrap().contains("cpu0/cache"));
    }

    #[test]
    fn this_host_has_a_topology() {
        let topology = read(&Root::host()).unwrap();
        assert_eq!(topology.cpus.len(), topology.online.as_slice().len());
    }
}
