//! One BPF object: its programs are chosen one by one, loaded, attached, read, and removed when the value is dropped.
//!
//! If the kernel lacks or refuses a program, only its own data is missing: it is left out, with the reason, and the
//! others load without it. Nothing is pinned: links and programs belong to descriptors of this process, so the kernel
//! removes them when it ends, however it ends.

#[cfg(not(feature = "bpf"))]
mod absent;
#[cfg(feature = "bpf")]
mod batch;
#[cfg(feature = "bpf")]
mod choose;
#[cfg(feature = "bpf")]
mod iterate;
#[cfg(feature = "bpf")]
mod loaded;
#[cfg(feature = "bpf")]
mod log;
#[cfg(feature = "bpf")]
mod patient;
#[cfg(feature = "bpf")]
mod types;
mod words;

use rxpath_core::Fact;
use rxpath_host::HostError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use words::Words;

#[cfg(not(feature = "bpf"))]
pub use absent::{Loaded, enumerators, parameters, read_iterator};
#[cfg(feature = "bpf")]
pub use iterate::read_iterator;
#[cfg(feature = "bpf")]
pub use loaded::Loaded;
#[cfg(feature = "bpf")]
pub use types::{enumerators, parameters};

/// One program of an object.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSpec {
    /// Its name in the object, without [`PREFIX`].
    pub name: &'static str,
    /// The tracepoint that it attaches to, as tracefs names it, or its iterator (`iter/udp`); none for programs that
    /// only the reader runs.
    pub hook: Option<&'static str>,
    /// What is not known without it.
    pub loses: &'static str,
    /// Whether the probe means nothing without it.
    pub required: bool,
}

/// A program on a tracepoint, with the name of its tracepoint.
pub const fn program(hook: &'static str, loses: &'static str, required: bool) -> ProgramSpec {
    let mut at = hook.len();
    while at > 0 && hook.as_bytes()[at - 1] != b'/' {
        at -= 1;
    }
    ProgramSpec { name: hook.split_at(at).1, hook: Some(hook), loses, required }
}

/// A program that only the reader runs.
pub const fn unhooked(name: &'static str, loses: &'static str, required: bool) -> ProgramSpec {
    ProgramSpec { name, hook: None, loses, required }
}

/// One object.
#[derive(Clone, Copy, Debug)]
pub struct ObjectSpec {
    /// Its name, for messages.
    pub name: &'static str,
    /// The compiled object, compressed by zlib; empty in a build without BPF.
    pub packed: &'static [u8],
    /// Its programs.
    pub programs: &'static [ProgramSpec],
    /// The maps that have one entry for each possible CPU.
    pub per_cpu_maps: &'static [&'static str],
    /// Its maps, as the reader decodes them.
    pub maps: &'static [MapSpec],
}

/// The compiled `bpf/NAME.bpf.c`, empty in a build without BPF; its programs and maps are still to be said.
macro_rules! compiled {
    ($name:literal) => {{
        #[cfg(feature = "bpf")]
        let packed: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o.z"));
        #[cfg(not(feature = "bpf"))]
        let packed: &[u8] = &[];
        ObjectSpec { name: $name, packed, programs: &[], per_cpu_maps: &[], maps: &[] }
    }};
}
pub(crate) use compiled;

/// One map of an object, and the sizes of what it keeps: the reader takes keys and values apart by place, so that both
/// sides have to mean the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSpec {
    /// Its name in the object.
    pub name: &'static str,
    /// Bytes of a key.
    pub key: u32,
    /// Bytes of a value.
    pub value: u32,
}

/// A map with keys and values of these sizes; both are 0 for a ring buffer.
pub const fn map(name: &'static str, key: u32, value: u32) -> MapSpec {
    MapSpec { name, key, value }
}

/// Prefix of all program names, so that `bpftool prog` shows the owner.
pub const PREFIX: &str = "rxpath_";

/// The inodes that a process has open (`bpf/owner.h`), in each object that asks for them.
pub const WANTED: MapSpec = map("wanted", 8, 4);

