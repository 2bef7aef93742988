//! NIC: rings, queues, steering.

pub mod channels;
pub mod rfs;
pub mod rings;
pub mod rss;
pub mod steering;
