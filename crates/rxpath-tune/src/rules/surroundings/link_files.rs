//! Devices whose settings differ from their .link file.

use rxpath_core::CpuList;

use crate::facts::{Fits, LinkFile};
use crate::persist::LINK_KEYS;
use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[("link-files", Check::Nic(file))];

/// A key's value in the same words as the device's value.
fn wanted((group, name): (Group, &str), value: &str, max: Option<u64>) -> Option<String> {
    let lower = value.to_ascii_lowercase();
    match lower.as_str() {
        "yes" | "true" | "on" | "1" if !is_amount(group, name) => return Some("on".into()),
        "no" | "false" | "off" | "0" if !is_amount(group, name) => return Some("off".into()),
        "max" => return max.map(|max| max.to_string()),
        _ => {}
    }
    let number = if name.ends_with("-usecs") {
        scaled(&lower, TIMES)
    } else if name == "speed" {
        scaled(&lower, RATES).map(|bits_per_s| bits_per_s / 1_000_000)
    } else {
        scaled(&lower, COUNTS)
    };
    number.map(|number| number.to_string())
}

/// Words of a unit, and how many of the smallest unit it has.
type Units = [(&'static [&'static str], u64)];

/// Times of systemd.time(7) in us; seconds without a unit. Sums of several units are not read.
const TIMES: &Units =
    &[(&["us", "usec"], 1), (&["ms", "msec"], 1_000), (&["", "s", "sec"], 1_000_000)];
/// `BitsPerSecond=`: suffixes to the base of 1000 (systemd.link(5)).
const RATES: &Units = &[(&[""], 1), (&["k"], 1_000), (&["m"], 1_000_000), (&["g"], 1_000_000_000)];
/// All other numbers: suffixes to the base of 1024.
const COUNTS: &Units = &[(&[""], 1), (&["k"], 1 << 10), (&["m"], 1 << 20)];

fn scaled(text: &str, units: &Units) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let (_, scale) = units.iter().find(|(words, _)| words.contains(&unit.trim()))?;
    digits.parse::<u64>().ok()?.checked_mul(*scale)
}

/// Whether a value is a number: pause frames have switches by the same names as rings and channels have numbers.
fn is_amount(group: Group, name: &str) -> bool {
    matches!(group, Group::Rings | Group::Channels | Group::Link)
        || name.ends_with("-usecs")
        || name.ends_with("-frames")
        || name == "speed"
}

/// The device's current value and its maximum.
fn live(device: &Device, group: Group, name: &str) -> Option<(String, Option<u64>)> {
    let modes = device.nic.link_modes.value();
    match (group, name) {
        // With negotiation on, speed and duplex of the file are not asked for (systemd.link(5)).
        (Group::LinkModes, "speed") if modes?.autoneg != Some(false) => None,
        (Group::Link, "mtu") => Some((device.sysfs.mtu_bytes.value()?.to_string(), None)),
        _ => device.setting(group, name),
    }
}

/// Values of the file that are known here and differ, and how many were compared.
fn compare(ask: &Ask<'_>, file: &LinkFile, device: &Device) -> (Vec<String>, usize) {
    let (mut differ, mut compared) = steered(ask, file, device);
    for (group, name, key) in LINK_KEYS.iter() {
        let Some(value) = file.settings.get(key) else { continue };
        let Some((now, max)) = live(device, *group, name) else { continue };
        let Some(wanted) = wanted((*group, name.as_str()), value, max) else { continue };
        compared += 1;
        // Adaptive moderation sets the delay again all the time.
        let adapts = *name == "rx-usecs"
            && device.nic.coalesce.value().is_some_and(|all| all.adaptive_rx == Some(true));
        if wanted != now && !adapts {
            differ.push(format!("{key}={value} and it is {now}"));
        }
    }
    (differ, compared)
}

/// The CPUs of RPS, which systemd writes to every receive queue (256).
const RPS_KEY: &str = "ReceivePacketSteeringCPUMask";

