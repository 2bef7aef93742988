//! The clocks of all hosts, compared, and those of each sender with each receiver.

use super::delay::Pair;
use crate::endpoint::clock::ClockBounds;
use crate::error::LabError;
use crate::hosts::{ConnectedHost, Hosts};

/// The clocks of all hosts now: the senders', then the receivers'.
pub(super) fn compared(hosts: &Hosts) -> Result<Vec<ClockBounds>, LabError> {
    hosts.all().map(|host| host.client.clock()).collect()
}

/// Clocks that jumped between two comparisons: the host, and by how much.
pub(super) fn jumps(hosts: &Hosts, before: &[ClockBounds], now: &[ClockBounds]) -> Vec<String> {
    let jump = |((host, before), now): ((&ConnectedHost, &ClockBounds), &ClockBounds)| {
        let jump_ms = now.jump_since(*before)? as f64 / 1e6;
        Some(format!("{}: its clock jumped by {jump_ms:.1} ms in the trial", host.client.alias()))
    };
    hosts.all().zip(before).zip(now).filter_map(jump).collect()
}

/// For each receiver, each sender's clock with the receiver's; no difference where they are one.
pub(super) fn pairs(hosts: &Hosts, clocks: &[ClockBounds]) -> Vec<Pair> {
    let (of_senders, of_receivers) = clocks.split_at(hosts.senders.len());
    let mut all = Vec::new();
    for (receiver, own) in hosts.receivers.iter().zip(of_receivers) {
        let of = |(sender, clock): (&ConnectedHost, &ClockBounds)| {
            let exact = sender.has_clock_of(receiver);
            let one = ClockBounds { most_ns: own.least_ns, ..*own };
            let (sender, receiver) = if exact { (one, one) } else { (*clock, *own) };
            Pair { sender, receiver }
        };
        all.extend(hosts.senders.iter().zip(of_senders).map(of));
    }
    all
}
