//! NIC: offloads, link, PCIe.

mod above;
pub mod aggregate;
pub mod bonds;
pub mod fit;
pub mod link;
pub mod pause;
pub mod pcie;
mod without_hardware;
