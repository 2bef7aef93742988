//! One BPF object: its programs chosen one by one, loaded, attached, read, and gone with the value.
//!
//! A program that this kernel lacks or refuses costs only its own knowledge: it is left out, with the reason, and the
//! others load without it. Nothing is pinned: links and programs belong to descriptors of this process, so the kernel
//! removes them when it ends, however it ends.

#[cfg(not(feature = "bpf"))]
mod absent;
#[cfg(feature = "bpf")]
mod batch;
#[cfg(feature = "bpf")]
mod choose;
#[cfg(feature = "bpf")]
mod loaded;
#[cfg(feature = "bpf")]
mod log;
#[cfg(feature = "bpf")]
mod types;

use rxpath_core::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(not(feature = "bpf"))]
pub use absent::{Loaded, enumerators, parameters, read_iterator};
#[cfg(feature = "bpf")]
pub use loaded::{Loaded, read_iterator};
#[cfg(feature = "bpf")]
pub use types::{enumerators, parameters};

/// One program of an object.
#[derive(Clone, Copy, Debug)]
pub struct ProgramSpec {
    /// Its name in the object.
    pub name: &'static str,
    /// The tracepoint that it attaches to, as tracefs names it, or its iterator (`iter/udp`); none for programs that only
    /// the reader runs.
    pub hook: Option<&'static str>,
    /// What is not known without it.
    pub loses: &'static str,
    /// Whether the probe means nothing without it.
    pub required: bool,
}

/// A program on a tracepoint.
pub const fn program(
    name: &'static str,
    hook: &'static str,
    loses: &'static str,
    required: bool,
) -> ProgramSpec {
    ProgramSpec { name, hook: Some(hook), loses, required }
}

/// One object.
#[derive(Clone, Copy, Debug)]
pub struct ObjectSpec {
    /// Its name, for messages.
    pub name: &'static str,
    /// The compiled object; empty in a build without BPF.
    pub bytes: &'static [u8],
    /// Its programs.
    pub programs: &'static [ProgramSpec],
    /// The map that has one entry for each possible CPU, when there is one.
    pub per_cpu_map: Option<&'static str>,
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
pub type Entry = (Vec<u8>, Vec<u8>);

/// Maps that are to have another size than the object says: name and number of entries (bytes of a ring buffer).
pub type Sizes<'a> = &'a [(&'a str, u32)];

/// Whether this build has BPF programs.
pub const BUILT: bool = cfg!(feature = "bpf");
