//! The sockets of this namespace over a window: how full they became and what they dropped.

mod listing;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rxpath_bpf::cost::own_cpu;
use rxpath_core::IntoMap;
use rxpath_host::HostError;
use rxpath_host::netlink::Netlink;
use rxpath_host::read::netlink::{SkMemInfo, TcpSocket, TcpState, UdpSocket};
use rxpath_host::read::only::Only;

use crate::live::{Socket, TcpLooks};

use listing::Listing;

/// Rows of a frame at most: a server may have a hundred thousand connections.
const ROWS: usize = 200;

/// One socket and where it leads.
#[derive(Clone, Debug, Default)]
struct Seen {
    protocol: &'static str,
    local: String,
    port: u16,
    remote: String,
    /// Filling of the last look, in the unit of the limit.
    queued: u64,
    queued_max: u64,
    limit: u64,
    memory: Socket,
}

/// Samples the sockets of the running window.
#[derive(Debug, Default)]
pub struct SocketSampler {
    seen: BTreeMap<u32, Seen>,
    /// Drops of each socket at the window's begin.
    drops: BTreeMap<u32, u32>,
    tcp: TcpLooks,
    udp_list: Listing,
    tcp_list: Listing,
    only: Option<Only>,
    /// Inodes of the sockets of those, as they were last asked for.
    wanted: Option<BTreeSet<u32>>,
}

/// The sockets of a window that ended.
#[derive(Debug, Default)]
pub struct SocketSamples {
    seen: BTreeMap<u32, Seen>,
    /// Those that have a row, in their order.
    shown: Vec<u32>,
    /// TCP's, for the diagnosis.
    pub tcp: TcpLooks,
    /// Why TCP's are missing, in a part of the window at least.
    pub gap: Option<String>,
    /// Why UDP's are missing, in a part of the window at least.
    pub udp_gap: Option<String>,
}

impl SocketSampler {
    /// Those of all processes, or of these.
    pub fn of(only: Option<Only>) -> Self {
        let wanted = only.as_ref().map(Only::inodes);
        Self { only, wanted, ..Self::default() }
    }

    /// Whether a list takes so much CPU time that it is read once in five minutes.
    pub fn has_dear_list(&self) -> bool {
        self.udp_list.is_dear() || self.tcp_list.is_dear()
    }

    /// Samples UDP's within a window.
    pub fn look(&mut self, diag: &mut Netlink) {
        if self.udp_list.is_due_between(Instant::now()) {
            self.look_at_udp(diag);
        }
    }

    /// Samples all at the end of a window, which is the begin of the next. The kernel walks the whole table of connections for
    /// TCP's, however few there are (net/ipv4/tcp_diag.c), so they are sampled only here. UDP's are the last: what else counts
    /// their losses is read right after them.
    pub fn look_at_end(&mut self, diag: &mut Netlink) {
        let now = Instant::now();
        if self.tcp_list.is_due_at_end(now) {
            let before = own_cpu();
            let listed = diag.tcp_sockets();
            self.take_tcp(listed, own_cpu().saturating_sub(before));
        } else {
            // What is known is of another window: what grew since then did not grow in this one.
            self.tcp = TcpLooks::default();
        }
        if self.udp_list.is_due_at_end(now) {
            self.look_at_udp(diag);
        }
    }

    fn look_at_udp(&mut self, diag: &mut Netlink) {
        let before = own_cpu();
        let listed = diag.udp_sockets(None);
        self.take_udp(listed, own_cpu().saturating_sub(before));
    }

    fn take_udp(&mut self, listed: Result<Vec<UdpSocket>, HostError>, took: Duration) {
        for socket in self.udp_list.listed(listed, took, Instant::now()).unwrap_or_default() {
            let Some(memory) = socket.memory else { continue };
            let filled = (u64::from(memory.rmem), u64::from(memory.rcvbuf));
            let about = || ("udp", socket.local, remote(&socket.remote));
            self.take_look(socket.inode, about, filled, &memory);
        }
    }

    fn take_tcp(&mut self, listed: Result<Vec<TcpSocket>, HostError>, took: Duration) {
        let Some(all) = self.tcp_list.listed(listed, took, Instant::now()) else {
            self.tcp = TcpLooks::default();
            return;
        };
        self.tcp.look(&all);
        for socket in all {
            let memory = socket.memory.unwrap_or_default();
            let listens = socket.state == TcpState::Listen;
            let filled = if listens {
                (u64::from(socket.receive_queue), u64::from(socket.send_queue))
            } else {
                (u64::from(memory.rmem), u64::from(memory.rcvbuf))
            };
            let protocol = if listens { "tcp-listen" } else { "tcp" };
            let about = || (protocol, socket.local, remote(&socket.remote));
            self.take_look(socket.inode, about, filled, &memory);
        }
    }

    fn take_look(
        &mut self,
        inode: u32,
        about: impl Fn() -> (&'static str, SocketAddr, String),
        (queued, limit): (u64, u64),
        memory: &SkMemInfo,
    ) {
        if self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(&inode)) {
            return;
        }
        let socket = self.seen.entry(inode).or_insert_with(|| {
            let (protocol, local, remote) = about();
            let port = local.port();
            Seen { protocol, local: local.to_string(), port, remote, ..Seen::default() }
        });
        (socket.queued, socket.limit) = (queued, limit);
        socket.queued_max = socket.queued_max.max(queued);
        socket.memory.look(memory);
        if let Some(before) = self.drops.get(&inode) {
            socket.memory.drops[0] = *before;
        }
    }

