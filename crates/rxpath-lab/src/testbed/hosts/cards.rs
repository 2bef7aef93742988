//! What the network cards of the hosts count, by the names of the two sides.

use rxpath_core::PathSide;
use rxpath_host::read::nic::losses::CardCounters;
use rxpath_record::ledger::{Link, OneWay, PathFacts, WireCounters, WireFacts};

use super::counters::{of_card, shown};
use crate::endpoint::counting::{FILTER_DROPS, ROOT_DROPS};
use crate::hosts::Hosts;

/// Counters of one host's card.
struct Card<'a> {
    alias: &'a str,
    device: &'a str,
    driver: &'a str,
    names: &'a [String],
}

/// What the ledger must know about the devices between the hosts.
pub fn path(hosts: &Hosts) -> PathFacts {
    let is_veth = hosts.all().all(|host| host.device.driver == "veth");
    // Counters of all hosts of a side stand under the first one's device.
    let tx_device = hosts.senders.first().map(|host| host.device.name.clone());
    let root = |device: &String| format!("{}/qdisc.{device}.{ROOT_DROPS}", PathSide::Tx);
    let filters = |device: &String| format!("{}/tc.{device}.{FILTER_DROPS}", PathSide::Tx);
    PathFacts {
        tx_qdisc: tx_device.as_ref().map(root),
        tx_filters: tx_device.as_ref().map(filters),
        tx_device,
        rx_device: hosts.receivers.first().map(|host| host.device.name.clone()),
        mtu_bytes: Some(hosts.mtu_bytes()).filter(|bytes| *bytes > 0),
        link: if is_veth { Link::Veth } else { Link::Nic },
        ring: ring(hosts),
        wire: wire(hosts),
        // Nobody makes their neighbours permanent.
        has_other_frames: true,
        ..PathFacts::default()
    }
}

/// The counters of what the receivers' rings lost, each by its own driver. None where one of them does not say: then what all
/// drivers count stands for it.
pub fn ring(hosts: &Hosts) -> Vec<String> {
    let are_known = hosts.receivers.iter().all(|host| !host.card.ring.is_empty());
    if are_known { named(hosts, PathSide::Rx, |card| &card.ring) } else { Vec::new() }
}

/// Counters of the cards of a side by their names in a snapshot.
fn named(hosts: &Hosts, side: PathSide, of: impl Fn(&CardCounters) -> &[String]) -> Vec<String> {
    let cards: Vec<Card<'_>> = hosts
        .counting(side)
        .map(|host| Card {
            alias: host.client.alias(),
            device: &host.device.name,
            driver: &host.device.driver,
            names: of(&host.card),
        })
        .collect();
    joined(side, &cards)
}

