//! Flow control: a receiver that stops the sender.

use rxpath_host::read::counter::Width;
use rxpath_host::read::netlink::ethtool::Pause;

use crate::prelude::*;

/// The checks of the rules of this file.
pub const CHECKS: Checks = &[("flow-control-pause", Check::Nic(pause))];

/// Throughput asks for less: flow control costs it something only while this host stops the other end.
fn stops(ask: &Ask<'_>, device: &Device, pause: &Pause) -> Checked {
    if pause.tx == Some(false) {
        return Answer::fine("this host sends no pause frames");
    }
    let first = pause.tx_pause_packets.or_gap("pause frames sent")?;
    let later = ask.facts.later_device(device).and_then(|later| later.nic.pause.value());
    let sent = Count::of(Width::U64, first, later.and_then(|later| later.tx_pause_packets));
    let told = ask.facts.watched.tell(sent, "pause frames sent", "the driver was loaded");
    if matches!(sent.evidence(), Evidence::Never | Evidence::Old) {
        return Answer::fine(told);
    }
    Answer::found(
        told,
        "none",
        "this host cannot receive as fast as packets arrive, and stops the other end",
    )
    .advice(
        "flow control hides a loss: look for its cause first (interrupts, rings, PCIe lanes, the readers); a stopped \
         switch stops other hosts as well",
    )
    .rests_on(sent, &ask.facts.watched)
}

fn pause(ask: &Ask<'_>, device: &Device) -> Checked {
    let pause = (&device.nic.pause).known()?;
    if ask.goal == Some(Throughput) {
        return stops(ask, device, pause);
    }
    let on: Vec<&str> = [("rx", pause.rx), ("tx", pause.tx)]
        .into_iter()
        .filter(|(_, on)| *on == Some(true))
        .map(|(name, _)| name)
        .collect();
    if on.is_empty() {
        return Answer::fine("rx and tx off");
    }
    let counted: Vec<String> =
        [("sent", pause.tx_pause_packets), ("received", pause.rx_pause_packets)]
            .into_iter()
            .filter_map(|(name, count)| {
                count.filter(|n| *n > 0).map(|n| format!("{n} pause frames {name}"))
            })
            .collect();
    let mut observed = format!("flow control {} on", on.join(" and "));
    if !counted.is_empty() {
        observed += &format!(", {} since the driver was loaded", counted.join(", "));
    }
    let set = |which: &str| Set::switch(Knob::part(&device.name, Group::Pause, which), false);
    let found = Answer::observed(observed);
    let found = if pause.autoneg == Some(true) { found.change(set("autoneg")) } else { found };
    found.changes(on.into_iter().map(set))
}
