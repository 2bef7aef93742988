//! What all probes have in common: a caller of several asks each of them, and forgets none.

use rxpath_core::Warning;
use rxpath_core::number::grouped;
use rxpath_host::HostError;

use crate::bytes::Fields;
use crate::object::{LOST, Loaded, ProgramState};

/// A running probe: one object in the kernel and its reader.
pub trait Probe {
    /// The object, for its programs and its cost.
    fn loaded(&self) -> &Loaded;

    /// The object's name.
    fn name(&self) -> &'static str {
        self.loaded().name()
    }

    /// Everything since the start that found no room in one of its maps: what the object counted in its map `lost`.
    ///
    /// **Errors** when a counter cannot be read: then nobody knows whether the maps have all records.
    fn lost(&self) -> Result<u64, HostError> {
        Ok(Fields::of(&self.loaded().value(LOST.name, 0)?).u64())
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
///
/// **Errors** as [`Probe::lost`].
pub fn lost(probes: &[&dyn Probe]) -> Result<u64, HostError> {
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

/// What is not known without the programs that this kernel does not take.
pub fn missing(programs: &[ProgramState]) -> impl Iterator<Item = Warning> {
    programs.iter().filter_map(|program| {
        let (gap, loses) = (program.id.gap()?, program.lost_knowledge.as_ref()?);
        let warning = Warning::new("probe-missing", format!("{}: {gap}", program.program));
        Some(warning.because(format!("not known without it: {loses}")))
    })
}

/// That so much found no room; none for nothing.
pub fn lost_warning(lost: u64) -> Option<Warning> {
    let text = format!("{} records did not fit in the BPF maps of the probes", grouped(lost));
    (lost > 0).then(|| {
        Warning::new("records-lost", text)
            .because("the rows lack these records")
            .cure("use a shorter window, or fewer CPUs, ports or processes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe with this counter, or this error number in its place.
    struct Counted(Result<u64, i32>);

    impl Probe for Counted {
        fn loaded(&self) -> &Loaded {
            unreachable!("there is no object behind it")
        }

        fn lost(&self) -> Result<u64, HostError> {
            let op = "read entry 0 of the map lost".to_owned();
            self.0.map_err(|errno| HostError::Kernel { op, errno, extack: None })
        }
    }

    #[test]
    fn a_counter_that_cannot_be_read_is_an_error_and_no_zero() {
        let (three, four) = (Counted(Ok(3)), Counted(Ok(4)));
        assert_eq!(lost(&[&three, &four]).unwrap(), 7);
        let error = lost(&[&three, &Counted(Err(libc::EPERM))]).unwrap_err().to_string();
        assert!(error.starts_with("read entry 0 of the map lost"), "{error}");
    }

    #[test]
    fn what_was_lost_is_told_and_nothing_is_not() {
        assert_eq!(lost_warning(0), None);
        let told = lost_warning(7_000).unwrap().to_string();
        assert!(told.starts_with("7,000 records"), "{told}");
        assert_eq!((lost(&[]).unwrap(), map_bytes(&[]), programs(&[]).len()), (0, 0, 0));
    }
}
