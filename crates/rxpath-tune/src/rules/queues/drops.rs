//! Packets that a device drops or that arrive damaged, while rxpath watches.

use rxpath_core::number::grouped;

use crate::prelude::*;

/// Fewer drops in the window are normal: some packets belong to protocols that this host does not use.
const ENOUGH: u64 = 25;
const MUCH_RATIO: f64 = 0.01;

/// From this many damaged frames on, the cable should be checked.
const DAMAGED: u64 = 3;
const DAMAGED_RATIO: f64 = 1e-5;

/// The checks of the rules of this file.
pub const CHECKS: Checks =
    &[("device-drops", Check::Active(drops)), ("wire-errors", Check::Nic(damaged))];

fn drops(ask: &Ask<'_>, device: &Device) -> Checked {
    let in_window = |name: &str| ask.facts.device_count(device, name).known()?.in_window();
    let mut told = Vec::new();
    let mut much = false;
    for (dropped, passed, words) in
        [("rx_dropped", "rx_packets", "received"), ("tx_dropped", "tx_packets", "sent")]
    {
        let (lost, of) = (in_window(dropped)?, in_window(passed)?);
        // Drivers differ in whether the one is part of the other.
        let ratio = lost as f64 / of.max(lost).max(1) as f64;
        let is_much = lost >= ENOUGH && ratio >= MUCH_RATIO;
        much |= is_much;
        if is_much || told.is_empty() {
            told.push(format!("{dropped} {} next to {} {words}", grouped(lost), grouped(of)));
        }
    }
    let observed = format!("{} {}", told.join(", "), ask.facts.watched.span());
    if !much {
        return Answer::fine(observed);
    }
    Answer::observed(observed)
        .advice("`rxpath trace` names the function that drops, and the reason")
}

fn damaged(ask: &Ask<'_>, device: &Device) -> Checked {
    let in_window = |name: &str| ask.facts.device_count(device, name).known()?.in_window();
    let received = in_window("rx_packets")?;
    let mut told = Vec::new();
    let mut most = 0;
    for name in ["rx_crc_errors", "rx_frame_errors", "rx_length_errors"] {
        let count = in_window(name)?;
        most = most.max(count);
        if count > 0 {
            told.push(format!("{name} {}", grouped(count)));
        }
    }
    let ratio = most as f64 / received.max(most).max(1) as f64;
    let span = ask.facts.watched.span();
    if most < DAMAGED || ratio < DAMAGED_RATIO {
        let [most, received] = [most, received].map(grouped);
        return Answer::fine(format!("{most} of {received} frames {span}"));
    }
    Answer::observed(format!(
        "{} next to {} frames received {span}",
        told.join(", "),
        grouped(received)
    ))
    .advice("clean or replace cable and transceiver, and compare speed and duplex of both ends")
    .severity(if ratio > 0.001 { Fail } else { Warn })
}
