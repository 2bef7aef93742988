//! What the network cards of the hosts count, by the names of the two sides.

use std::time::Duration;

use rxpath_core::Side;
use rxpath_record::ledger::{OneWay, WireCounters, WireFacts};

use crate::hosts::{ConnectedHost, Hosts};
use crate::lowest::is_over_others;

/// The counters of what the receivers' rings lost: their counters stand under the same names, and a name means other things
/// to another driver. Of none, what all drivers count.
pub fn ring(receivers: &[ConnectedHost]) -> Vec<String> {
    match receivers {
        [first, others @ ..] if others.iter().all(|host| has_driver_of(host, first)) => {
            named(Side::Rx, &first.card.ring)
        }
        _ => Vec::new(),
    }
}

fn has_driver_of(host: &ConnectedHost, other: &ConnectedHost) -> bool {
    host.device.driver == other.device.driver
}

fn named(side: Side, names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("{side}/{name}")).collect()
}

/// How long the counters of the slowest card lag.
pub fn settle(hosts: &Hosts) -> Duration {
    hosts.all().map(|host| host.card.settle()).max().unwrap_or_default()
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
        let all = hosts.of(side);
        if all.iter().any(|host| !has_driver_of(host, &all[0])) {
            return WireFacts::Unknown(format!("the {whose} cards have different drivers"));
        }
        // Devices below have names of their own on each host, and the first one's alone are asked for.
        let kind = all[0].device.driver.as_str();
        if all.len() > 1 && is_over_others(Some(kind)) {
            return WireFacts::Unknown(format!("the {whose} cards are devices below a {kind}"));
        }
    }
    let (sender, receiver) = (&hosts.senders[0], hosts.receiver());
    WireFacts::Counted(Box::new(WireCounters {
        forward: one_way((sender, Side::Tx), (receiver, Side::Rx)),
        backward: one_way((receiver, Side::Rx), (sender, Side::Tx)),
    }))
}

fn one_way(from: (&ConnectedHost, Side), to: (&ConnectedHost, Side)) -> OneWay {
    OneWay {
        sent: named(from.1, &from.0.card.sent),
        received: named(to.1, &to.0.card.received),
        perhaps_received: named(to.1, &to.0.card.perhaps_received),
        damaged: named(to.1, &to.0.card.damaged),
    }
}
