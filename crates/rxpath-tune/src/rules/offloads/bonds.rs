//! Bonds: equal ports, and how transmitted flows are spread over them.

use std::collections::BTreeSet;

use super::above::is_switched;
use crate::prelude::*;

/// Offloads that make a flow faster on one port than on another.
const OFFLOADS: [&str; 4] = ["rx-gro", "rx-lro", "rx-checksum", "rx-hashing"];

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("bond-ports-differ", Check::Device(|ask, device| of_bond(ask, device, alike))),
    ("bond-xmit-hash", Check::Device(|ask, device| of_bond(ask, device, policy))),
];

/// Judges a bond by its mode and its ports that are up; silent for everything else.
fn of_bond(
    ask: &Ask<'_>,
    device: &Device,
    judge: fn(&Ask<'_>, &Device, &str, &[&Device]) -> Checked,
) -> Checked {
    if device.kind.value().is_none_or(|kind| kind != "bond") || !device.is_up() {
        return Answer::silent("no bond that is up");
    }
    let mode = ask.facts.text(&device.path("bonding/mode")).known()?;
    let mode = mode.split_whitespace().next().unwrap_or_default();
    let own = |port: &&Device| port.master.value() == Some(&device.name) && port.is_up();
    let ports: Vec<&Device> = ask.facts.nics().filter(own).collect();
    if ports.len() < 2 {
        return Answer::silent("fewer than two ports with hardware that are up");
    }
    judge(ask, device, mode, &ports)
}

/// The compared settings: the name of each, and its value at the ports that report it.
fn settings<'a>(
    ask: &Ask<'_>,
    mode: &str,
    ports: &[&'a Device],
) -> Vec<(&'static str, Vec<(&'a str, String)>)> {
    let of = |name: &'static str, read: &dyn Fn(&Device) -> Option<String>| {
        let values = ports.iter().filter_map(|port| Some((port.name.as_str(), read(port)?)));
        (name, values.collect::<Vec<_>>())
    };
    let mut all = Vec::new();
    if mode != "active-backup" {
        all.push(of("speed", &|port| {
            let mbps = port.sysfs.speed_mbps.value().filter(|mbps| **mbps > 0)?;
            Some(format!("{mbps} Mb/s"))
        }));
    }
    for name in OFFLOADS {
        all.push(of(name, &|port| {
            let is_on = port.nic.features.value()?.get(name)?.active;
            Some(if is_on { "on" } else { "off" }.into())
        }));
    }
    if ask.goal.is_some() {
        all.push(of("receive ring", &|port| Some(port.nic.rings.value()?.rx.now?.to_string())));
        all.push(of("receive queues", &|port| {
            Some(port.nic.channels.value()?.receiving()?.to_string())
        }));
    }
    all
}

fn alike(ask: &Ask<'_>, _: &Device, mode: &str, ports: &[&Device]) -> Checked {
    let (mut known, mut differ, mut has_speeds) = (0, Vec::new(), false);
    let mut partly = None;
    for (name, values) in settings(ask, mode, ports) {
        known += usize::from(values.len() == ports.len());
        if !values.is_empty() && values.len() < ports.len() {
            partly = Some(name);
        }
        if values.iter().map(|(_, value)| value).collect::<BTreeSet<_>>().len() > 1 {
            has_speeds |= name == "speed";
            let told = values.iter().map(|(port, value)| format!("{port} {value}"));
            differ.push(format!("{name}: {}", told.collect::<Vec<_>>().join(", ")));
        }
    }
    if differ.is_empty() {
        return match (partly, known) {
            (Some(name), _) => Err(Gap::Absent(format!("not every port reports its {name}"))),
            (None, 0) => Err(Gap::Absent("its ports report nothing that can be compared".into())),
            (None, known) => {
                Answer::fine(format!("{} ports, alike in {known} respects", ports.len()))
            }
        };
    }
    let found = Answer::observed(differ.join("; "))
        .advice("set the differing port like the others; the bond does not do it");
    if has_speeds { found.severity(Warn).size(Multiple) } else { found }
}

fn policy(ask: &Ask<'_>, device: &Device, mode: &str, ports: &[&Device]) -> Checked {
    if !["802.3ad", "balance-xor"].contains(&mode) {
        return Answer::silent(format!("the mode {mode} spreads without a hash"));
    }
    let policy = ask.facts.text(&device.path("bonding/xmit_hash_policy")).known()?;
    let policy = policy.split_whitespace().next().unwrap_or_default();
    if policy != "layer2" {
        return Answer::fine(format!("{policy} over {} ports", ports.len()));
    }
    if is_switched(ask, device) {
        return Answer::silent("layer2, for the many addresses behind a bridge");
    }
    Answer::observed(format!("xmit_hash_policy is layer2, over {} ports", ports.len()))
        .advice(format!("ip link set {} type bond xmit_hash_policy layer3+4", device.name))
}
