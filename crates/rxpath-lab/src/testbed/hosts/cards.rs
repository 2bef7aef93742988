//! What the network cards of the hosts count, by the names of the two sides.

use std::time::Duration;

use rxpath_core::Side;
use rxpath_record::ledger::{OneWay, WireCounters, WireFacts};

use crate::hosts::{ConnectedHost, Hosts};
use crate::lowest::is_over_others;

/// The counters of what the receiver's ring lost.
pub fn ring(receiver: &ConnectedHost) -> Vec<String> {
    named(Side::Rx, &receiver.card.ring)
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
    let Some(first) = hosts.senders.first() else { return WireFacts::NoCards };
    // Their counters stand under the same names, and a name means other things to another driver.
    if hosts.senders.iter().any(|host| host.device.driver != first.device.driver) {
        return WireFacts::Unknown("the senders' cards have different drivers".into());
    }
    // Devices below have names of their own on each host, and the first one's alone are asked for.
    if hosts.senders.len() > 1 && is_over_others(Some(first.device.driver.as_str())) {
        let kind = &first.device.driver;
        return WireFacts::Unknown(format!("several senders send by devices below a {kind}"));
    }
    WireFacts::Counted(Box::new(WireCounters {
        forward: one_way((first, Side::Tx), (&hosts.receiver, Side::Rx)),
        backward: one_way((&hosts.receiver, Side::Rx), (first, Side::Tx)),
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
