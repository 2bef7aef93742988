//! What a lab is made of and what keeps labs apart: namespaces, processes, packet filters, owners, locks, captures, probes.
//!
//! The question it answers: *what does a run create, who owns it, and who removes it?*

pub mod capture;
mod conntrack;
pub mod detached;
pub mod lock;
pub mod netns;
pub mod nft;
pub mod owner;
pub mod probe;
pub mod upper;
pub mod veth;
