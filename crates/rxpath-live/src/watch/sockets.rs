//! The sockets of this namespace over a window: how full they became and what they dropped.

mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rxpath_bpf::cost::own_cpu;
use rxpath_core::IntoMap;
use rxpath_host::HostError;
use rxpath_host::netlink::{Netlink, SkMemInfo, TcpSocket, TcpState, UdpSocket};
use rxpath_host::only::Only;
use rxpath_record::watch::Frame;

use crate::live::{Socket, TcpLooks};

/// Rows of a frame at most: a server may have a hundred thousand connections.
const ROWS: usize = 200;

/// From one question for a list that the kernel does not have to the next: each has it search for the module of the list, which
/// somebody may load.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// A list that took more CPU time is dear: the kernel walks its tables in the time of the thread that asks, about 1 us a socket
/// (net/ipv4/inet_diag.c), and ten such lists in a window of 10 s are twice the exporter's budget of 1 %.
const DEAR: Duration = Duration::from_millis(20);
/// From one dear list to the next. One of a second, of a million sockets, then takes 0.3 % of a CPU.
const DEAR_AGAIN: Duration = Duration::from_secs(300);

/// One socket and where it leads.
#[derive(Clone, Debug, Default)]
struct Seen {
    protocol: &'static str,
    local: String,
    remote: String,
    /// Filling of the last look, in the unit of the limit.
    queued: u64,
    queued_max: u64,
    limit: u64,
    memory: Socket,
}

/// When the kernel is asked for one protocol's list, and why it is missing in a window.
#[derive(Debug, Default)]
struct Listing {
    /// Not before this moment, for this reason.
    wait: Option<(Instant, String)>,
    /// Of this window.
    gap: Option<String>,
}

impl Listing {
    /// Whether the kernel is asked now. A window with a wait has a gap: its begin or a part of it was not seen.
    fn is_due(&mut self) -> bool {
        let Some((until, why)) = &self.wait else { return true };
        self.gap = Some(why.clone());
        Instant::now() >= *until
    }

    /// What the kernel gave, for so much CPU time.
    fn listed<T>(&mut self, listed: Result<Vec<T>, HostError>, took: Duration) -> Option<Vec<T>> {
        let wait = match &listed {
            Err(error @ HostError::Unsupported { .. }) => Some((ASK_AGAIN, error.to_string())),
            _ if took > DEAR => Some((DEAR_AGAIN, dear(took))),
            _ => None,
        };
        self.wait = wait.map(|(wait, why)| (Instant::now() + wait, why));
        listed.inspect_err(|error| self.gap = Some(error.to_string())).ok()
    }
}

fn dear(took: Duration) -> String {
    format!(
        "{}{} minutes: the last list took {} ms of CPU time",
        Frame::READ_SELDOM,
        DEAR_AGAIN.as_secs() / 60,
        took.as_millis()
    )
}

/// The looks of the running window, by inode.
#[derive(Debug, Default)]
pub struct Sockets {
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
pub struct Looks {
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

impl Sockets {
    /// Those of all processes, or of these.
    pub fn of(only: Option<Only>) -> Self {
        let wanted = only.as_ref().map(Only::inodes);
        Self { only, wanted, ..Self::default() }
    }

    /// Samples UDP's.
    pub fn look(&mut self, diag: &mut Netlink) {
        if self.udp_list.is_due() {
            let before = own_cpu();
            let listed = diag.udp_sockets(None);
            self.take_udp(listed, own_cpu().saturating_sub(before));
        }
    }

    fn take_udp(&mut self, listed: Result<Vec<UdpSocket>, HostError>, took: Duration) {
        for socket in self.udp_list.listed(listed, took).unwrap_or_default() {
            let Some(memory) = socket.memory else { continue };
            let filled = (u64::from(memory.rmem), u64::from(memory.rcvbuf));
            let about = || ("udp", socket.local.to_string(), remote(&socket.remote));
            self.take_look(socket.inode, about, filled, &memory);
        }
    }

    /// Samples TCP's: the kernel walks the whole table of connections for it, however few there are
    /// (net/ipv4/tcp_diag.c), so it is taken once in a window.
    pub fn look_at_tcp(&mut self, diag: &mut Netlink) {
        if self.tcp_list.is_due() {
            let before = own_cpu();
            let listed = diag.tcp_sockets();
            self.take_tcp(listed, own_cpu().saturating_sub(before));
        } else {
            // What is known is of another window: what grew since then did not grow in this one.
            self.tcp = TcpLooks::default();
        }
    }

    fn take_tcp(&mut self, listed: Result<Vec<TcpSocket>, HostError>, took: Duration) {
        let Some(all) = self.tcp_list.listed(listed, took) else { return };
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
            let about = || (protocol, socket.local.to_string(), remote(&socket.remote));
            self.take_look(socket.inode, about, filled, &memory);
        }
    }

    fn take_look(
        &mut self,
        inode: u32,
        about: impl Fn() -> (&'static str, String, String),
        (queued, limit): (u64, u64),
        memory: &SkMemInfo,
    ) {
        if self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(&inode)) {
            return;
        }
        let socket = self.seen.entry(inode).or_insert_with(|| {
            let (protocol, local, remote) = about();
            Seen { protocol, local, remote, ..Seen::default() }
        });
        (socket.queued, socket.limit) = (queued, limit);
        socket.queued_max = socket.queued_max.max(queued);
        socket.memory.look(memory);
        if let Some(before) = self.drops.get(&inode) {
            socket.memory.drops[0] = *before;
        }
    }

