//! What all probes have in common: a caller of several asks each of them, and forgets none.

use rxpath_core::Warning;

use crate::object::{self, Loaded, ProgramState};

/// A running probe: one object in the kernel and its reader.
pub trait Probe {
    /// The object, for its programs and its cost.
    fn loaded(&self) -> &Loaded;

    /// Everything since the start that found no room in one of its maps: where the object counts that in `lost`.
    fn lost(&self) -> u64 {
        object::lost(self.loaded())
    }

    /// What became of each program.
    fn programs(&self) -> &[ProgramState] {
        self.loaded().programs()
    }

    /// Kernel memory of its maps.
    fn map_bytes(&self) -> u64 {
        self.loaded().map_bytes()
    }
}

/// What found no room in the maps of all these.
pub fn lost(probes: &[&dyn Probe]) -> u64 {
    probes.iter().map(|probe| probe.lost()).sum()
}

/// Kernel memory of all their maps.
pub fn map_bytes(probes: &[&dyn Probe]) -> u64 {
    probes.iter().map(|probe| probe.map_bytes()).sum()
}

/// What became of each of their programs.
pub fn programs(probes: &[&dyn Probe]) -> Vec<ProgramState> {
    probes.iter().flat_map(|probe| probe.programs().to_vec()).collect()
}

/// That so much found no room; none for nothing.
pub fn lost_warning(lost: u64) -> Option<Warning> {
    let text = format!("{lost} records did not fit in the BPF maps of the probes");
    (lost > 0).then(|| {
        Warning::new("records-lost", text)
            .because("the rows lack these records")
            .cure("use a shorter window, or fewer CPUs, ports or processes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_told_and_nothing_is_not() {
        assert_eq!(lost_warning(0), None);
        let told = lost_warning(7).unwrap().to_string();
        assert!(told.starts_with("7 records"), "{told}");
        assert_eq!((lost(&[]), map_bytes(&[]), programs(&[]).len()), (0, 0, 0));
    }
}