/// Records that did not fit (`lost` of the objects that count it).
pub const LOST: MapSpec = map("lost", 4, 8);

/// Forgets what an object counted in its map `lost`.
pub(crate) fn forget_lost(loaded: &Loaded) -> Result<(), HostError> {
    loaded.put(LOST.name, &0u32.to_ne_bytes(), &0u64.to_ne_bytes())
}

/// Removes all entries of a map.
pub(crate) fn clear(loaded: &Loaded, map: &str) -> Result<(), HostError> {
    loaded.entries(map)?.iter().try_for_each(|(key, _)| loaded.remove(map, key))
}

/// Compares a map of an object with what its reader decodes.
///
/// **Errors** when their sizes differ: its data could not be trusted.
#[cfg_attr(not(feature = "bpf"), allow(dead_code, reason = "there are no objects in this build"))]
fn check_map(spec: &ObjectSpec, found: (&str, u32, u32)) -> Result<(), HostError> {
    let (name, key, value) = found;
    let wrong = |known: &str| HostError::Unsupported {
        what: format!("read the map {name} of the probe {}", spec.name),
        needs: format!(
            "a consistent build: the map has keys of {key} and values of {value} bytes, the reader knows {known}"
        ),
    };
    match spec.maps.iter().find(|map| map.name == name) {
        Some(map) if (map.key, map.value) == (key, value) => Ok(()),
        Some(map) => Err(wrong(&format!("{} and {} bytes", map.key, map.value))),
        None => Err(wrong("no such map")),
    }
}

/// What became of one program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramState {
    /// Its name.
    pub program: String,
    /// The tracepoint.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hook: Option<String>,
    /// The kernel's id of the loaded program, or why there is none.
    pub id: Fact<u32>,
    /// What is not known without it; only where it is missing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lost_knowledge: Option<String>,
}

/// Key and value of a map's entry.
pub type MapEntry = (Vec<u8>, Vec<u8>);

/// What takes the entries of a map, key and value, one after the other.
pub type Give<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<(), HostError>;

/// Maps that are to have another size than the object says: name and number of entries (bytes of a ring buffer).
pub type Sizes<'a> = &'a [(&'a str, u32)];

/// Whether this build has BPF programs.
pub const BUILT: bool = cfg!(feature = "bpf");

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> ObjectSpec {
        let maps = &[MapSpec { name: "rows", key: 8, value: 24 }];
        ObjectSpec { name: "some", packed: &[], programs: &[], per_cpu_maps: &[], maps }
    }

    #[test]
    fn a_map_of_another_size_or_that_nobody_reads_is_refused() {
        assert!(check_map(&spec(), ("rows", 8, 24)).is_ok());
        for (found, words) in [
            (("rows", 8, 32), "keys of 8 and values of 32 bytes, the reader knows 8 and 24 bytes"),
            (("rows", 4, 24), "keys of 4 and values of 24 bytes, the reader knows 8 and 24 bytes"),
            (("others", 8, 24), "the reader knows no such map"),
        ] {
            let error = check_map(&spec(), found).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(found.0), "{error}");
        }
    }

    /// Needs neither root nor BPF in the kernel: the compiled objects are looked at, none is loaded.
    #[cfg(feature = "bpf")]
    #[test]
    fn every_map_of_every_object_has_the_size_that_its_reader_knows() {
        for spec in crate::PROBES {
            let found = choose::maps(spec).unwrap();
            for (name, key, value) in &found {
                check_map(spec, (name, *key, *value)).unwrap();
            }
            for map in spec.maps {
                assert!(found.iter().any(|(name, ..)| name == map.name), "{}: {map:?}", spec.name);
            }
        }
    }

    #[cfg(feature = "bpf")]
    #[test]
    fn every_program_of_every_object_shows_whose_it_is() {
        for spec in crate::PROBES {
            let names = choose::programs(spec).unwrap();
            assert_eq!(names.len(), spec.programs.len(), "{names:?}");
            for program in spec.programs {
                let own = format!("{PREFIX}{}", program.name);
                assert!(names.contains(&own), "{own} in {names:?}");
            }
        }
    }
}
