//! NIC: rings, queues, steering.

pub mod channels;
pub mod drops;
pub mod rfs;
pub mod rings;
pub mod rps;
pub mod rss;
pub mod steering;
