//! The clocks of all hosts, compared, and those of each sender with its receivers.

use super::delay::Pair;
use crate::endpoint::clock::ClockBounds;
use crate::error::LabError;
use crate::hosts::path_clocks::PathNotes;
use crate::hosts::probe::PathFault;
use crate::hosts::{ConnectedHost, Hosts};

/// Clocks that jumped between two comparisons: the host, and by how much.
pub(super) fn jumps(hosts: &Hosts, before: &[ClockBounds], now: &[ClockBounds]) -> Vec<String> {
    let jump = |((host, before), now): ((&ConnectedHost, &ClockBounds), &ClockBounds)| {
        let jump_ms = now.jump_since(*before)? as f64 / 1e6;
        Some(format!("{}: its clock jumped by {jump_ms:.1} ms in the trial", host.client.alias()))
    };
    hosts.all().zip(before).zip(now).filter_map(jump).collect()
}

/// The clocks of all hosts, and those of each pair by datagrams over the path to a port, if there is one.
pub(super) struct ClocksNow {
    /// The senders', then the receivers'.
    pub clocks: Vec<ClockBounds>,
    /// The comparison since which no clock jumped.
    pub since: Vec<ClockBounds>,
    /// Of each pair the sender's clock with the receiver's.
    pub pairs: Vec<Pair>,
    /// Of each pair why the path shows nothing; none without a port.
    faults: Vec<Option<PathFault>>,
}

impl ClocksNow {
    /// Compares them now.
    pub fn compare(hosts: &Hosts, port: Option<u16>) -> Result<Self, LabError> {
        let clocks = hosts.all().map(|host| host.client.clock()).collect::<Result<Vec<_>, _>>()?;
        let first: Vec<ClockBounds> = hosts.all().map(|host| host.clock).collect();
        let since = hosts.steady.note(&first, &clocks);
        let found = port.map(|port| hosts.clocks_over_path(port)).unwrap_or_default();
        let paths: Vec<_> = found.iter().map(|path| path.clone().ok().flatten()).collect();
        let pairs = pairs(hosts, &clocks, &paths);
        Ok(Self { clocks, since, pairs, faults: found.into_iter().map(Result::err).collect() })
    }

    /// What else the path showed.
    pub fn notes(&self, hosts: &Hosts) -> PathNotes {
        let mut notes = PathNotes::default();
        for (at, (names, pair)) in hosts.pair_names().zip(&self.pairs).enumerate() {
            let fault = self.faults.get(at).and_then(Option::as_ref);
            notes.add(names, pair.contradiction_ns(), fault);
        }
        notes
    }
}

/// Of each pair the sender's clock with the receiver's; no difference where they are one. `paths` are those that were compared
/// over the measured path, in the same order.
pub(super) fn pairs(
    hosts: &Hosts,
    clocks: &[ClockBounds],
    paths: &[Option<ClockBounds>],
) -> Vec<Pair> {
    let (of_senders, of_receivers) = clocks.split_at(hosts.senders.len());
    let of = |((sender, receiver), path): ((usize, usize), Option<ClockBounds>)| {
        let (clock, own) = (of_senders[sender], of_receivers[receiver]);
        let exact = hosts.senders[sender].has_clock_of(&hosts.receivers[receiver]);
        let one = ClockBounds { most_ns: own.least_ns, ..own };
        let (sender, receiver) = if exact { (one, one) } else { (clock, own) };
        let here = |at_ns: u64| sender.clock().from_host_ns(at_ns);
        let path = path.map(|path| ClockBounds { at_ns: here(path.at_ns), ..path });
        Pair { sender, receiver, path }
    };
    let paths = paths.iter().copied().chain(std::iter::repeat(None));
    hosts.pairs.each().zip(paths).map(of).collect()
}
