//! What is asked of a driver by ethtool's ioctl, because no netlink command sets it on every kernel.

pub mod per_queue;
pub mod stamps;
pub mod steering;
