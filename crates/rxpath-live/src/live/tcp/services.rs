//! Connections by the service that they belong to: a listening port, or what this host connected to.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_core::SortFew;
use rxpath_host::read::netlink::TcpSocket;
use rxpath_record::evidence::{TcpConnection, TcpService};

use super::looks::Connection;
use crate::live::Read;
use crate::live::owners::owners_of_all;
use crate::live::readers::readers;

/// Services that are named, at most.
const SERVICES: usize = 8;
/// Threads of a service that are shown, at most: those that ran most.
const THREADS: usize = 8;
/// A receive queue that takes more than this share of its window on average is full: it holds what the program does not
/// read, and only what remains may be sent.
const FULL_RATIO: f64 = 0.5;

/// Which service, and whether this host connected to it.
type Key = (bool, String);

/// The services in which something moved or waits.
pub(super) fn of(read: &Read<'_>) -> Vec<TcpService> {
    let listeners: Vec<&TcpSocket> = read.tcp.listeners().collect();
    let mut by: BTreeMap<Key, Vec<&Connection>> = BTreeMap::new();
    for connection in read.tcp.connections.values() {
        by.entry(key(&listeners, &connection.last)).or_default().push(connection);
    }
    let mut all: Vec<(TcpService, BTreeSet<u32>)> =
        by.into_iter().map(|(key, connections)| service(key, &connections)).collect();
    all.retain(|(service, _)| is_something(service));
    all.sort_few_by(|(a, _), (b, _)| {
        let again = |it: &TcpService| it.out_of_order_segments + it.retransmitted_segments;
        (b.full_count.cmp(&a.full_count))
            .then(b.drops_count.cmp(&a.drops_count))
            .then(again(b).cmp(&again(a)))
            .then(b.received_bytes.cmp(&a.received_bytes))
            .then(a.address.cmp(&b.address))
    });
    all.truncate(SERVICES);
    let with_owners = all.into_iter().map(|(mut service, inodes)| {
        service.owners = owners_of_all(&inodes, read.owners);
        service.threads =
            readers(read.of_connections, &inodes, read.owners, &BTreeSet::new(), read.groups);
        service.threads.sort_few_by(|a, b| b.running_ratio.total_cmp(&a.running_ratio));
        service.threads.truncate(THREADS);
        service
    });
    with_owners.collect()
}

/// A connection to a port on which somebody listens is that service's; the others this host made.
fn key(listeners: &[&TcpSocket], connection: &TcpSocket) -> Key {
    let (ip, port) = (connection.local.ip(), connection.local.port());
    let here = || listeners.iter().filter(|listener| listener.local.port() == port);
    let found = here().find(|listener| listener.local.ip() == ip).or_else(|| here().next());
    match found {
        Some(listener) => (false, listener.local.to_string()),
        None => (true, connection.remote.to_string()),
    }
}

fn service((outgoing, address): Key, connections: &[&Connection]) -> (TcpService, BTreeSet<u32>) {
    let sum = |count: &dyn Fn(&TcpSocket) -> u64| {
        connections.iter().fold(0u64, |sum, one| sum.saturating_add(one.grew(count)))
    };
    // One that nobody accepted is the accept queue's: it has no inode.
    let accepted = || connections.iter().filter(|one| one.last.inode != 0);
    let is_full = |one: &&&Connection| one.filled_mean() >= FULL_RATIO;
    let fullest = accepted().filter(|one| one.unread_max > 0);
    let fullest = fullest.max_by(|a, b| {
        (a.filled_mean().total_cmp(&b.filled_mean()))
            .then(a.unread_max.cmp(&b.unread_max))
            .then(b.last.remote.cmp(&a.last.remote))
    });
    let service = TcpService {
        address,
        outgoing,
        connections_count: connections.len() as u64,
        full_count: accepted().filter(is_full).count() as u64,
        fullest: fullest.map(|one| connection(one)),
        received_bytes: sum(&received),
        out_of_order_segments: sum(&|it| {
            it.info.and_then(|info| info.out_of_order_segments).unwrap_or(0).into()
        }),
        retransmitted_segments: sum(&|it| {
            it.info.map_or(0, |info| info.retransmitted_segments.into())
        }),
        drops_count: sum(&|it| it.memory.map_or(0, |memory| memory.drops.into())),
        ..TcpService::default()
    };
    (service, accepted().map(|one| one.last.inode).collect())
}

fn received(socket: &TcpSocket) -> u64 {
    socket.info.and_then(|info| info.received_bytes).unwrap_or(0)
}

fn connection(one: &Connection) -> TcpConnection {
    let read = |socket: &TcpSocket| received(socket).saturating_sub(socket.receive_queue.into());
    TcpConnection {
        local: one.last.local.to_string(),
        remote: one.last.remote.to_string(),
        rcvbuf_bytes: one.last.memory.map_or(0, |memory| memory.rcvbuf.into()),
        unread_mean_bytes: one.unread_mean(),
        unread_max_bytes: one.unread_max.into(),
        filled_mean_ratio: one.filled_mean(),
        samples: one.samples.into(),
        read_bytes: one.grew(read),
    }
}

fn is_something(service: &TcpService) -> bool {
    service.fullest.is_some()
        || service.received_bytes > 0
        || service.out_of_order_segments + service.retransmitted_segments + service.drops_count > 0
}

#[cfg(test)]
mod tests {
    use super::super::looks::tests::connection as socket;
    use super::*;
    use crate::live::TcpLooks;
    use rxpath_host::read::netlink::TcpState;
    use std::net::SocketAddr;

    fn listener(address: [u8; 4], port: u16) -> TcpSocket {
        TcpSocket {
            local: SocketAddr::from((address, port)),
            remote: SocketAddr::from(([0; 4], 0)),
            state: TcpState::Listen,
            ..socket(port, 9, 0, 0)
        }
    }

    #[test]
    fn connections_are_put_with_the_listener_of_their_port() {
        let (any, own) = (listener([0; 4], 80), listener([10, 0, 0, 1], 443));
        let of = |port| key(&[&any, &own], &socket(port, 1, 0, 0));
        assert_eq!(of(80), (false, "0.0.0.0:80".into()));
        assert_eq!(of(443), (false, "10.0.0.1:443".into()));
        assert_eq!(of(40_000), (true, "10.0.0.9:4001".into()));
    }

    #[test]
    fn full_are_those_that_are_accepted_and_whose_window_is_used_up() {
        let mut looks = TcpLooks::default();
        let all = [
            socket(80, 1, 65_000, 0),
            socket(80, 2, 100, 64_000),
            // Nobody accepted it.
            socket(80, 0, 65_000, 0),
        ];
        looks.look(&all);
        looks.look(&all);
        let connections: Vec<&Connection> = looks.connections.values().collect();
        let (service, inodes) = service((false, "0.0.0.0:80".into()), &connections);
        assert_eq!((service.connections_count, service.full_count), (3, 1));
        assert_eq!(inodes, BTreeSet::from([1, 2]));
        let fullest = service.fullest.unwrap();
        assert_eq!((fullest.unread_max_bytes, fullest.samples), (65_000, 2));
        assert_eq!(fullest.remote, "10.0.0.9:4001");
        assert_eq!(service.received_bytes, 0, "what came before is not of this window");
    }
}
