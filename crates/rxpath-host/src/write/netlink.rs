//! What the kernel is asked to change over netlink: one topic in each file below.
//!
//! The question it answers: *how is another value asked for?* What came of it is seen by reading.

pub mod addr;
pub(crate) mod field;
pub mod group;
pub mod link;
pub(crate) mod link_request;
pub mod napi;
pub mod neigh;
pub mod next_hop;
pub mod qdisc;
