//! The hosts over the trials of a variant: what they sent to each other and lost, and how quiet they were.

use std::collections::BTreeMap;

use super::PairPackets;
use crate::grade::Grade;
use crate::ledger::{LedgerUnit, PacketBounds, Place};
use crate::manifest::Manifest;

/// What one of several receivers lost at a place, over trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverLoss {
    /// As it is shown.
    packets: u64,
    bounds: PacketBounds,
    /// To this receiver.
    offered_packets: u64,
}

impl ReceiverLoss {
    /// For people: `12`, `12 (between 3 and 41)`, `up to 41`, `at least 12`.
    pub fn text(&self) -> String {
        self.bounds.around(self.packets, self.offered_packets)
    }
}

impl Manifest {
    /// What each sender sent to each receiver in the trials of a variant that its figures are made of; nothing if there is
    /// only one of each.
    pub fn pairs(&self, variant: &str) -> Vec<PairPackets> {
        let mut all: Vec<PairPackets> = Vec::new();
        for pair in self.counted(variant).into_iter().flat_map(|trial| &trial.pairs) {
            let is_it = |it: &&mut PairPackets| {
                (&it.sender, &it.receiver) == (&pair.sender, &pair.receiver)
            };
            match all.iter_mut().find(is_it) {
                Some(sum) => {
                    sum.offered_packets += pair.offered_packets;
                    let both = sum.delivered_packets.zip(pair.delivered_packets);
                    sum.delivered_packets = both.map(|(a, b)| a + b);
                }
                None => all.push(pair.clone()),
            }
        }
        all
    }

    /// What each of several receivers lost in these trials, or may have lost, by place, with its share of what was lost before the
    /// receivers.
    pub fn receiver_losses(&self, variant: &str) -> BTreeMap<(String, Place), ReceiverLoss> {
        let trials = self.counted(variant).into_iter();
        let (mut all, mut offered) = (BTreeMap::new(), BTreeMap::<&String, u64>::new());
        for (alias, host) in trials.flat_map(|trial| &trial.hosts) {
            let Some(ledger) = &host.ledger else { continue };
            *offered.entry(alias).or_default() += ledger.offered_packets;
            for drop in &ledger.drops {
                let bounds = PacketBounds { least_packets: 0, most_packets: Some(0) };
                let none = ReceiverLoss { packets: 0, bounds, offered_packets: 0 };
                let loss = all.entry((alias.clone(), drop.place)).or_insert(none);
                loss.packets += drop.packets;
                loss.bounds = loss.bounds.plus(drop.range());
            }
        }
        all.retain(|_, loss| loss.bounds.most_packets != Some(0));
        for ((alias, _), loss) in &mut all {
            loss.offered_packets = offered.get(alias).copied().unwrap_or_default();
        }
        all
    }

    /// What the ledgers of these trials count.
    pub fn ledger_unit(&self, variant: &str) -> LedgerUnit {
        self.counted(variant).first().map_or(LedgerUnit::default(), |trial| trial.ledger.unit)
    }

    /// The worst grade of each host over these trials, with the first reason.
    pub fn host_grades(&self, variant: &str) -> BTreeMap<String, (Grade, String)> {
        let trials = self.counted(variant).into_iter();
        let mut worst: BTreeMap<String, (Grade, String)> = BTreeMap::new();
        for (alias, host) in trials.flat_map(|trial| &trial.hosts) {
            let own = worst.entry(alias.clone()).or_default();
            if host.grade > own.0 {
                *own = (host.grade, host.noise.first().cloned().unwrap_or_default());
            }
        }
        worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rxpath_core::PathSide;

    use crate::hosts::HostTrial;
    use crate::ledger::{Drop, Ledger};
    use crate::manifest::Trial;

    fn pair(receiver: &str, offered: u64, delivered: Option<u64>) -> PairPackets {
        PairPackets {
            sender: "gen1".into(),
            receiver: receiver.into(),
            offered_packets: offered,
            delivered_packets: delivered,
        }
    }

    #[test]
    fn pairs_and_grades_are_those_of_the_counted_trials() {
        let host = |grade, why: &str| HostTrial {
            grade,
            noise: vec![why.into()],
            ledger: Some(Ledger {
                drops: vec![Drop::counted(Place::Ring, "rx/ring".into(), 3)],
                ..Ledger::default()
            }),
            ..HostTrial::of(PathSide::Rx)
        };
        let trial = |void: Option<&str>, lost: u64, grade| Trial {
            variant: "base".into(),
            block: 1,
            void: void.map(str::to_owned),
            pairs: vec![pair("sut", 100, Some(100 - lost)), pair("sut2", 50, None)],
            hosts: [("sut".to_owned(), host(grade, "busy"))].into(),
            ..Trial::default()
        };
        let manifest = Manifest {
            trials: vec![
                trial(None, 1, Grade::A),
                trial(Some("noise"), 90, Grade::D),
                trial(None, 3, Grade::C),
            ],
            ..Manifest::default()
        };
        let all = manifest.pairs("base");
        assert_eq!(all, [pair("sut", 200, Some(196)), pair("sut2", 100, None)]);
        assert_eq!(all[0].text(), "gen1 -> sut: 200 datagrams offered, 2.00 % lost");
        assert_eq!(all[1].lost_ratio(), None);
        let grades = manifest.host_grades("base");
        assert_eq!(grades["sut"], (Grade::C, "busy".to_owned()));
        let texts = |manifest: &Manifest| -> Vec<_> {
            let losses = manifest.receiver_losses("base").into_iter();
            losses.map(|((alias, place), loss)| (alias, place, loss.text())).collect()
        };
        assert_eq!(texts(&manifest), [("sut".to_owned(), Place::Ring, "6".to_owned())]);
        // A share of what was lost before the receivers is no number, and another place may have lost as much.
        let mut shared = manifest;
        for host in shared.trials.iter_mut().flat_map(|trial| trial.hosts.values_mut()) {
            let ledger = host.ledger.as_mut().unwrap();
            let share = |place, packets| Drop {
                exact: false,
                bounds: Some(PacketBounds { least_packets: 0, most_packets: Some(40) }),
                ..Drop::counted(place, "tx/queue".into(), packets)
            };
            ledger.drops.extend([share(Place::Qdisc, 15), share(Place::Network, 0)]);
        }
        let of_sut = |place, text: &str| ("sut".to_owned(), place, text.to_owned());
        let wanted = [
            of_sut(Place::Qdisc, "30 (between 0 and 80)"),
            of_sut(Place::Network, "up to 80"),
            of_sut(Place::Ring, "6"),
        ];
        assert_eq!(texts(&shared), wanted);
    }

    #[test]
    fn more_read_than_offered_is_no_negative_loss() {
        assert_eq!(pair("sut", 10, Some(12)).lost_ratio(), Some(0.0));
        assert_eq!(pair("sut", 0, Some(0)).lost_ratio(), None);
    }
}
