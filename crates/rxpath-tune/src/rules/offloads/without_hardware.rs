//! Offload checks for devices without hardware: veth, bridges, VLANs, tunnels.

use crate::prelude::*;

/// Devices that decapsulate packets and merge the result (net/core/gro_cells.c `gro_cells_init` is called by each).
const TUNNELS: [&str; 8] =
    ["vxlan", "geneve", "gre", "gretap", "ip6gre", "ip6gretap", "ipip", "bareudp"];

/// A feature that was turned off on a virtual device. If only the device below lacks it, the kernel still lists it as
/// wanted.
fn turned_off(device: &Device, name: &str, why: &str) -> Checked {
    if let Some(silent) = idle(device) {
        return silent;
    }
    let all = (&device.nic.features).known()?;
    let found = all.get(name).ok_or_else(|| Gap::Absent(format!("the kernel has no {name}")))?;
    if found.active {
        return Answer::fine(format!("{name} is on"));
    }
    if found.wanted || !found.changeable {
        return Answer::silent(format!(
            "{name} is off with the device below, or cannot be switched"
        ));
    }
    Answer::found(format!("{name} is off"), "on", why)
        .change(Set::switch(Knob::part(&device.name, Group::Features, name), true))
}

/// GRO of a tunnel; `None` for all other devices.
pub(super) fn gro(device: &Device) -> Option<Checked> {
    let kind = device.nic.link.value().and_then(|link| link.kind.as_deref())?;
    let why = "every decapsulated segment passes the stack alone";
    (!device.is_nic() && TUNNELS.contains(&kind)).then(|| turned_off(device, "rx-gro", why))
}

/// Segmentation of what leaves by the device.
pub(super) fn segmentation(device: &Device) -> Checked {
    let why = "each transmitted segment passes the stack alone";
    match turned_off(device, "tx-tcp-segmentation", why) {
        Ok(Answer::Fine(_) | Answer::Silent(_)) => {
            turned_off(device, "tx-generic-segmentation", why)
        }
        other => other,
    }
}

/// A user of every packet of a virtual device: a capture, or a device above it.
pub(super) fn reader_of_all(ask: &Ask<'_>, device: &Device) -> Result<Option<String>, Gap> {
    if device.is_nic() {
        return Ok(None);
    }
    let names = ask.facts.list(&device.path("")).known()?;
    if let Some(above) = names.iter().find_map(|name| name.strip_prefix("upper_")) {
        return Ok(Some(format!("{above} above it needs it")));
    }
    let sockets = ask.facts.text("/proc/net/packet").known()?;
    Ok((sockets.lines().count() > 1).then(|| "a packet socket may need it".into()))
}
