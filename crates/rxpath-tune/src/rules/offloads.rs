//! NIC: offloads, link, PCIe.

pub mod gro;
