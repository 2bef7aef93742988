//! The UDP sockets over a window.

use std::collections::{BTreeMap, BTreeSet};

use rxpath_host::HostError;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::SkMemInfo;
use rxpath_record::evidence::SocketUse;

use super::owners::{Owners, Waiters, owners_of};
use super::reads::Readings;

/// A UDP socket over the time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Socket {
    /// Local address and port.
    pub(crate) local: String,
    /// To one peer.
    pub(crate) connected: bool,
    pub(crate) rcvbuf: u32,
    /// Of its first and of its last look.
    pub(crate) drops: [u32; 2],
    pub(crate) sum_bytes: u64,
    pub(crate) max_bytes: u64,
    pub(crate) samples: u64,
}

impl Socket {
    /// Whether something waited in it or was dropped at it.
    pub(super) fn was_used(&self) -> bool {
        self.max_bytes > 0 || self.drops[0] != self.drops[1]
    }

    /// What it dropped between its first look and its last.
    pub(crate) fn dropped(&self) -> u64 {
        self.drops[1].wrapping_sub(self.drops[0]).into()
    }

    /// The same, or at any time before.
    pub(super) fn has_been_used(&self) -> bool {
        self.was_used() || self.drops[1] > 0
    }

    /// Takes one sample.
    pub(crate) fn look(&mut self, memory: &SkMemInfo) {
        if self.samples == 0 {
            self.drops[0] = memory.drops;
        }
        (self.drops[1], self.rcvbuf) = (memory.drops, memory.rcvbuf);
        self.sum_bytes += u64::from(memory.rmem);
        self.max_bytes = self.max_bytes.max(memory.rmem.into());
        self.samples += 1;
    }
}

/// Looks at all of them once, or at those of one port. What a socket dropped before its first look counts if it was opened in
/// the window: it is none of those of `before`.
pub(super) fn look(
    diag: &mut Netlink,
    port: Option<u16>,
    before: Option<&BTreeSet<u32>>,
    sockets: &mut BTreeMap<u32, Socket>,
) -> Result<(), HostError> {
    for found in diag.udp_sockets(port)? {
        let Some(memory) = found.memory else { continue };
        let socket = sockets.entry(found.inode).or_default();
        let is_first = socket.samples == 0;
        socket.look(&memory);
        if is_first {
            socket.local = found.local.to_string();
            socket.connected = found.remote.port() != 0;
            if before.is_some_and(|before| !before.contains(&found.inode)) {
                socket.drops[0] = 0;
            }
        }
    }
    Ok(())
}

/// Sockets of services (an address and port) that dropped something; when none did, those in which something waited; else
/// all.
pub(super) fn busy(sockets: &BTreeMap<u32, Socket>) -> BTreeSet<u32> {
    let of = |is: &dyn Fn(&Socket) -> bool| -> BTreeSet<u32> {
        sockets.iter().filter(|(_, socket)| is(socket)).map(|(inode, _)| *inode).collect()
    };
    let drops = |socket: &&Socket| socket.drops[0] != socket.drops[1];
    let services: BTreeSet<&str> =
        sockets.values().filter(drops).map(|socket| socket.local.as_str()).collect();
    if !services.is_empty() {
        // With those of the same group that drop nothing: how the drops fall shows only next to them.
        return of(&|socket| services.contains(socket.local.as_str()));
    }
    let waiting = of(&|socket| socket.max_bytes > 0);
    if waiting.is_empty() { of(&|_| true) } else { waiting }
}

/// For the diagnosis.
pub(super) fn uses(
    sockets: &BTreeMap<u32, Socket>,
    owners: &Owners,
    reads: Option<&Readings>,
    waiters: &Waiters,
) -> Vec<SocketUse> {
    let chosen = busy(sockets);
    let by = |inode: &u32| reads.and_then(|reads| reads.get(inode));
    let readers = |inode: &u32| by(inode).map_or_else(Vec::new, |by| by.keys().copied().collect());
    let of = |(index, (inode, socket)): (usize, (&u32, &Socket))| SocketUse {
        index: index as u32,
        rcvbuf_bytes: socket.rcvbuf.into(),
        queue_mean_bytes: socket.sum_bytes as f64 / socket.samples.max(1) as f64,
        queue_max_bytes: socket.max_bytes,
        samples: socket.samples,
        drops_packets: socket.dropped(),
        delivered_packets: by(inode).map_or(0, |by| by.values().sum()),
        local: socket.local.clone(),
        connected: socket.connected,
        readers: reads.map(|_| readers(inode)),
        waiters: waiters.get(inode).map(|tids| tids.iter().copied().collect()),
        owners: owners_of(*inode, owners),
        ..SocketUse::default()
    };
    sockets.iter().filter(|(inode, _)| chosen.contains(inode)).enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_connected_socket_is_known_as_one() {
        let [one, other] = [0; 2].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        one.connect(other.local_addr().unwrap()).unwrap();
        let mut diag = Netlink::sock_diag().unwrap();
        // By port: a list of all may miss some while others come and go.
        let mut connected = |socket: &UdpSocket| {
            let (local, mut sockets) = (socket.local_addr().unwrap(), BTreeMap::new());
            look(&mut diag, Some(local.port()), None, &mut sockets).unwrap();
            sockets.values().find(|it| it.local == local.to_string()).unwrap().connected
        };
        assert!(connected(&one) && !connected(&other));
    }

    #[test]
    fn services_of_one_port_at_two_addresses_are_two() {
        let socket = |local: &str, drops| Socket {
            local: local.into(),
            drops: [0, drops],
            ..Socket::default()
        };
        let sockets = [
            (1, socket("10.0.0.1:53", 5)),
            (2, Socket { connected: true, ..socket("10.0.0.1:53", 0) }),
            (3, socket("10.0.0.2:53", 0)),
            (4, socket("0.0.0.0:514", 1)),
        ];
        let sockets: BTreeMap<u32, Socket> = sockets.into();
        assert_eq!(busy(&sockets), BTreeSet::from([1, 2, 4]));
        let owners: Owners = [(1, BTreeSet::from([std::process::id() as i32]))].into();
        assert_eq!(uses(&sockets, &owners, None, &Waiters::new())[0].readers, None);
        let reads: Readings = [(1, [(11, 40), (12, 2)].into())].into();
        let waiters: Waiters = [(2, BTreeSet::new())].into();
        let uses = uses(&sockets, &owners, Some(&reads), &waiters);
        assert_eq!([&uses[0].waiters, &uses[1].waiters], [&None, &Some(vec![])]);
        assert_eq!((uses[0].delivered_packets, &uses[0].readers), (42, &Some(vec![11, 12])));
        assert_eq!((uses[1].delivered_packets, &uses[1].readers), (0, &Some(vec![])));
        assert_eq!(uses[0].local, "10.0.0.1:53");
        assert_eq!([uses[0].connected, uses[1].connected], [false, true]);
        assert_eq!(uses[0].owners[0].pid, std::process::id() as i32);
        assert!(uses[2].owners.is_empty());
    }
}
