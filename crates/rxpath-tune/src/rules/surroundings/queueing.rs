//! Queueing disciplines that lose or delay what a device sends, and devices that packets are redirected through.

use rxpath_core::number::{self, grouped};
use rxpath_host::read::counter::Width;
use rxpath_host::read::netlink::qdisc::QdiscLimit;
use rxpath_host::read::nic::QdiscFacts;

use crate::prelude::*;

/// Fewer in the window are not significant.
const ENOUGH: u64 = 20;
/// A queue that drops so large a share is too short, or its device too slow. Queues that drop early on purpose stay below.
const MUCH_RATIO: f64 = 0.05;
/// Header of an Ethernet frame.
const HEADER_BYTES: u32 = 14;

/// Kinds that hold packets back to a rate.
const SHAPERS: [&str; 5] = ["tbf", "htb", "hfsc", "cake", "cbq"];

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[
    ("qdisc-limit", Check::Active(limit)),
    ("qdisc-drops", Check::Active(drops)),
    ("qdisc-shaper", Check::Active(shaper)),
    ("ifb-redirect", Check::Active(ifb)),
];

/// Qdiscs that hold what the device sends.
fn egress(device: &Device) -> Result<impl Iterator<Item = &QdiscFacts>, Gap> {
    let all = (&device.nic.qdiscs).known()?;
    Ok(all.iter().filter(|qdisc| !["ingress", "clsact"].contains(&qdisc.kind.as_str())))
}

fn root(device: &Device) -> Result<Option<&QdiscFacts>, Gap> {
    Ok(egress(device)?.find(|qdisc| qdisc.is_root))
}

/// Why a qdisc of this device is too short; `None` if it is not.
fn no_room(qdisc: &QdiscFacts, device: &Device, mtu: u32) -> Option<String> {
    // Its ring has the length of the device's queue, and no limit of its own that would be shown.
    if qdisc.kind == "pfifo_fast" && device.sysfs.tx_queue_len_packets.value() == Some(&0) {
        return Some("pfifo_fast on a device with txqueuelen 0".into());
    }
    match qdisc.limit? {
        QdiscLimit::Packets(packets @ (0 | 1)) => {
            Some(format!("{} with a limit of {packets} packets", qdisc.kind))
        }
        QdiscLimit::Bytes(bytes) if bytes < mtu.saturating_add(HEADER_BYTES) => Some(format!(
            "{} with a limit of {bytes} bytes, and packets of up to {mtu}",
            qdisc.kind
        )),
        _ => None,
    }
}

fn limit(_: &Ask<'_>, device: &Device) -> Checked {
    let mtu = *(&device.sysfs.mtu_bytes).known()?;
    let short: Vec<String> =
        egress(device)?.filter_map(|qdisc| no_room(qdisc, device, mtu)).collect();
    if short.is_empty() {
        let kinds: Vec<&str> = egress(device)?.map(|qdisc| qdisc.kind.as_str()).collect();
        return Answer::fine(if kinds.is_empty() { "no qdisc".into() } else { kinds.join(", ") });
    }
    Answer::observed(short.join("; ")).advice(format!(
        "tc qdisc show dev {}, then the same kind with a larger limit, or none",
        device.name
    ))
}

/// A counter of the root qdisc in the window.
fn counted(
    ask: &Ask<'_>,
    device: &Device,
    width: Width,
    get: fn(&QdiscFacts) -> Option<u64>,
) -> Result<u64, Gap> {
    let Some(first) = root(device)? else { return Ok(0) };
    let later = ask.facts.later_device(device).and_then(|later| later.nic.qdiscs.value());
    let later = later.and_then(|all| all.iter().find(|qdisc| qdisc.is_root));
    // A qdisc that replaced another one counts from 0.
    let later = later.filter(|later| later.kind == first.kind);
    get(first).map_or(Ok(0), |count| Count::of(width, count, later.and_then(get)).in_window())
}

fn drops(ask: &Ask<'_>, device: &Device) -> Checked {
    let Some(qdisc) = root(device)? else { return Answer::silent("no qdisc") };
    let dropped = counted(ask, device, Width::U32, |qdisc| qdisc.drops_total)?;
    let sent = counted(ask, device, Width::U64, |qdisc| qdisc.packets_total)?;
    let ratio = dropped as f64 / dropped.saturating_add(sent).max(1) as f64;
    let told = format!(
        "{} dropped {} packets {} and let {} pass",
        qdisc.kind,
        grouped(dropped),
        ask.facts.watched.span(),
        grouped(sent)
    );
    if dropped < ENOUGH || ratio < MUCH_RATIO {
        return Answer::fine(told);
    }
    Answer::observed(told).advice(format!("tc -s qdisc show dev {} names the queue", device.name))
}

fn shaper(ask: &Ask<'_>, device: &Device) -> Checked {
    let Some(qdisc) = root(device)? else { return Answer::silent("no qdisc") };
    if !SHAPERS.contains(&qdisc.kind.as_str()) {
        return Answer::silent(format!("{} holds nothing back to a rate", qdisc.kind));
    }
    let held = counted(ask, device, Width::U32, |qdisc| qdisc.overlimits_total)?;
    let rate =
        qdisc.rate_bps.map_or_else(String::new, |rate| format!(" ({} Mb/s)", rate as f64 / 1e6));
    let told = format!(
        "{}{rate} held packets back {} times {}",
        qdisc.kind,
        grouped(held),
        ask.facts.watched.span()
    );
    if held < ENOUGH {
        return Answer::fine(told);
    }
    Answer::observed(told)
        .advice("find the program that made it; a container's or machine's limits may be intended")
}

fn ifb(ask: &Ask<'_>, device: &Device) -> Checked {
    if (&device.nic.link).known()?.kind.as_deref() != Some("ifb") {
        return Answer::silent("no ifb device");
    }
    let passed = ask.facts.device_count(device, "rx_packets").known()?.in_window()?;
    let told = format!(
        "{} redirected through it {}",
        number::counted(passed, "packet"),
        ask.facts.watched.span()
    );
    if passed < ENOUGH {
        return Answer::fine(told);
    }
    Answer::observed(told)
        .advice("tc filter show dev DEV ingress, on the device that receives, shows what redirects")
}
