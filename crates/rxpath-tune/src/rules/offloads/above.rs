//! Devices above a device, and whether the host forwards its packets.

use std::collections::BTreeSet;

use crate::prelude::*;

/// Whether this host forwards the device's packets: a router, or a device below a bridge.
pub(super) fn forwards(ask: &Ask<'_>, device: &Device) -> bool {
    routes(ask) || is_switched(ask, device)
}

/// Whether the device, or a bond or VLAN above it, is a port of a bridge or of Open vSwitch.
pub(super) fn is_switched(ask: &Ask<'_>, device: &Device) -> bool {
    let mut above = vec![device];
    let mut seen = BTreeSet::new();
    while let Some(device) = above.pop() {
        if !seen.insert(&device.name) {
            continue;
        }
        if let Some(master) = device.master.value() {
            let master_kind =
                ask.facts.device(master).and_then(|it| it.nic.link.value()?.kind.clone());
            if master_kind.as_deref() == Some("openvswitch")
                || ask.facts.exists(&format!("/sys/class/net/{master}/bridge"))
            {
                return true;
            }
            above.extend(ask.facts.device(master));
        }
        above.extend(vlans(ask, device));
    }
    false
}

/// VLANs on a device.
pub(super) fn vlans<'a>(ask: &'a Ask<'_>, device: &'a Device) -> impl Iterator<Item = &'a Device> {
    let is_vlan = |other: &Device| other.kind.value().is_some_and(|kind| kind == "vlan");
    ask.facts.devices.iter().filter(move |other| {
        let below = other.sysfs.iflink.value();
        is_vlan(other) && below.is_some() && below == device.sysfs.ifindex.value()
    })
}
