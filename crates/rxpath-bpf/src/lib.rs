//! What the kernel's tracepoints say about the receive path: BPF programs and their readers.
//!
//! The question this crate answers: *what did the kernel do with packets, and with whose CPU time?* Each probe is a
//! pair of files, `bpf/NAME.bpf.c` and `src/NAME.rs`; it aggregates in the kernel, attaches to tracepoints only
//! (`tp_btf`), and gives a plain typed result with its own cost. The crate must not print, and must not
//! judge what the numbers mean. [`xdp_receive`] alone is no probe: it takes datagrams from a device for a receiver.
//!
//! Built without the feature `bpf` (no clang on the machine that builds), the same types are there and each probe
//! says that this build has none.

pub mod account;
pub mod bytes;
pub mod can;
pub mod cost;
pub mod devices;
pub mod doctor;
pub mod drops;
pub mod empty;
pub mod filter;
pub mod live_frames;
pub mod locks;
pub mod names;
pub mod object;
pub mod polls;
pub mod probe;
pub mod queues;
pub mod reads;
pub mod reuseport;
mod room;
pub mod squeezed;
pub mod stages;
pub mod steal;
pub mod trace;
pub mod turns;
pub mod xdp_receive;

pub use can::can_run;
pub use object::{Loaded, ObjectSpec, ProgramSpec, ProgramState};
pub use probe::Probe;
pub use rxpath_core::measured::ProbeCost;

/// Every object of this crate: tests compare each with its reader.
#[cfg(all(test, feature = "bpf"))]
pub(crate) static PROBES: [&ObjectSpec; 12] = [
    &account::SPEC,
    &polls::SPEC,
    &drops::SPEC,
    &stages::SPEC,
    &stages::SPEC_EVERY,
    &queues::SPEC,
    &locks::SPEC,
    &reads::SPEC,
    &reuseport::SPEC,
    &empty::SPEC,
    &live_frames::SPEC,
    &xdp_receive::SPEC,
];
