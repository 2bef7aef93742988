//! The queues of several devices: which devices have receive queues of their own, and one reading of all.

use std::collections::BTreeMap;

use rxpath_core::Warning;

use super::{DeviceQueues, HostTables};
use crate::Root;
use crate::read::nic::Nic;

/// Virtual devices with receive queues in which packets wait, by driver.
///
/// **Source** drivers/net/veth.c `veth_poll`, drivers/net/tun.c `tun_napi_poll`. Other drivers hand packets on where
/// they arrive (rx_handler), or only send.
const WITH_QUEUES: [&str; 2] = ["veth", "tun"];

/// Takes out the devices without receive queues of their own, and names them.
pub fn pass_over(root: &Root, nics: &mut BTreeMap<String, Nic>) -> Vec<String> {
    let has_queues = |name: &String, nic: &Nic| {
        root.exists(&format!("/sys/class/net/{name}/device"))
            || nic.driver.value().is_some_and(|told| WITH_QUEUES.contains(&told.driver.as_str()))
            || nic.queues.value().is_some_and(|all| all.iter().any(|one| one.napi_id.is_some()))
    };
    let over: Vec<String> = nics
        .iter()
        .filter(|(name, nic)| !has_queues(name, nic))
        .map(|(name, _)| name.clone())
        .collect();
    nics.retain(|name, _| !over.contains(name));
    over
}

/// One reading of all devices; a device that went away is a warning.
pub fn read_all(
    root: &Root,
    nics: &BTreeMap<String, Nic>,
    shared: &HostTables,
) -> (Vec<DeviceQueues>, Vec<Warning>) {
    let mut warnings = Vec::new();
    let mut devices = Vec::new();
    for (name, nic) in nics {
        match super::read(root, name, nic, shared) {
            Ok(found) => devices.push(found),
            Err(error) => warnings.push(Warning::new("device-lost", format!("{name}: {error}"))),
        }
    }
    (devices, warnings)
}
