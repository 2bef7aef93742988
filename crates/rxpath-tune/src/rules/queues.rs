//! NIC: rings, queues, steering.

pub mod rfs;
