//! The clocks of all hosts, compared, and those of each sender with each receiver.

use rxpath_core::Warning;

use super::delay::Pair;
use crate::endpoint::clock::ClockBounds;
use crate::error::LabError;
use crate::hosts::probe::PathFault;
use crate::hosts::{ConnectedHost, Hosts};

/// The clocks of all hosts now: the senders', then the receivers'.
fn compared(hosts: &Hosts) -> Result<Vec<ClockBounds>, LabError> {
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

/// The clocks of all hosts, and those of each pair by datagrams over the path to a port, if there is one.
pub(super) struct ClocksNow {
    /// The senders', then the receivers'.
    pub clocks: Vec<ClockBounds>,
    /// For each receiver, each sender's clock with the receiver's.
    pub pairs: Vec<Pair>,
    /// Of each pair why the path shows nothing; none without a port.
    faults: Vec<Option<PathFault>>,
}

impl ClocksNow {
    /// Compares them now.
    pub fn compare(hosts: &Hosts, port: Option<u16>) -> Result<Self, LabError> {
        let clocks = compared(hosts)?;
        let found = port.map(|port| hosts.clocks_over_path(port)).unwrap_or_default();
        let paths: Vec<_> = found.iter().map(|path| path.clone().ok().flatten()).collect();
        let pairs = pairs(hosts, &clocks, &paths);
        let faults = found.into_iter().map(Result::err).collect();
        Ok(Self { clocks, pairs, faults })
    }

    /// What else the path showed.
    pub fn notes(&self, hosts: &Hosts) -> PathNotes {
        let names = hosts.receivers.iter().flat_map(|receiver| {
            hosts.senders.iter().map(move |sender| [sender, receiver].map(|it| it.client.alias()))
        });
        let mut notes = PathNotes::default();
        for (at, (names, pair)) in names.zip(&self.pairs).enumerate() {
            let fault = self.faults.get(at).and_then(Option::as_ref);
            notes.add(names, pair.contradiction_ns(), fault);
        }
        notes
    }
}

/// What comparisons over the measured path showed, except where the clocks are.
#[derive(Default)]
pub(super) struct PathNotes {
    /// Clocks that jumped: the pair, and how that was seen.
    pub jumps: Vec<String>,
    /// Pairs whose clocks were compared over the control connections only, and why.
    missing: Vec<String>,
}

impl PathNotes {
    /// Of a pair: how far the path contradicts the control connections, and why there is no comparison.
    fn add(
        &mut self,
        [sender, receiver]: [&str; 2],
        contradiction_ns: Option<u64>,
        fault: Option<&PathFault>,
    ) {
        let pair = format!("{sender} -> {receiver}");
        self.jumps.extend(contradiction_ns.map(|apart_ns| {
            let apart_us = apart_ns as f64 / 1e3;
            format!(
                "{pair}: their clocks differ by {apart_us:.0} us more over the measured path than over the control connections"
            )
        }));
        match fault {
            None => {}
            Some(PathFault::Jumped) => {
                self.jumps
                    .push(format!("{pair}: a clock jumped between datagrams on the measured path"));
            }
            Some(PathFault::Missing(why)) => self.missing.push(format!("{pair} ({why})")),
        }
    }

    /// A warning that names the pairs whose clocks were not compared over the path, here or in an earlier comparison.
    pub fn warning(&self, before: &Self) -> Option<Warning> {
        let later = self.missing.iter().filter(|pair| !before.missing.contains(pair));
        let pairs: Vec<&str> = before.missing.iter().chain(later).map(String::as_str).collect();
        let text =
            format!("clocks compared over the control connections only: {}", pairs.join(", "));
        (!pairs.is_empty()).then(|| {
            Warning::new("no-path-clock", text).because(
                "without datagrams on the measured path the bound of one-way delays is larger",
            )
        })
    }
}

/// For each receiver, each sender's clock with the receiver's; no difference where they are one. `paths` are those that were
/// compared over the measured path, in the same order.
pub(super) fn pairs(
    hosts: &Hosts,
    clocks: &[ClockBounds],
    paths: &[Option<ClockBounds>],
) -> Vec<Pair> {
    let (of_senders, of_receivers) = clocks.split_at(hosts.senders.len());
    let mut all = Vec::new();
    for (receiver, own) in hosts.receivers.iter().zip(of_receivers) {
        let of = |(sender, clock): (&ConnectedHost, &ClockBounds)| {
            let exact = sender.has_clock_of(receiver);
            let one = ClockBounds { most_ns: own.least_ns, ..*own };
            let (sender, receiver) = if exact { (one, one) } else { (*clock, *own) };
            Pair { sender, receiver, path: None }
        };
        all.extend(hosts.senders.iter().zip(of_senders).map(of));
    }
    for (pair, path) in all.iter_mut().zip(paths) {
        let here = |path: ClockBounds| ClockBounds {
            at_ns: pair.sender.clock().from_host_ns(path.at_ns),
            ..path
        };
        pair.path = path.map(here);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_on_the_path_are_jumps_and_paths_without_a_comparison_are_one_warning() {
        let mut before = PathNotes::default();
        let missing = |why: &str| PathFault::Missing(why.into());
        before.add(["gen1", "sut"], Some(85_000), None);
        before.add(["gen2", "sut"], None, Some(&PathFault::Jumped));
        let jumps = [
            "gen1 -> sut: their clocks differ by 85 us more over the measured path than over the control connections",
            "gen2 -> sut: a clock jumped between datagrams on the measured path",
        ];
        assert_eq!(before.jumps, jumps);
        assert_eq!(before.warning(&PathNotes::default()), None);
        before.add(["gen3", "sut"], None, Some(&missing("no datagram was answered")));
        let mut after = PathNotes::default();
        after.add(["gen3", "sut"], None, Some(&missing("no datagram was answered")));
        after.add(["gen4", "sut"], None, Some(&missing("the port is taken")));
        let text = "clocks compared over the control connections only: \
                    gen3 -> sut (no datagram was answered), gen4 -> sut (the port is taken)";
        assert_eq!(after.warning(&before).unwrap().text, text);
    }
}
