//! Real hosts: which they are, how they are reached, and which file of this program gets there.
//!
//! It runs the user's own `ssh` with the user's own configuration, and knows nothing of keys, passwords or host keys.
//! It must not read a host: that is the endpoint's work.

mod binaries;
mod destination;
#[cfg(test)]
#[allow(dead_code, reason = "no test here copies a program")]
#[path = "../../../tests/support/executable.rs"]
mod executable;
pub mod inventory;
mod program;
mod refusal;
mod scripts;
pub mod ship;
pub mod ssh;

pub use binaries::{ARCHITECTURES, Binaries, Binary, Given};
pub use destination::{Destination, Directory};
pub use inventory::{HostEntry, Inventory, Role, Sudo};
pub use program::ProgramFile;
pub use refusal::{HostRefusal, RefusingHost, known_refusal, passes, refusal};
