//! Real hosts: which they are, how they are reached, and how this program gets there.
//!
//! It runs the user's own `ssh` with the user's own configuration, and knows nothing of keys, passwords or host keys.
//! It must not read a host: that is the endpoint's work.

mod destination;
pub mod inventory;
mod refusal;
mod scripts;
pub mod ship;
pub mod ssh;

pub use destination::{Destination, Directory};
pub use inventory::{HostEntry, Inventory, Role, Sudo};
pub use refusal::{Refusal, refusal};