/// The CPUs that the file gives to RPS, next to those of each queue.
fn steered(ask: &Ask<'_>, file: &LinkFile, device: &Device) -> (Vec<String>, usize) {
    let wanted = file.settings.get(RPS_KEY).and_then(|value| {
        let mut cpus = match value.as_str() {
            "disable" => Vec::new(),
            "all" => ask.facts.topology.value()?.online.as_slice().to_vec(),
            list => {
                let list = list.split_whitespace().collect::<Vec<_>>().join(",");
                list.replace(",,", ",").parse::<CpuList>().ok()?.0
            }
        };
        cpus.sort_unstable();
        Some((value, cpus))
    });
    let Some((value, wanted)) = wanted else { return (Vec::new(), 0) };
    let queues = &device.sysfs.steering.rx_queues;
    let known: Vec<_> =
        queues.iter().filter_map(|queue| Some((queue.index, queue.rps_cpus.value()?))).collect();
    let differ = known.iter().find(|(_, now)| now.as_slice() != wanted).map(|(queue, now)| {
        let now = if now.is_empty() { "off".into() } else { now.to_string() };
        format!("{RPS_KEY}={value} and RPS of queue {queue} is {now}")
    });
    (differ.into_iter().collect(), usize::from(!known.is_empty()))
}

fn file(ask: &Ask<'_>, device: &Device) -> Checked {
    if ask.facts.scope.is_entered {
        return Answer::silent("udev set up the devices of another network namespace");
    }
    // A file that may be the device's hides those after it.
    let mut hides = None;
    for file in ask.facts.link_files() {
        match ask.facts.fits(&file, device) {
            Fits::No => {}
            Fits::Unknown(why) => {
                hides = hides.or(Some(format!("{} may be its file: {why}", file.file)));
            }
            Fits::Yes => match hides {
                Some(why) => return Answer::silent(why),
                None => return judged(ask, &file, device),
            },
        }
    }
    Answer::silent(hides.unwrap_or_else(|| "no .link file fits it".into()))
}

/// The verdict on the file that is the device's.
fn judged(ask: &Ask<'_>, file: &LinkFile, device: &Device) -> Checked {
    let (differ, compared) = compare(ask, file, device);
    if compared == 0 {
        return Answer::silent(format!("{} sets nothing that is read here", file.file));
    }
    if differ.is_empty() {
        return Answer::fine(format!("{compared} settings are as {} says", file.file));
    }
    Answer::observed(format!("{} says {}", file.file, differ.join(", ")))
        .advice("decide which is right; udev applies the file when the device appears")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_in_the_words_of_the_device() {
        for (group, name, value, told) in [
            (Group::Rings, "rx", "max", Some("4096")),
            (Group::Rings, "rx", "512", Some("512")),
            (Group::Rings, "tx", "1", Some("1")),
            (Group::Channels, "rx", "1", Some("1")),
            (Group::Channels, "combined", "1", Some("1")),
            (Group::Pause, "rx", "1", Some("on")),
            (Group::Pause, "tx", "0", Some("off")),
            (Group::Coalesce, "rx-usecs", "30us", Some("30")),
            (Group::Coalesce, "rx-usecs", "1ms", Some("1000")),
            (Group::Coalesce, "rx-usecs", "1min 3s", None),
            (Group::Link, "mtu", "9K", Some("9216")),
            (Group::Features, "rx-gro", "yes", Some("on")),
            (Group::Coalesce, "adaptive-rx", "False", Some("off")),
            (Group::Link, "mtu", "lots", None),
            (Group::LinkModes, "speed", "1000M", Some("1000")),
            (Group::LinkModes, "speed", "10G", Some("10000")),
            (Group::LinkModes, "speed", "1000000000", Some("1000")),
            (Group::LinkModes, "speed", "1Gbit", None),
        ] {
            let said = wanted((group, name), value, Some(4096));
            assert_eq!(said.as_deref(), told, "{group:?} {name} {value}");
        }
    }
}
