//! Which source ports or addresses would spread flows evenly over the queues.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rxpath_core::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Flow, Hasher};
use crate::read::nic::Nic;
use crate::read::queue_map::DeviceQueues;

/// How many values are named for each queue.
const EACH: usize = 4;
/// How many ports and addresses are tried.
const TRIES: u16 = 16_384;

/// Values that lead to each queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteeringSuggestion {
    /// Each queue with source ports that lead to it; empty where ports are not hashed.
    pub source_ports: Vec<(u32, Vec<u16>)>,
    /// Each queue with source addresses that lead to it; empty where ports are hashed and do it.
    pub source_addresses: Vec<(u32, Vec<IpAddr>)>,
    /// Queues that no entry of the indirection table leads to: no flow gets there.
    pub unreachable_queues: Vec<u32>,
}

/// Finds source ports (or addresses, where ports are not hashed) that lead to each queue, the fields else as in `flow`.
///
/// A gap says why it can't be computed, as for the flow itself.
pub fn spread(flow: Flow, nic: &Nic, queues: &DeviceQueues) -> Fact<SteeringSuggestion> {
    if queues.rows.len() == 1 {
        return Fact::absent("the device has one queue: every flow lands on it");
    }
    Hasher::of(flow, nic).and_then(|hasher| match hasher.hash(flow) {
        Ok(_) => Fact::ok(spread_by(flow, &hasher, queues)),
        Err(why) => Fact::absent(why),
    })
}

/// As [`spread`], with the hash that the device makes of such flows.
fn spread_by(flow: Flow, hasher: &Hasher<'_>, queues: &DeviceQueues) -> SteeringSuggestion {
    let reachable = |queue: u32| hasher.table.contains(&queue);
    let (wanted, unreachable): (Vec<u32>, Vec<u32>) =
        queues.rows.iter().map(|row| row.queue).partition(|queue| reachable(*queue));
    let lands = |flow: Flow| hasher.hash(flow).ok().map(|hash| hasher.queue(hash));
    let mut spread =
        SteeringSuggestion { unreachable_queues: unreachable, ..SteeringSuggestion::default() };
    if hasher.fields.has_ports() {
        let first = flow.source.port().max(1024);
        let ports = (first..=u16::MAX).chain(1024..first).take(usize::from(TRIES));
        let tried = ports.map(|port| {
            let mut other = flow;
            other.source.set_port(port);
            (port, lands(other))
        });
        spread.source_ports = gather(&wanted, tried);
    } else {
        let tried = (0..TRIES).filter_map(|step| {
            let mut other = flow;
            let address = neighbour(flow.source.ip(), step)?;
            other.source.set_ip(address);
            Some((address, lands(other)))
        });
        spread.source_addresses = gather(&wanted, tried);
    }
    spread
}

/// The first values that lead to each queue.
fn gather<T>(queues: &[u32], tried: impl Iterator<Item = (T, Option<u32>)>) -> Vec<(u32, Vec<T>)> {
    let mut found: Vec<(u32, Vec<T>)> = queues.iter().map(|queue| (*queue, Vec::new())).collect();
    let mut missing = found.len() * EACH;
    for (value, queue) in tried {
        let Some((_, values)) = found.iter_mut().find(|(known, _)| Some(*known) == queue) else {
            continue;
        };
        if values.len() < EACH {
            values.push(value);
            missing -= 1;
        }
        if missing == 0 {
            break;
        }
    }
    found
}

/// The address `step` after this one.
fn neighbour(address: IpAddr, step: u16) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(v4) => Ipv4Addr::from(u32::from(v4).checked_add(u32::from(step))?).into(),
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6).checked_add(u128::from(step))?).into(),
    })
}
