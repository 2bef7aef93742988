//! TCP's connections and listeners over a window, sampled.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::{TcpSocket, TcpState};

/// Samples of a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct TcpLooks {
    pub(super) connections: BTreeMap<(SocketAddr, SocketAddr), Connection>,
    /// Most connections that waited to be accepted, by the listener's inode.
    waiting: BTreeMap<u32, u32>,
    /// The sockets of the last sample.
    last: Vec<TcpSocket>,
    begun: bool,
    /// Why the last sample failed.
    pub(crate) gap: Option<String>,
}

/// One connection over the samples.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// As it was first seen; `None` when it came in the window.
    first: Option<TcpSocket>,
    pub(super) last: TcpSocket,
    unread_sum: u64,
    pub(super) unread_max: u32,
    filled_sum: f64,
    pub(super) samples: u32,
}

impl Connection {
    fn new(socket: TcpSocket, first: Option<TcpSocket>) -> Self {
        Self { first, last: socket, unread_sum: 0, unread_max: 0, filled_sum: 0.0, samples: 0 }
    }

    fn look(&mut self, socket: TcpSocket) {
        self.last = socket;
        self.unread_sum += u64::from(socket.receive_queue);
        self.unread_max = self.unread_max.max(socket.receive_queue);
        self.filled_sum += filled(&socket);
        self.samples += 1;
    }

    /// By how much a count of it grew in the window.
    pub(super) fn grew(&self, count: impl Fn(&TcpSocket) -> u64) -> u64 {
        count(&self.last).saturating_sub(self.first.as_ref().map_or(0, count))
    }

    pub(super) fn unread_mean(&self) -> f64 {
        self.unread_sum as f64 / f64::from(self.samples.max(1))
    }

    pub(super) fn filled_mean(&self) -> f64 {
        self.filled_sum / f64::from(self.samples.max(1))
    }
}

/// The share of its window that unread bytes take; of its buffer where the kernel does not report the window.
fn filled(socket: &TcpSocket) -> f64 {
    let unread = f64::from(socket.receive_queue);
    if unread <= 0.0 {
        return 0.0;
    }
    match (socket.info.and_then(|info| info.window_bytes), socket.memory) {
        (Some(window), _) => unread / (unread + f64::from(window)),
        (None, Some(memory)) if memory.rcvbuf > 0 => {
            (f64::from(memory.rmem) / f64::from(memory.rcvbuf)).min(1.0)
        }
        (None, _) => 0.0,
    }
}

impl TcpLooks {
    /// Takes one sample of this namespace.
    pub(crate) fn sample(&mut self, diag: &mut Netlink) {
        match diag.tcp_sockets() {
            Ok(sockets) => self.look(&sockets),
            Err(error) => self.gap = Some(error.to_string()),
        }
    }

    /// The sockets of one sample.
    pub(crate) fn look(&mut self, sockets: &[TcpSocket]) {
        for socket in sockets {
            if socket.state == TcpState::Listen {
                let most = self.waiting.entry(socket.inode).or_default();
                *most = (*most).max(socket.receive_queue);
                continue;
            }
            // What is there in the first sample came before the window.
            let first = (!self.begun).then_some(*socket);
            let key = (socket.local, socket.remote);
            let seen = self.connections.entry(key);
            seen.or_insert_with(|| Connection::new(*socket, first)).look(*socket);
        }
        (self.last, self.begun, self.gap) = (sockets.to_vec(), true, None);
    }

    /// Ends the window: its samples. The last one is the first of the next window; without one, that has none yet.
    pub(crate) fn take(&mut self) -> Self {
        let ended = std::mem::take(self);
        if ended.begun {
            self.look(&ended.last);
        }
        self.gap.clone_from(&ended.gap);
        ended
    }

