//! What the network cards of the hosts count, by the names of the two sides.

use rxpath_core::Side;
use rxpath_host::nic::losses::CardCounters;
use rxpath_record::ledger::{OneWay, WireCounters, WireFacts};

use super::counters::{on_side, shown};
use crate::hosts::{ConnectedHost, Hosts};

/// The counters of what the receivers' rings lost. None where one of them does not say, and where drivers differ, because a
/// name means other things to another driver: then what all drivers count stands for it.
pub fn ring(hosts: &Hosts) -> Vec<String> {
    let are_known = hosts.receivers.iter().all(|host| !host.card.ring.is_empty());
    let is_told = are_known && has_one_driver(&hosts.receivers);
    if is_told { named(hosts, Side::Rx, |card| &card.ring) } else { Vec::new() }
}

fn has_one_driver(hosts: &[ConnectedHost]) -> bool {
    hosts.iter().all(|host| host.device.driver == hosts[0].device.driver)
}

/// Counters of the cards of a side by their names in a snapshot.
fn named(hosts: &Hosts, side: Side, of: impl Fn(&CardCounters) -> &[String]) -> Vec<String> {
    let cards: Vec<_> = hosts
        .counting(side)
        .map(|host| (host.client.alias(), host.device.name.as_str(), of(&host.card)))
        .collect();
    joined(side, &cards)
}

/// Names of counters of each host's card as those of the side: hosts, their devices, and what the cards count.
fn joined(side: Side, cards: &[(&str, &str, &[String])]) -> Vec<String> {
    let shown = shown(cards.iter().map(|(_, device, _)| *device));
    let mut all = Vec::new();
    for &(alias, device, names) in cards {
        for name in names {
            let name = format!("{side}/{}", on_side(name, (alias, device), shown));
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    all
}

/// The counters of frames on the wire, or why there are none.
pub fn wire(hosts: &Hosts) -> WireFacts {
    if hosts.all().all(|host| host.device.driver == "veth") {
        return WireFacts::NoCards;
    }
    for host in hosts.all() {
        if let Some(why) = &host.card.wire_unknown {
            return WireFacts::Unknown(format!("{}: {why}", host.client.alias()));
        }
    }
    for (side, whose) in [(Side::Tx, "senders'"), (Side::Rx, "receivers'")] {
        if !has_one_driver(hosts.of(side)) {
            return WireFacts::Unknown(format!("the {whose} cards have different drivers"));
        }
    }
    WireFacts::Counted(Box::new(WireCounters {
        forward: one_way(hosts, Side::Tx, Side::Rx),
        backward: one_way(hosts, Side::Rx, Side::Tx),
    }))
}

fn one_way(hosts: &Hosts, from: Side, to: Side) -> OneWay {
    OneWay {
        sent: named(hosts, from, |card| &card.sent),
        received: named(hosts, to, |card| &card.received),
        perhaps_received: named(hosts, to, |card| &card.perhaps_received),
        damaged: named(hosts, to, |card| &card.damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_of_a_side_have_the_names_of_its_snapshot() {
        let names = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let two = names(&["ethtool.eth0.rx_missed_errors", "ethtool.eth0.rx_queue_0_drops"]);
        let more = names(&[
            "ethtool.eth1.rx_missed_errors",
            "ethtool.eth1.rx_queue_0_drops",
            "ethtool.eth1.rx_queue_1_drops",
        ]);
        // Counters of one name are one sum there.
        let all = joined(Side::Rx, &[("sut", "eth0", &two[..]), ("sut2", "eth1", &more[..])]);
        let wanted = ["missed_errors", "queue_0_drops", "queue_1_drops"];
        assert_eq!(all, wanted.map(|it| format!("rx/ethtool.eth0.rx_{it}")));
        // Members of bonds.
        let member = names(&["ethtool.ens1.rx_missed_errors"]);
        let all =
            joined(Side::Rx, &[("sut", "bond0", &member[..]), ("sut2", "bond0", &member[..])]);
        let wanted = ["sut", "sut2"].map(|it| format!("rx/ethtool.{it}:ens1.rx_missed_errors"));
        assert_eq!(all, wanted);
        let all = joined(Side::Rx, &[("sut", "bond0", &member[..])]);
        assert_eq!(all, ["rx/ethtool.ens1.rx_missed_errors"]);
    }
}