    /// Ends the window: its sockets, and an empty one that begins with their drops.
    pub fn take(&mut self) -> SocketSamples {
        let seen = std::mem::take(&mut self.seen);
        self.drops = seen.iter().map(|(inode, socket)| (*inode, socket.memory.drops[1])).into_map();
        let mut tcp = self.tcp.take();
        if let Some(wanted) = &self.wanted {
            tcp.only(|socket| wanted.contains(&socket.inode));
        }
        self.wanted = self.only.as_ref().map(Only::inodes);
        let udp_gap = self.udp_list.take_gap();
        SocketSamples { tcp, udp_gap, ..SocketSamples::of(seen, self.tcp_list.take_gap()) }
    }
}

fn remote(address: &SocketAddr) -> String {
    if address.port() == 0 { String::new() } else { address.to_string() }
}

impl SocketSamples {
    fn of(seen: BTreeMap<u32, Seen>, gap: Option<String>) -> Self {
        let mut looks = Self { seen, gap, ..Self::default() };
        looks.shown = looks.ranked();
        looks
    }

    pub fn count(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Whether it was there in the window.
    pub fn has(&self, inode: u32) -> bool {
        self.seen.contains_key(&inode)
    }

    /// Those that have a row, in the order of the rows.
    pub fn shown(&self) -> impl Iterator<Item = u32> {
        self.shown.iter().copied().filter(|inode| *inode != 0)
    }

    /// Those of UDP that have a row, with their local ports. Not of a port that has sockets at several addresses: it does not tell
    /// which of them was read.
    pub fn shown_of_udp(&self) -> impl Iterator<Item = (u32, u16)> {
        let mut addresses: BTreeMap<u16, BTreeSet<&str>> = BTreeMap::new();
        for socket in self.seen.values().filter(|socket| socket.protocol == "udp") {
            addresses.entry(socket.port).or_default().insert(&socket.local);
        }
        let one = |inode: u32| Some((inode, self.seen.get(&inode)?));
        let udp = self.shown().filter_map(one).filter(|(_, socket)| socket.protocol == "udp");
        let udp = udp.filter(move |(_, socket)| addresses[&socket.port].len() == 1);
        udp.map(|(inode, socket)| (inode, socket.port))
    }

    /// UDP's, for the diagnosis.
    pub fn udp(&self) -> BTreeMap<u32, Socket> {
        let udp = self.seen.iter().filter(|(_, socket)| socket.protocol == "udp");
        let one = |socket: &Seen| Socket { local: socket.local.clone(), ..socket.memory.clone() };
        udp.map(|(inode, socket)| (*inode, one(socket))).into_map()
    }

    /// Those that drop first, then the fullest.
    fn ranked(&self) -> Vec<u32> {
        // All of UDP, listeners, and connections in which something waited or was dropped.
        let is_shown = |(_, socket): &(&u32, &Seen)| {
            socket.protocol != "tcp" || socket.queued_max > 0 || socket.memory.drops[1] > 0
        };
        let mut ranked: Vec<(&u32, &Seen)> = self.seen.iter().filter(is_shown).collect();
        ranked.sort_by(|(inode_a, a), (inode_b, b)| {
            let fuller = b.filled_ratio().total_cmp(&a.filled_ratio());
            let drops = b.memory.dropped().cmp(&a.memory.dropped());
            drops.then(fuller).then(inode_a.cmp(inode_b))
        });
        ranked.into_iter().take(ROWS).map(|(inode, _)| *inode).collect()
    }

    /// Sockets of which only the inode and what they dropped in the window are known.
    #[cfg(test)]
    pub fn of_drops(sockets: &[(u32, u32)]) -> Self {
        let seen = sockets.iter().map(|(inode, drops)| {
            let memory = Socket { drops: [0, *drops], ..Socket::default() };
            (*inode, Seen { protocol: "udp", memory, ..Seen::default() })
        });
        Self::of(seen.collect(), None)
    }
}

impl Seen {
    /// The largest filling as a share of the limit.
    fn filled_ratio(&self) -> f64 {
        if self.limit == 0 { 0.0 } else { self.queued_max as f64 / self.limit as f64 }
    }
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use super::*;

    #[test]
    fn a_list_that_failed_at_the_end_of_a_window_leaves_no_sockets_of_tcp_from_before() {
        let socket = TcpSocket {
            local: "10.0.0.1:80".parse().unwrap(),
            remote: "10.0.0.9:4000".parse().unwrap(),
            state: TcpState::Established,
            inode: 7,
            receive_queue: 0,
            send_queue: 0,
            memory: None,
            info: None,
        };
        let mut sampler = SocketSampler::default();
        let mut window = |listed: Result<Vec<TcpSocket>, HostError>| {
            sampler.take_tcp(listed, Duration::ZERO);
            let ended = sampler.take();
            (ended.tcp.inodes(), ended.gap.is_some())
        };
        assert_eq!(window(Ok(vec![socket])), (vec![7], false));
        let failed = HostError::kernel("list TCP sockets", libc::ENOBUFS);
        assert_eq!(window(Err(failed)), (vec![], true));
        assert_eq!(window(Ok(vec![socket])), (vec![7], true), "without a list at its begin");
        assert_eq!(window(Ok(vec![socket])), (vec![7], false));
    }
}