/// Names of counters of each host's card as those of the side.
fn joined(side: PathSide, cards: &[Card<'_>]) -> Vec<String> {
    let shown = shown(cards.iter().map(|card| (card.device, card.driver)));
    let mut all = Vec::new();
    for card in cards {
        for name in card.names {
            let name = format!("{side}/{}", of_card(name, (card.alias, card.device), shown));
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
    WireFacts::Counted(Box::new(WireCounters {
        forward: one_way(hosts, PathSide::Tx, PathSide::Rx),
        backward: one_way(hosts, PathSide::Rx, PathSide::Tx),
    }))
}

fn one_way(hosts: &Hosts, from: PathSide, to: PathSide) -> OneWay {
    OneWay {
        sent: named(hosts, from, |card| &card.sent),
        received: named(hosts, to, |card| &card.received),
        perhaps_received: named(hosts, to, |card| &card.perhaps_received),
        damaged: named(hosts, to, |card| &card.damaged),
    }
}

#[cfg(test)]
mod tests {
    use rxpath_host::read::nic::losses;
    use rxpath_record::counters::Snapshot;

    use super::super::counters::{HostCounters, of_sides};
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|it| (*it).to_owned()).collect()
    }

    fn card<'a>(
        (alias, device): (&'a str, &'a str),
        driver: &'a str,
        names: &'a [String],
    ) -> Card<'a> {
        Card { alias, device, driver, names }
    }

    #[test]
    fn cards_of_a_side_have_the_names_of_its_snapshot() {
        let two = names(&["ethtool.eth0.rx_missed_errors", "ethtool.eth0.rx_queue_0_drops"]);
        let more = names(&[
            "ethtool.eth1.rx_missed_errors",
            "ethtool.eth1.rx_queue_0_drops",
            "ethtool.eth1.rx_queue_1_drops",
        ]);
        // Counters of one name are one sum there.
        let cards = [card(("sut", "eth0"), "igb", &two), card(("sut2", "eth1"), "igb", &more)];
        let wanted = ["missed_errors", "queue_0_drops", "queue_1_drops"];
        assert_eq!(
            joined(PathSide::Rx, &cards),
            wanted.map(|it| format!("rx/ethtool.eth0.rx_{it}"))
        );
        // Members of bonds.
        let member = names(&["ethtool.ens1.rx_missed_errors"]);
        let of = |alias| card((alias, "bond0"), "bond", &member);
        let wanted = ["sut", "sut2"].map(|it| format!("rx/ethtool.{it}:ens1.rx_missed_errors"));
        assert_eq!(joined(PathSide::Rx, &[of("sut"), of("sut2")]), wanted);
        assert_eq!(joined(PathSide::Rx, &[of("sut")]), ["rx/ethtool.ens1.rx_missed_errors"]);
    }

    /// What a host has of a device eth0, and the counters of its row.
    fn host(
        side: PathSide,
        alias: &str,
        driver: &str,
        values: &[(&str, u64)],
    ) -> (HostCounters, CardCounters) {
        let on_device = |name: &str| {
            let (source, counter) = name.split_once('.').unwrap();
            format!("{source}.eth0.{counter}")
        };
        let offered: Vec<String> = values.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut card = losses::counters(driver, &offered);
        for name in card.sent.iter_mut().chain(&mut card.ring) {
            *name = on_device(name);
        }
        let values = values.iter().map(|&(name, value)| (on_device(name), value)).collect();
        let snapshot = Snapshot { values, ..Snapshot::default() };
        let reading = HostCounters {
            side,
            alias: alias.into(),
            device: "eth0".into(),
            driver: driver.into(),
            counts_machine: true,
            snapshot,
        };
        (reading, card)
    }

    /// The sum of counters of the cards of a side, and their names.
    fn summed(
        side: PathSide,
        hosts: Vec<(HostCounters, CardCounters)>,
        of: impl Fn(&CardCounters) -> &[String],
    ) -> (u64, Vec<String>) {
        let (readings, cards): (Vec<HostCounters>, Vec<CardCounters>) = hosts.into_iter().unzip();
        let each: Vec<Card<'_>> = readings
            .iter()
            .zip(&cards)
            .map(|(it, card)| Card {
                alias: &it.alias,
                device: &it.device,
                driver: &it.driver,
                names: of(card),
            })
            .collect();
        let all = joined(side, &each);
        let snapshot = of_sides(&readings, 0);
        (all.iter().map(|name| snapshot.values[name]).sum(), all)
    }

    #[test]
    fn senders_of_two_drivers_are_added_each_by_its_own_counters() {
        let ice = [
            ("ethtool.tx_unicast.nic", 1_000),
            ("ethtool.tx_multicast.nic", 20),
            ("ethtool.tx_broadcast.nic", 3),
            ("ethtool.rx_unicast.nic", 7),
            ("ethtool.rx_multicast.nic", 7),
            ("ethtool.rx_broadcast.nic", 7),
            // Software's, which is in no row.
            ("ethtool.tx_packets", 999),
        ];
        let mlx5 = [
            ("ethtool.tx_packets_phy", 50_000),
            ("ethtool.rx_packets_phy", 7),
            ("ethtool.tx_packets", 49_000),
        ];
        // Its row has a name that is software's of the other ones.
        let igb = [("ethtool.tx_packets", 600_000), ("ethtool.rx_packets", 7)];
        let hosts = vec![
            host(PathSide::Tx, "gen1", "ice", &ice),
            host(PathSide::Tx, "gen2", "mlx5_core", &mlx5),
            host(PathSide::Tx, "gen3", "igb", &igb),
        ];
        assert!(hosts.iter().all(|(_, card)| card.wire_unknown.is_none()));
        let (sent, names) = summed(PathSide::Tx, hosts, |card| &card.sent);
        assert_eq!(sent, 651_023, "{names:?}");
        assert!(names.contains(&"tx/ethtool.gen2:eth0.tx_packets_phy".to_owned()), "{names:?}");
    }

    #[test]
    fn rings_of_two_drivers_are_added_and_the_kernel_s_own_counter_of_one_card_is_not_the_other_s()
    {
        // ena folds what its ring lost into what the kernel drops, which igb does not.
        let ena = [("link.rx.dropped", 4), ("link.rx.packets", 100)];
        let igb = [("ethtool.rx_missed_errors", 30), ("link.rx.dropped", 900)];
        let hosts =
            vec![host(PathSide::Rx, "sut", "ena", &ena), host(PathSide::Rx, "sut2", "igb", &igb)];
        let (lost, names) = summed(PathSide::Rx, hosts, |card| &card.ring);
        let wanted = ["rx/link.sut:eth0.rx.dropped", "rx/ethtool.sut2:eth0.rx_missed_errors"];
        assert_eq!((lost, names), (34, wanted.map(str::to_owned).to_vec()));
    }
}
