//! What is said of a host's devices.

use std::net::IpAddr;

use rxpath_remote::inventory::HostEntry;

use crate::endpoint::wire::DeviceFacts;
use crate::error::{LabError, cannot};

/// Every device with its addresses.
pub(super) fn listed(devices: &[DeviceFacts]) -> String {
    let one = |device: &DeviceFacts| {
        let addresses: Vec<String> = device.addresses.iter().map(IpAddr::to_string).collect();
        format!("{} ({})", addresses.join(", "), device.name)
    };
    let with = devices.iter().filter(|device| !device.addresses.is_empty());
    let all: Vec<String> = with.map(one).collect();
    if all.is_empty() { "no address".into() } else { all.join(", ") }
}

/// Refuses a device that the inventory names and its host does not have.
pub(super) fn check_named(
    alias: &str,
    entry: &HostEntry,
    devices: &[DeviceFacts],
) -> Result<(), LabError> {
    let has = |name: &str| devices.iter().any(|device| device.name == name);
    let Some(wanted) = entry.dev.as_deref().filter(|wanted| !has(wanted)) else { return Ok(()) };
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    Err(cannot(
        format!("{alias} has no device {wanted}"),
        format!("change hosts.{alias}.dev; it has {}", names.join(", ")),
    ))
}

/// A device that packets can leave by and come in.
pub(super) fn up(alias: &str, device: &DeviceFacts) -> Result<DeviceFacts, LabError> {
    if device.is_up {
        return Ok(device.clone());
    }
    Err(cannot(
        format!("{alias}: {} is down or has no carrier", device.name),
        format!("ip link set {} up, and look at the cable", device.name),
    ))
}
