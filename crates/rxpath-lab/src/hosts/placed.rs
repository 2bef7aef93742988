//! CPU roles on each host by its own shape.

use rxpath_core::{CpuList, PathSide};

use super::{ConnectedHost, Hosts};
use crate::scenario::spec::Variant;
use crate::scenario::{HostShape, cpus_on};

impl Hosts {
    /// The CPUs of a variant's program on a host of a side: as many as on the side's smallest host, so that all hosts have
    /// equal programs, and each by the host's own caches and nodes.
    pub fn cpus_on(&self, side: PathSide, index: usize, variant: &Variant) -> CpuList {
        let (key, resolved) = match side {
            PathSide::Tx => ("load.cpu", variant.load.cpus()),
            _ => ("serve.cpu", variant.serve.cpus()),
        };
        let shape = self.of(side).get(index).map(|host| &host.hello.shape);
        match (shape, variant.written_cpus.get(key)) {
            (Some(shape), Some(written)) => placed(shape, written, resolved),
            _ => resolved.clone(),
        }
    }
}

/// The CPUs of a variant's background load on a host, as many as where it was resolved.
pub fn background_cpus(host: &ConnectedHost, variant: &Variant) -> CpuList {
    let resolved = &variant.background.cpus;
    let written = variant.written_cpus.get("background.cpus");
    let own = written.map(|written| placed(&host.hello.shape, written, resolved));
    own.unwrap_or_else(|| resolved.clone())
}

/// A list with roles on a host, as long as the list that was resolved.
fn placed(shape: &HostShape, written: &str, resolved: &CpuList) -> CpuList {
    let own = cpus_on(shape, written).map(|mut own| {
        own.0.truncate(resolved.0.len());
        own
    });
    own.filter(|own| own.0.len() == resolved.0.len()).unwrap_or_else(|| resolved.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{CpuShape, parse, resolve_between};

    /// Two nodes of four cores each, the card on the second one.
    fn large() -> HostShape {
        let cpu =
            |cpu| CpuShape { cpu, core: cpu, node: cpu / 4, l3: Some(cpu / 4), allowed: true };
        HostShape { cpus: (0..8).map(cpu).collect(), card_node: Some(1), ..HostShape::default() }
    }

    #[test]
    fn each_host_has_as_many_cpus_as_the_smallest_near_its_own_card() {
        let text = "question = \"?\"\n[serve]\ncpu = \"@receiver:3\"\n[load]\ncpu = \"0\"\n";
        let small = HostShape::flat(4);
        let file = parse(text, "t", "t").unwrap();
        let resolved = resolve_between(&file, &[], [&small, &small], false, None).unwrap();
        let variant = &resolved.variants[0];
        assert_eq!(variant.written_cpus["serve.cpu"], "@receiver:3");
        assert_eq!(variant.serve.cpus().0, [1, 3, 2]);
        let written = &variant.written_cpus["serve.cpu"];
        assert_eq!(placed(&small, written, variant.serve.cpus()).0, [1, 3, 2]);
        assert_eq!(placed(&large(), written, variant.serve.cpus()).0, [5, 7, 1]);
        // Numbers are numbers on every host.
        assert_eq!(placed(&large(), &variant.written_cpus["load.cpu"], variant.load.cpus()).0, [0]);
        // Of a host that lacks them, those that were resolved.
        assert_eq!(placed(&HostShape::flat(1), "3", &CpuList(vec![3])).0, [3]);
    }
}