    /// Ends the window: its sockets, and an empty one that begins with their drops.
    pub fn take(&mut self) -> Looks {
        let seen = std::mem::take(&mut self.seen);
        self.drops = seen.iter().map(|(inode, socket)| (*inode, socket.memory.drops[1])).into_map();
        let mut tcp = self.tcp.take();
        if let Some(wanted) = &self.wanted {
            tcp.only(|socket| wanted.contains(&socket.inode));
        }
        self.wanted = self.only.as_ref().map(Only::inodes);
        let udp_gap = self.udp_list.gap.take();
        Looks { tcp, udp_gap, ..Looks::of(seen, self.tcp_list.gap.take()) }
    }
}

fn remote(address: &std::net::SocketAddr) -> String {
    if address.port() == 0 { String::new() } else { address.to_string() }
}

impl Looks {
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

    /// UDP's, for the diagnosis.
    pub fn udp(&self) -> BTreeMap<u32, Socket> {
        let udp = self.seen.iter().filter(|(_, socket)| socket.protocol == "udp");
        let one = |socket: &Seen| Socket { local: socket.local.clone(), ..socket.memory.clone() };
        udp.map(|(inode, socket)| (*inode, one(socket))).into_map()
    }

    /// All of UDP, listeners, and connections in which something waited or was dropped.
    fn interesting(&self) -> impl Iterator<Item = (&u32, &Seen)> {
        self.seen.iter().filter(|(_, socket)| {
            socket.protocol != "tcp" || socket.queued_max > 0 || socket.memory.drops[1] > 0
        })
    }

    /// Those that drop first, then the fullest.
    fn ranked(&self) -> Vec<u32> {
        let mut ranked: Vec<(&u32, &Seen)> = self.interesting().collect();
        ranked.sort_by(|(inode_a, a), (inode_b, b)| {
            let fuller = b.filled_ratio().total_cmp(&a.filled_ratio());
            b.dropped().cmp(&a.dropped()).then(fuller).then(inode_a.cmp(inode_b))
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
    /// Packets in the window.
    fn dropped(&self) -> u32 {
        self.memory.drops[1].wrapping_sub(self.memory.drops[0])
    }

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
    fn a_list_that_the_kernel_does_not_have_is_asked_for_once_a_minute_and_leaves_a_gap() {
        let missing = |module: &str| HostError::Unsupported {
            what: "list sockets".into(),
            needs: format!("module {module}"),
        };
        let mut sockets = Sockets::default();
        assert_eq!(due(&mut sockets), [true; 2]);
        sockets.take_udp(Err(missing("udp_diag")), Duration::ZERO);
        sockets.take_tcp(Err(missing("tcp_diag")), Duration::ZERO);
        for _ in 0..2 {
            assert_eq!(due(&mut sockets), [false; 2]);
            let looks = sockets.take();
            assert!(looks.udp_gap.unwrap().contains("udp_diag"));
            assert!(looks.gap.unwrap().contains("tcp_diag"));
        }
        let until = sockets.udp_list.wait.as_ref().unwrap().0;
        assert!(until <= Instant::now() + ASK_AGAIN);
        // Somebody loaded the modules.
        is_over(&mut sockets);
        assert_eq!(due(&mut sockets), [true; 2]);
        sockets.take_udp(Ok(Vec::new()), Duration::ZERO);
        sockets.take_tcp(Ok(Vec::new()), Duration::ZERO);
        assert!(sockets.take().udp_gap.is_some(), "in a part of this window");
        assert_eq!(due(&mut sockets), [true; 2]);
        let looks = sockets.take();
        assert_eq!((looks.udp_gap, looks.gap), (None, None));
    }

    #[test]
    fn a_list_that_failed_once_is_a_gap_of_that_window() {
        let mut sockets = Sockets::default();
        let failed = HostError::kernel("list UDP sockets", libc::ENOBUFS);
        sockets.take_udp(Err(failed), Duration::ZERO);
        assert_eq!(due(&mut sockets), [true; 2]);
        assert!(sockets.take().udp_gap.is_some());
        assert_eq!(sockets.take().udp_gap, None, "of another window");
    }

    #[test]
    fn a_list_that_took_long_is_read_once_in_five_minutes_and_leaves_a_gap() {
        let mut sockets = Sockets::default();
        sockets.take_udp(Ok(Vec::new()), DEAR);
        sockets.take_tcp(Ok(Vec::new()), 2 * DEAR);
        let looks = sockets.take();
        assert_eq!((looks.udp_gap, looks.gap), (None, None), "all was read");
        assert_eq!(due(&mut sockets), [true, false], "each protocol by itself");
        let until = sockets.tcp_list.wait.as_ref().unwrap().0;
        assert!(until > Instant::now() + DEAR_AGAIN / 2 && until <= Instant::now() + DEAR_AGAIN);
        let looks = sockets.take();
        assert_eq!(looks.udp_gap, None);
        assert_eq!(
            looks.gap.unwrap(),
            "read once in 5 minutes: the last list took 40 ms of CPU time"
        );
        // Five minutes later there are few: what was there at the begin of that window is not known.
        is_over(&mut sockets);
        assert_eq!(due(&mut sockets), [true; 2]);
        sockets.take_tcp(Ok(Vec::new()), Duration::ZERO);
        assert!(sockets.take().gap.is_some());
        assert_eq!((due(&mut sockets), sockets.take().gap), ([true; 2], None));
    }

    /// Whether UDP's and TCP's lists are due.
    fn due(sockets: &mut Sockets) -> [bool; 2] {
        [sockets.udp_list.is_due(), sockets.tcp_list.is_due()]
    }

    /// The waits for both are over now.
    fn is_over(sockets: &mut Sockets) {
        for list in [&mut sockets.udp_list, &mut sockets.tcp_list] {
            list.wait.iter_mut().for_each(|(until, _)| *until = Instant::now());
        }
    }
}