    /// Only what these sockets show: the rest is dropped.
    pub(crate) fn only(&mut self, is_asked: impl Fn(&TcpSocket) -> bool) {
        self.connections.retain(|_, connection| is_asked(&connection.last));
        // All listeners stay: a connection is that of the listener to which it came.
        self.last.retain(|socket| socket.state == TcpState::Listen || is_asked(socket));
    }

    pub(super) fn listeners(&self) -> impl Iterator<Item = &TcpSocket> {
        self.last.iter().filter(|socket| socket.state == TcpState::Listen)
    }

    pub(super) fn open_count(&self) -> u64 {
        self.last.iter().filter(|socket| socket.state != TcpState::Listen).count() as u64
    }

    pub(super) fn most_waiting(&self, inode: u32) -> u32 {
        self.waiting.get(&inode).copied().unwrap_or(0)
    }

    /// Inodes, those in which most waits first.
    pub(crate) fn inodes(&self) -> Vec<u32> {
        let mut sockets: Vec<&TcpSocket> =
            self.last.iter().filter(|socket| socket.inode != 0).collect();
        sockets.sort_by_key(|socket| (std::cmp::Reverse(socket.receive_queue), socket.inode));
        sockets.iter().map(|socket| socket.inode).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use rxpath_host::read::netlink::TcpDiagInfo;

    pub(in super::super) fn connection(
        port: u16,
        inode: u32,
        unread: u32,
        window: u32,
    ) -> TcpSocket {
        TcpSocket {
            local: SocketAddr::from(([10, 0, 0, 1], port)),
            remote: SocketAddr::from(([10, 0, 0, 9], 4000 + inode as u16)),
            state: TcpState::Established,
            inode,
            receive_queue: unread,
            send_queue: 0,
            memory: None,
            info: Some(TcpDiagInfo {
                retransmitted_segments: 3,
                received_bytes: Some(1_000),
                out_of_order_segments: Some(5),
                window_bytes: Some(window),
            }),
        }
    }

    #[test]
    fn a_window_that_is_used_up_is_full_and_a_few_bytes_in_a_large_one_are_not() {
        assert!(filled(&connection(80, 1, 65_000, 0)) > 0.99);
        assert!(filled(&connection(80, 1, 100, 64_000)) < 0.01);
        assert!(filled(&connection(80, 1, 0, 0)) < 0.01);
    }

    #[test]
    fn what_was_not_asked_for_is_dropped() {
        let mut looks = TcpLooks::default();
        looks.look(&[connection(80, 1, 0, 64_000), connection(81, 2, 0, 64_000)]);
        looks.only(|socket| socket.local.port() == 81);
        let left: Vec<u32> = looks.connections.values().map(|one| one.last.inode).collect();
        assert_eq!((left, looks.open_count()), (vec![2], 1));
    }

    #[test]
    fn what_was_there_before_the_window_is_no_growth_of_it() {
        let mut looks = TcpLooks::default();
        looks.look(&[connection(80, 1, 0, 64_000)]);
        looks.look(&[connection(80, 1, 0, 64_000), connection(80, 2, 0, 64_000)]);
        let received = |socket: &TcpSocket| socket.info.unwrap().received_bytes.unwrap();
        let grown: Vec<u64> = looks.connections.values().map(|one| one.grew(received)).collect();
        assert_eq!(grown, [0, 1_000]);
        // The end of one window is the beginning of the next.
        assert_eq!(looks.take().open_count(), 2);
        let grown: Vec<u64> = looks.connections.values().map(|one| one.grew(received)).collect();
        assert_eq!(grown, [0, 0]);
        assert!(looks.connections.values().all(|one| one.samples == 1));
    }

    #[test]
    fn after_a_window_without_a_sample_nothing_grew_before_the_next() {
        let mut looks = TcpLooks::default();
        looks.take();
        looks.look(&[connection(80, 1, 0, 64_000)]);
        let received = |socket: &TcpSocket| socket.info.unwrap().received_bytes.unwrap();
        assert!(looks.connections.values().all(|one| one.grew(received) == 0));
    }
}
