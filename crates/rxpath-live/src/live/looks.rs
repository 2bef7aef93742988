//! The sockets of a window, sampled from its beginning to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rxpath_host::netlink::Netlink;
use rxpath_host::read::clock::monotonic_ns;
use rxpath_host::read::netlink::TcpSocket;
use rxpath_host::read::procfs::socket_owner;
use rxpath_host::{HostError, Root};

use super::probes::Probes;
use super::sockets::look;
use super::{LiveRequest, Owners, Socket, TcpLooks, UDP_SOCKETS};

/// Time between two looks at the sockets.
const LOOK: Duration = Duration::from_millis(20);
/// And at TCP's; a pause of this many times what the last one took is longer where there are many.
const TCP_LOOK: Duration = Duration::from_millis(50);
const TCP_PAUSE: u32 = 20;

/// The sockets over the window, sampled.
pub(super) struct Looks<'a> {
    ask: &'a LiveRequest,
    diag: Netlink,
    pub(super) sockets: BTreeMap<u32, Socket>,
    pub(super) tcp: TcpLooks,
    /// When TCP's sockets are sampled next: it takes a walk over all connections.
    due: Instant,
    /// From the last sample of UDP's sockets to the next.
    pause: Duration,
    /// UDP's sockets that were there before the window, by two samples: one alone may miss some.
    before: Option<BTreeSet<u32>>,
    /// Why UDP's sockets are missing, in a part of the window at least.
    gap: Option<String>,
    /// The kernel has no list of them: each further question would search for its module again.
    no_udp: bool,
}

impl<'a> Looks<'a> {
    /// The sockets that are there, to find their owners.
    pub(super) fn start(ask: &'a LiveRequest) -> Result<Self, HostError> {
        let diag = Netlink::sock_diag()?;
        let mut looks = Self {
            ask,
            diag,
            sockets: BTreeMap::new(),
            tcp: TcpLooks::default(),
            due: Instant::now(),
            pause: LOOK,
            before: None,
            gap: None,
            no_udp: false,
        };
        looks.look();
        looks.end();
        Ok(looks)
    }

    /// The window begins: what was seen until now does not count.
    pub(super) fn begin(&mut self) {
        let mut before: BTreeSet<u32> = self.sockets.keys().copied().collect();
        self.sockets.clear();
        (self.tcp, self.due) = (TcpLooks::default(), Instant::now());
        if !self.no_udp {
            self.gap = None;
        }
        self.look();
        before.extend(self.sockets.keys());
        // Without a whole list an old socket would pass for one that came in the window.
        self.before = self.gap.is_none().then_some(before);
    }

    fn look_at_udp(&mut self) {
        let (ask, before, begun) = (self.ask, self.before.as_ref(), Instant::now());
        if let Err(error) = look(&mut self.diag, ask.port, before, &mut self.sockets) {
            self.no_udp = matches!(error, HostError::Unsupported { .. });
            self.gap = Some(error.to_string());
        }
        self.pause = pause(begun.elapsed(), ask.udp_pause);
    }

    fn look(&mut self) {
        if !self.no_udp {
            self.look_at_udp();
        }
        let now = Instant::now();
        if now >= self.due {
            self.tcp.sample(&mut self.diag);
            self.due = now + TCP_LOOK.max(now.elapsed() * TCP_PAUSE);
        }
    }

    /// Samples them until the window's end, or until `stop`.
    pub(super) fn until(&mut self, end_ns: u64, stop: &AtomicBool, probes: &mut Probes) {
        while monotonic_ns() < end_ns && !stop.load(Ordering::Relaxed) {
            let left = Duration::from_nanos(end_ns.saturating_sub(monotonic_ns()));
            // why: the pacing of the samples of the sockets.
            std::thread::sleep(self.pause.min(left));
            self.look();
            probes.note();
        }
    }

    /// The window ends: a last sample of TCP's, and of all only what was asked for.
    pub(super) fn end(&mut self) {
        self.tcp.sample(&mut self.diag);
        if let Some(only) = &self.ask.only {
            let inodes = only.inodes();
            self.sockets.retain(|inode, _| inodes.contains(inode));
        }
        self.tcp.only(self.ask.covers());
    }

    /// These gaps of the window, and that of UDP's sockets.
    pub(super) fn gaps(&self, others: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let own = self.gap.clone().map(|why| (UDP_SOCKETS.to_owned(), why));
        others.clone().into_iter().chain(own).collect()
    }

    /// Who has the sockets that came in the window.
    pub(super) fn owners_since(&self, listeners: &[TcpSocket], before: &BTreeSet<u32>) -> Owners {
        let mut now = self.inodes();
        now.extend(listeners.iter().map(|socket| socket.inode));
        socket_owner::of(&Root::host(), &(&now - before))
    }

    pub(super) fn inodes(&self) -> BTreeSet<u32> {
        let all = self.sockets.keys().copied().chain(self.tcp.inodes());
        all.filter(|inode| *inode != 0).collect()
    }
}

/// Behind a list of UDP's sockets that took so long.
fn pause(took: Duration, times: u32) -> Duration {
    LOOK.max(took * times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_takes_long_is_followed_by_a_pause_that_pays_for_it() {
        let ms = Duration::from_millis;
        for (took_ms, times, pause_ms) in [(0, 20, 20), (1, 20, 20), (5, 20, 100), (500, 0, 20)] {
            assert_eq!(pause(ms(took_ms), times), ms(pause_ms), "{took_ms} ms, {times}");
        }
    }
}
