//! Which CPUs may serve a device's queues, and how its interrupts spread over them.
//!
//! One model for all rules that place work on CPUs, so that they never contradict each other. A CPU serves when it is
//! online and keeps house: neither isolated (`isolcpus=`) nor without a tick (`nohz_full=`). CPUs of the device's own
//! NUMA node come first and alone where there are any; of a core, its first thread comes before the second.
//!
//! **Source** Documentation/admin-guide/kernel-parameters.txt (isolcpus, nohz_full), Documentation/networking/scaling.rst
//! (Suggested Configuration of RSS and RPS).

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::{CpuList, Fact, IntoMap};
use rxpath_host::read::topology::CpuTopology;

use super::{Device, Gap, HostFacts, Irq, RequiredFact};

/// The CPUs that may serve a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Best first.
    pub cpus: Vec<u32>,
    /// CPUs kept from such work: isolated or without a tick.
    pub kept_free: BTreeSet<u32>,
    /// The node that all of `cpus` are on; `None` when the device's node is not known or has none of them.
    pub node: Option<u32>,
}

/// CPUs that are kept from work for the whole host; a kernel without `nohz_full` was built without it.
fn kept_free(topology: &CpuTopology) -> Result<BTreeSet<u32>, Gap> {
    let isolated = (&topology.isolated).known()?;
    let without_tick = match &topology.nohz_full {
        Fact::Absent { .. } => &CpuList::default(),
        told => told.known()?,
    };
    Ok(isolated.as_slice().iter().chain(without_tick.as_slice()).copied().collect())
}

/// CPUs that may do work for the whole host, in the order of their numbers: all that are online where every CPU is kept
/// free.
pub fn host_wide(topology: &CpuTopology) -> Result<Vec<u32>, Gap> {
    let kept = kept_free(topology)?;
    let online = topology.online.as_slice();
    let keeping: Vec<u32> = online.iter().copied().filter(|cpu| !kept.contains(cpu)).collect();
    Ok(if keeping.is_empty() { online.to_vec() } else { keeping })
}

impl HostFacts {
    /// The CPUs that may serve the queues of this device.
    pub fn serving(&self, device: &Device) -> Result<Serving, Gap> {
        let topology = (&self.topology).known()?;
        let all = host_wide(topology)?;
        let node =
            device.sysfs.steering.numa_node.value().and_then(|node| u32::try_from(*node).ok());
        let on = |cpu: &u32| topology.cpu(*cpu).and_then(|cpu| cpu.node.value().copied());
        let near: Vec<u32> =
            all.iter().copied().filter(|cpu| node.is_some() && on(cpu) == node).collect();
        let (cpus, node) = if near.is_empty() { (all, None) } else { (near, node) };
        Ok(Serving { cpus: cores_first(topology, cpus), kept_free: kept_free(topology)?, node })
    }
}

/// One thread of each core before the others.
fn cores_first(topology: &CpuTopology, cpus: Vec<u32>) -> Vec<u32> {
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    let mut ranked: Vec<(usize, u32)> = cpus
        .into_iter()
        .map(|cpu| {
            let siblings = topology.cpu(cpu).and_then(|one| one.siblings.value());
            let core = siblings.and_then(|all| all.as_slice().iter().min().copied());
            let threads = seen.entry(core.unwrap_or(cpu)).or_default();
            *threads += 1;
            (*threads, cpu)
        })
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, cpu)| cpu).collect()
}

impl Serving {
    /// As a mask of sysfs.
    pub fn mask(&self) -> String {
        CpuList(self.cpus.clone()).to_mask()
    }

    /// How many of so many queues one CPU takes when they are spread evenly.
    pub fn fair(&self, queues: usize) -> usize {
        queues.div_ceil(self.cpus.len().max(1))
    }

    /// A CPU for each interrupt: where it goes already when that CPU serves and has no more than its share, else the one
    /// that its driver suggests, else the CPU that has the least, the best first.
    ///
    /// `goes` tells where each interrupt goes now. What comes out depends on nothing else, so that two rules that move
    /// interrupts of one device want the same.
    pub fn spread(&self, goes: &[(Irq, Vec<u32>)]) -> Vec<u32> {
        let fair = self.fair(goes.len());
        let mut taken: BTreeMap<u32, usize> = self.cpus.iter().map(|cpu| (*cpu, 0)).into_map();
        let mut take = |cpu: u32, most: usize| {
            let count = taken.get_mut(&cpu).filter(|count| **count < most)?;
            *count += 1;
            Some(cpu)
        };
        let mut placed: Vec<Option<u32>> = Vec::with_capacity(goes.len());
        for (_, at) in goes {
            placed.push(if let [cpu] = at.as_slice() { take(*cpu, fair) } else { None });
        }
        let open = |place: &Option<u32>| place.is_none();
        for ((irq, _), place) in goes.iter().zip(&mut placed).filter(|(_, place)| open(place)) {
            if let Some([cpu]) = irq.masks.hint_cpus.value().map(CpuList::as_slice) {
                *place = take(*cpu, fair);
            }
        }
        for place in placed.iter_mut().filter(|place| open(place)) {
            // The first of those with the least: `cpus` is in the order of preference.
            *place = (1..=fair).find_map(|most| self.cpus.iter().find_map(|cpu| take(*cpu, most)));
        }
        placed.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rxpath_host::read::sysfs::irq::Masks;

    use super::*;

    fn irq(number: u32) -> Irq {
        let gap = || Fact::absent("not read");
        let masks = Masks {
            allowed_cpus: gap(),
            effective_cpus: gap(),
            hint_cpus: gap(),
            node: Fact::absent("not read"),
        };
        Irq { number, about: String::new(), taken_total: 0, masks, queue: Some(number) }
    }

    fn goes(cpus: &[u32]) -> Vec<(Irq, Vec<u32>)> {
        cpus.iter().enumerate().map(|(at, cpu)| (irq(at as u32), vec![*cpu])).collect()
    }

    fn serving(cpus: &[u32]) -> Serving {
        Serving { cpus: cpus.to_vec(), kept_free: BTreeSet::new(), node: None }
    }

    #[test]
    fn an_interrupt_that_is_well_placed_stays() {
        assert_eq!(serving(&[0, 1, 8, 9]).spread(&goes(&[0, 1, 2, 3])), [0, 1, 8, 9]);
        assert_eq!(serving(&[0, 1, 2, 3]).spread(&goes(&[3, 3, 3, 0])), [3, 1, 2, 0]);
        assert_eq!(serving(&[0, 1]).spread(&goes(&[2, 3, 1, 0])), [0, 1, 1, 0]);
    }

    proptest! {
        /// No CPU takes more than its share, every interrupt has a CPU that serves, and a second pass moves nothing.
        #[test]
        fn a_spread_is_even_and_stays(
            cpus in proptest::collection::btree_set(0u32..64, 1..16),
            at in proptest::collection::vec(0u32..64, 0..64),
        ) {
            let serving = serving(&cpus.iter().copied().collect::<Vec<_>>());
            let placed = serving.spread(&goes(&at));
            prop_assert_eq!(placed.len(), at.len());
            let fair = serving.fair(at.len());
            for cpu in &placed {
                prop_assert!(cpus.contains(cpu));
                prop_assert!(placed.iter().filter(|other| *other == cpu).count() <= fair);
            }
            prop_assert_eq!(serving.spread(&goes(&placed)), placed);
        }
    }
}
