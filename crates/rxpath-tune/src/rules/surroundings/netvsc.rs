//! Hyper-V and Azure: the virtual function below a synthetic NIC.

use rxpath_core::number::grouped;
use rxpath_host::read::counter::Width;

use crate::prelude::*;

/// Fewer packets do not show which path most of them take: broadcasts and the first packets take the slow path.
const MANY: u64 = 10_000;

/// If the virtual function received this share of the packets, it carries the traffic.
const USED_RATIO: f64 = 0.5;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[("netvsc-vf", Check::Device(function))];

/// What came by the function.
fn by_function(ask: &Ask<'_>, device: &Device) -> Result<Count, Gap> {
    ask.facts.driver_count(device, "vf_rx_packets")?.or_gap("vf_rx_packets")
}

fn function(ask: &Ask<'_>, device: &Device) -> Checked {
    if device.driver() != "hv_netvsc" {
        return Answer::silent("no synthetic NIC of Hyper-V");
    }
    if let Some(silent) = quiet(device) {
        return silent;
    }
    let own = |other: &&Device| other.master.value() == Some(&device.name);
    let Some(vf) = ask.facts.nics().find(own) else {
        return without(by_function(ask, device)?);
    };
    if vf.is_up() {
        return carried(ask, device, vf);
    }
    Answer::observed(format!("its virtual function {} ({}) is down", vf.name, vf.driver()))
    .advice(format!(
        "ip link set {} up; find out why it is down: a network manager that treats it as a separate NIC, or its \
         driver (dmesg)",
        vf.name
    ))
}

/// There is no function: none was provided, or it was removed.
fn without(by_vf: Count) -> Checked {
    if by_vf.total < MANY {
        return Answer::silent(
            "no virtual function below it: accelerated networking is not provided here",
        );
    }
    Answer::found(
        format!(
            "{} packets came by a virtual function that is not there now",
            grouped(by_vf.total)
        ),
        "a virtual function below it",
        "every packet takes the slow path through the hypervisor",
    )
    .advice("the host removes it for servicing and restores it; if it stays away, check dmesg, lspci and its driver's \
             module")
    .severity(Info)
}

/// The path of packets while the function is up.
fn carried(ask: &Ask<'_>, device: &Device, vf: &Device) -> Checked {
    let by_vf = by_function(ask, device)?;
    let name = "rx_packets";
    let first = device.sysfs.statistics.get(name).copied().or_gap(name)?;
    let later = ask.facts.later_device(device).and_then(|later| later.statistics.get(name));
    let all = Count::of(Width::U64, first, later.copied());
    if all.total < MANY {
        return Answer::silent("too few packets came to know which path they take");
    }
    let recent = all.recent.zip(by_vf.recent).map(|(all, by_vf)| all.saturating_sub(by_vf));
    let slow = Count { total: all.total.saturating_sub(by_vf.total), recent };
    let ratio = slow.ratio_of(all).unwrap_or(0.0);
    if ratio < 1.0 - USED_RATIO {
        return Answer::fine(format!("{:.0} % came by {}", (1.0 - ratio) * 100.0, vf.name));
    }
    let told = ask.facts.watched.tell(
        slow,
        "packets came past the virtual function",
        "the driver was loaded",
    );
    Answer::found(
        format!("{told}: {:.0} % of all, while {} ({}) is up", ratio * 100.0, vf.name, vf.driver()),
        "most of them by the virtual function",
        "the host's switch copies each packet that does not come by it",
    )
    .advice(format!(
        "ip link set {0} down, then up: the data path is switched when it comes up; {0} must have no address of its own",
        vf.name
    ))
    .rests_on(slow, &ask.facts.watched)
}
