//! The clocks of each sender and each receiver by datagrams on their path.

use std::collections::BTreeMap;

use rxpath_core::Warning;
use rxpath_record::hosts::PathOffset;
use rxpath_record::manifest::HostPart;

use super::Hosts;
use super::probe::{PathFault, ports};
use crate::scenario::spec::Resolved;

impl Hosts {
    /// The aliases of the sender and the receiver of each pair.
    pub fn pair_names(&self) -> impl Iterator<Item = [&str; 2]> {
        let pair = move |(sender, receiver): (usize, usize)| {
            [&self.senders[sender], &self.receivers[receiver]].map(|host| host.client.alias())
        };
        self.pairs.each().map(pair)
    }

    /// Notes for each sender how far its clock is ahead of that of each of its receivers, once a run is over, if a variant sends datagrams.
    /// Pairs that have one clock have none. A warning says of which pairs the path shows nothing, and why.
    ///
    /// **Cost** some ms for each round of pairs; 1 s if the path loses the datagrams.
    pub fn note_path_clocks(
        &self,
        parts: &mut BTreeMap<String, HostPart>,
        resolved: &Resolved,
    ) -> Option<Warning> {
        let udp = ports(resolved).into_iter().find(|port| !port.tcp)?;
        let mut notes = PathNotes::default();
        for (names, found) in self.pair_names().zip(self.clocks_over_path(udp.port)) {
            match found {
                Ok(None) => {}
                Ok(Some(bounds)) => {
                    let [sender, receiver] = names;
                    let (ahead_ns, error_ns) = (bounds.clock().ahead_ns, bounds.error_ns());
                    if let Some(part) = parts.get_mut(sender) {
                        let offset = PathOffset { ahead_ns, error_ns };
                        part.path_clocks.insert(receiver.to_owned(), offset);
                    }
                }
                Err(fault) => notes.add(names, None, Some(&fault)),
            }
        }
        notes.warning_of_end()
    }
}

/// What comparisons over the measured path showed, except where the clocks are.
#[derive(Default)]
pub struct PathNotes {
    /// Clocks that jumped: the pair, and how that was seen.
    pub jumps: Vec<String>,
    /// Pairs whose clocks were compared over the control connections only, and why.
    missing: Vec<String>,
}

impl PathNotes {
    /// Of a pair: how far the path contradicts the control connections, and why there is no comparison.
    pub fn add(
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

    /// A warning that names the pairs of which the comparison at the end of a run shows nothing.
    fn warning_of_end(&self) -> Option<Warning> {
        let pairs: Vec<&str> = self.missing.iter().chain(&self.jumps).map(String::as_str).collect();
        let text = format!(
            "at the end of the run clocks were compared over the control connections only: {}",
            pairs.join(", ")
        );
        let why = "the line `clocks` has the interval of the control connections at the start";
        (!pairs.is_empty()).then(|| Warning::new("no-path-clock", text).because(why))
    }
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

    #[test]
    fn why_the_path_shows_nothing_at_the_end_of_a_run_is_a_warning() {
        let mut end = PathNotes::default();
        assert_eq!(end.warning_of_end(), None);
        end.add(
            ["gen1", "sut"],
            None,
            Some(&PathFault::Missing("no datagram was answered".into())),
        );
        end.add(["gen2", "sut"], None, Some(&PathFault::Jumped));
        end.add(["gen3", "sut"], None, None);
        let text = "at the end of the run clocks were compared over the control connections only: \
                    gen1 -> sut (no datagram was answered), \
                    gen2 -> sut: a clock jumped between datagrams on the measured path";
        assert_eq!(end.warning_of_end().unwrap().text, text);
    }
}
