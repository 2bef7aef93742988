//! Receive-side scaling: which queue a flow goes to.

use super::channels::receiving;
use rxpath_host::read::ioctl::FlowKind;

use crate::prelude::*;

/// The most loaded queue may have this many times the buckets of the least before the table is uneven: rounding
/// gives neighbours a difference of one bucket.
const UNEVEN: usize = 2;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("rss-indirection", Check::Nic(table)),
    ("rss-hash-key", Check::Nic(key)),
    ("rss-hash-func", Check::Device(function)),
    ("rss-input-xfrm", Check::Device(transformation)),
    ("rss-fields-udp4", Check::Nic(udp4)),
    ("rss-contexts", Check::Device(contexts)),
];

fn table(_: &Ask<'_>, device: &Device) -> Checked {
    let (queues, _) = receiving(device)?;
    if queues < 2 {
        return Answer::silent("one receive queue");
    }
    let table = &(&device.nic.rss).known()?.table;
    if table.is_empty() {
        return Answer::silent("the driver does not show its table");
    }
    let shares = tally(table.iter().copied());
    let most = shares.values().max().copied().unwrap_or(0);
    let least = shares.values().min().copied().unwrap_or(0);
    let unused = (0..queues).filter(|queue| !shares.contains_key(queue)).count();
    let expected = format!(
        "about {} of {} entries for each of {queues} queues",
        table.len() / queues as usize,
        table.len()
    );
    let set = Set::new(Knob::part(&device.name, Group::Rss, "indir"), format!("equal:{queues}"));
    // A table with fewer entries than queues cannot name them all.
    if unused > 0 && table.len() >= queues as usize {
        return Answer::found(
            format!("{unused} of {queues} queues have no entry"),
            expected,
            "they get no flow, unless a flow rule sends them one",
        )
        .change(set);
    }
    if most >= UNEVEN * least && most > least + 1 {
        return Answer::found(
            format!("between {least} and {most} entries for a queue"),
            expected,
            "the queue with the most entries saturates first",
        )
        .change(set);
    }
    Answer::fine(format!("{least} to {most} of {} entries for each queue", table.len()))
}

fn key(_: &Ask<'_>, device: &Device) -> Checked {
    if receiving(device)?.0 < 2 {
        return Answer::silent("one receive queue");
    }
    let key: String = (&(&device.nic.rss).known()?.key)
        .known()?
        .chars()
        .filter(char::is_ascii_hexdigit)
        .collect::<String>()
        .to_ascii_lowercase();
    // The symmetric key, and the one of the published verification suite that drivers ship as their default.
    if key.starts_with("6d5a6d5a6d5a") || key.starts_with("6d5a56da255b") {
        return Answer::fine("a key that is the same on every boot");
    }
    Answer::caution(
        "the RSS key is random at boot or was set: with few flows another key gives another result. Use many flows, \
         or set the same key in every run",
    )
}

fn function(_: &Ask<'_>, device: &Device) -> Checked {
    let rss = (&device.nic.rss).known()?;
    Answer::recorded(rss.function.clone().or_gap("its hash function")?)
}

fn transformation(_: &Ask<'_>, device: &Device) -> Checked {
    let rss = (&device.nic.rss).known()?;
    Answer::recorded(rss.transformation.clone().or_gap("a transformation of the hash's input")?)
}

fn udp4(_: &Ask<'_>, device: &Device) -> Checked {
    if receiving(device)?.0 < 2 {
        return Answer::silent("one receive queue");
    }
    let fields = device.nic.flow_hash.get(&FlowKind::Udp4).or_gap("the hash fields of UDP")?;
    let fields = *fields.known()?;
    if fields.has_ports() {
        return Answer::fine(format!("{fields}: addresses and ports"));
    }
    let knob = Knob::part(&device.name, Group::FlowHash, "udp4");
    Answer::observed(format!("UDP over IPv4 is hashed by `{fields}`"))
        .change(Set::new(knob, "sdfn"))
}

fn contexts(_: &Ask<'_>, device: &Device) -> Checked {
    let contexts = (&device.nic.rss_contexts).known()?;
    Answer::recorded(format!("{} RSS contexts in addition to the main table", contexts.len()))
}
