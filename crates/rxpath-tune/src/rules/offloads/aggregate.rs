//! Aggregation and checksums: fewer, larger packets for the stack.

use super::above::{forwards, vlans};
use super::without_hardware;
use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("offload-gro", Check::Device(gro)),
    ("offload-gro-hw", Check::Device(gro_hw)),
    ("offload-lro", Check::Nic(lro)),
    ("offload-gro-list", Check::Device(gro_list)),
    ("offload-udp-gro-fwd", Check::Device(udp_fwd)),
    ("udp-gro-socket", Check::Host(udp_gro)),
    ("offload-rx-csum", Check::Device(rx_csum)),
    ("offload-rx-hash", Check::Device(rx_hash)),
    ("offload-tso-gso", Check::Device(tso)),
    ("offload-vlan", Check::Device(vlan)),
];

/// A feature by the kernel's name: whether it is on, and whether it can be switched.
fn feature(device: &Device, name: &str) -> Result<(bool, bool), Gap> {
    let all = (&device.nic.features).known()?;
    let found = all.get(name).ok_or_else(|| Gap::Absent(format!("the kernel has no {name}")))?;
    Ok((found.active, found.changeable))
}

/// The usual question: a feature that should be on.
fn should_be_on(device: &Device, name: &str, why: &str) -> Checked {
    if let Some(silent) = quiet(device) {
        return silent;
    }
    match feature(device, name)? {
        (true, _) => Answer::fine(format!("{name} is on")),
        (false, false) => {
            Answer::silent(format!("{name} is off, and the driver does not let it be switched"))
        }
        (false, true) => Answer::found(format!("{name} is off"), "on", why)
            .change(Set::switch(Knob::part(&device.name, Group::Features, name), true)),
    }
}

fn gro(_: &Ask<'_>, device: &Device) -> Checked {
    let usual = || should_be_on(device, "rx-gro", "every segment passes the stack alone");
    without_hardware::gro(device).unwrap_or_else(usual)
}

fn gro_hw(_: &Ask<'_>, device: &Device) -> Checked {
    should_be_on(device, "rx-gro-hw", "the CPU merges segments that the NIC could merge")
}

fn lro(ask: &Ask<'_>, device: &Device) -> Checked {
    let (on, changeable) = feature(device, "rx-lro")?;
    if !on {
        return Answer::fine("off");
    }
    if !forwards(ask, device) {
        return Answer::silent("on, and this host neither forwards nor bridges it");
    }
    let found = Answer::observed("rx-lro is on and this host forwards or bridges its packets");
    if changeable {
        let knob = Knob::part(&device.name, Group::Features, "rx-lro");
        return found.change(Set::switch(knob, false));
    }
    found.advice("the driver does not let it be switched: take the device out of the bridge")
}

fn gro_list(ask: &Ask<'_>, device: &Device) -> Checked {
    if !forwards(ask, device) {
        return Answer::silent("this host does not forward");
    }
    // Both in one plan would undo each other: with rx-gro-list, udp_gro_receive makes lists.
    match feature(device, "rx-udp-gro-forwarding") {
        Ok((true, _)) => return Answer::silent("rx-udp-gro-forwarding is on instead"),
        Ok((false, true)) => return Answer::silent("rx-udp-gro-forwarding can be on instead"),
        _ => {}
    }
    should_be_on(device, "rx-gro-list", "forwarded packets are merged and split again")
}

fn udp_fwd(ask: &Ask<'_>, device: &Device) -> Checked {
    if !forwards(ask, device) {
        return Answer::silent("this host does not forward");
    }
    if feature(device, "rx-gro-list").is_ok_and(|(on, _)| on) {
        return Answer::silent("rx-gro-list is on instead");
    }
    should_be_on(device, "rx-udp-gro-forwarding", "each forwarded datagram passes the stack alone")
}

fn udp_gro(ask: &Ask<'_>) -> Checked {
    (&ask.facts.kernel.version).known()?;
    Answer::recorded(if ask.facts.kernel.is_since(5, 0) {
        "the kernel has UDP_GRO; which programs use it cannot be read"
    } else {
        "this kernel has no UDP_GRO (5.0)"
    })
}

fn rx_csum(_: &Ask<'_>, device: &Device) -> Checked {
    should_be_on(device, "rx-checksum", "the CPU reads every byte once more for the checksum")
}

fn rx_hash(ask: &Ask<'_>, device: &Device) -> Checked {
    let entries =
        ask.facts.sysctl_number("net.core.rps_sock_flow_entries").value().copied().unwrap_or(0);
    let by_flow = device.has_flow_tables() && entries > 0;
    if !(device.has_rps() || by_flow) {
        return Answer::silent("neither RPS nor RFS asks for a hash");
    }
    should_be_on(device, "rx-hashing", "RPS dissects each packet to hash it")
}

fn tso(_: &Ask<'_>, device: &Device) -> Checked {
    if !device.is_nic() {
        return without_hardware::segmentation(device);
    }
    match feature(device, "tx-tcp-segmentation")? {
        (false, true) => {
            should_be_on(device, "tx-tcp-segmentation", "the sender splits segments on the CPU")
        }
        _ => should_be_on(
            device,
            "tx-generic-segmentation",
            "each segment passes down the stack alone",
        ),
    }
}

fn vlan(ask: &Ask<'_>, device: &Device) -> Checked {
    if vlans(ask, device).next().is_none() {
        return Answer::silent("no VLAN on this device");
    }
    should_be_on(device, "rx-vlan-hw-parse", "the CPU removes the tag from each packet")
}
