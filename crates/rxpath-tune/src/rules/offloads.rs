//! NIC: offloads, link, PCIe.

pub mod aggregate;
pub mod link;
pub mod pcie;
