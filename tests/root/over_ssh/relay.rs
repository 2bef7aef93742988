//! A wire with trouble: two TAP devices, and a program between them that drops datagrams or holds them, and knows which.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use rxpath_host::lab::netns::Namespace;

/// Ethernet header, then IPv4's fields.
const HEADER: usize = 14;
const TYPE_AT: usize = 12;
const IPV4: [u8; 2] = [0x08, 0x00];
/// A VLAN's tag comes before the type: its own type and its number.
const VLAN: [u8; 2] = [0x81, 0x00];
const TAG: usize = 4;
const PROTOCOL_AT: usize = 14 + 9;
const UDP: u8 = 17;

/// Datagrams behind this many are not dropped: no sequence number tells that the last ones of a stream are missing. A trial
/// sends some 8,500; on a busy machine its sender may get no CPU at the end.
const LAST_DROPPED: u64 = 5_000;
/// A frame of the load, with 32 bytes. Shorter ones are those by which clocks are compared: none of a trial.
const LEAST_DROPPED: usize = 74;

/// What happens to datagrams from the first to the second device.
#[derive(Clone, Copy, Default)]
pub struct Trouble {
    /// Each so many of the first [`LAST_DROPPED`] is dropped.
    pub drop_each: Option<u64>,
    /// They are held for this long.
    pub hold: Duration,
    /// Larger packets are dropped, as on a link with this MTU. **Unit** bytes.
    pub mtu: Option<usize>,
}

pub struct Relay {
    stop: Arc<AtomicBool>,
    dropped: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    pub fn between(from: File, to: File, trouble: Trouble) -> Self {
        let (stop, dropped) = (Arc::default(), Arc::default());
        let ways = [
            (from.try_clone().unwrap(), to.try_clone().unwrap(), trouble),
            (to, from, Trouble::default()),
        ];
        let start = |(from, to, trouble)| {
            let carrier = Carrier {
                from,
                to,
                trouble,
                stop: Arc::clone(&stop),
                dropped: Arc::clone(&dropped),
                waiting: VecDeque::new(),
            };
            std::thread::spawn(move || carrier.carry())
        };
        let threads = ways.into_iter().map(start).collect();
        Self { stop, dropped, threads }
    }

    /// Datagrams that it dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// One direction.
struct Carrier {
    from: File,
    to: File,
    trouble: Trouble,
    stop: Arc<AtomicBool>,
    dropped: Arc<AtomicU64>,
    /// Datagrams that are held, with the instant at which they came.
    waiting: VecDeque<(Instant, Vec<u8>)>,
}

impl Carrier {
    fn carry(mut self) {
        let mut frame = [0_u8; 2048];
        let mut datagrams = 0_u64;
        while !self.stop.load(Ordering::Relaxed) {
            self.let_go();
            if !self.is_ready() {
                continue;
            }
            let Ok(length) = self.from.read(&mut frame) else { return };
            let frame = &frame[..length];
            if self.trouble.mtu.is_some_and(|mtu| frame.len() > HEADER + mtu) {
                continue;
            }
            if !is_datagram(frame) {
                // A device that is down takes nothing.
                let _ = self.to.write(frame);
                continue;
            }
            let is_of_load = frame.len() >= LEAST_DROPPED;
            datagrams += u64::from(is_of_load);
            let is_dropped = |nth| datagrams <= LAST_DROPPED && datagrams.is_multiple_of(nth);
            if is_of_load && self.trouble.drop_each.is_some_and(is_dropped) {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            } else {
                self.waiting.push_back((Instant::now(), frame.to_vec()));
            }
        }
    }

    /// Writes the datagrams whose time has come.
    fn let_go(&mut self) {
        let hold = self.trouble.hold;
        while self.waiting.front().is_some_and(|(came, _)| came.elapsed() >= hold) {
            let Some((_, frame)) = self.waiting.pop_front() else { return };
            let _ = self.to.write(&frame);
        }
    }

    /// Waits for a frame, or for the time of the next one that is held.
    fn is_ready(&self) -> bool {
        let longest = Duration::from_millis(50);
        let next =
            self.waiting.front().map(|(came, _)| self.trouble.hold.saturating_sub(came.elapsed()));
        let wait = TimeSpec::from_duration(next.unwrap_or(longest).min(longest));
        let mut ready = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
        ppoll(&mut ready, Some(wait), None).unwrap() > 0
    }
}

fn is_datagram(frame: &[u8]) -> bool {
    let tag = if frame.get(TYPE_AT..TYPE_AT + 2) == Some(VLAN.as_slice()) { TAG } else { 0 };
    let Some(frame) = frame.get(tag..) else { return false };
    frame.len() > PROTOCOL_AT && frame[TYPE_AT..TYPE_AT + 2] == IPV4 && frame[PROTOCOL_AT] == UDP
}

/// A TAP device in a namespace.
pub fn tap(ns: &Namespace, dev: &'static str) -> File {
    const TUNSETIFF: nix::libc::c_ulong = 0x4004_54ca;
    const IFF_TAP_NO_PI: u16 = 0x1002;
    let made = ns.run(move |_| {
        let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun").unwrap();
        // struct ifreq: the name, then the flags.
        let mut ask = [0_u8; 40];
        ask[..dev.len()].copy_from_slice(dev.as_bytes());
        ask[16..18].copy_from_slice(&IFF_TAP_NO_PI.to_ne_bytes());
        // SAFETY: the request takes a structure of 40 bytes, which outlives the call.
        let done = unsafe { nix::libc::ioctl(file.as_raw_fd(), TUNSETIFF, ask.as_mut_ptr()) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        file
    });
    made.unwrap()
}
