//! What is said of a host's devices.

use std::net::IpAddr;

use super::fault::cannot;
use crate::endpoint::wire::DeviceFacts;
use crate::error::LabError;

/// Every device with its addresses.
pub(super) fn listed(devices: &[DeviceFacts]) -> String {
    let one = |device: &DeviceFacts| {
        let addresses: Vec<String> = device.addresses.iter().map(IpAddr::to_string).collect();
        format!("{} ({})", addresses.join(", "), device.name)
    };
    let with = devices.iter().filter(|device| !device.addresses.is_empty());
    with.map(one).collect::<Vec<_>>().join(", ")
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
