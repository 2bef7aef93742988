//! A wire that loses: two TAP devices, and a program between them that drops frames and counts what it dropped.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use nix::poll::{PollFd, PollFlags, poll};
use rxpath_host::Namespace;

/// Ethernet header, then IPv4's fields.
const TYPE_AT: usize = 12;
const IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL_AT: usize = 14 + 9;
const UDP: u8 = 17;

pub struct Relay {
    stop: Arc<AtomicBool>,
    dropped: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Joins two devices; of the datagrams from the first to the second it drops each `nth`.
    pub fn between(from: File, to: File, nth: u64) -> Self {
        let (stop, dropped) = (Arc::default(), Arc::default());
        let ways =
            [(from.try_clone().unwrap(), to.try_clone().unwrap(), Some(nth)), (to, from, None)];
        let start = |(from, to, nth)| {
            let (stop, dropped) = (Arc::clone(&stop), Arc::clone(&dropped));
            std::thread::spawn(move || carry(from, to, nth, (&stop, &dropped)))
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

fn carry(
    mut from: File,
    mut to: File,
    nth: Option<u64>,
    (stop, dropped): (&AtomicBool, &AtomicU64),
) {
    let mut frame = [0_u8; 2048];
    let mut datagrams = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, 50_u8).unwrap() == 0 {
            continue;
        }
        let Ok(length) = from.read(&mut frame) else { return };
        let is_udp = length > PROTOCOL_AT
            && frame[TYPE_AT..TYPE_AT + 2] == IPV4
            && frame[PROTOCOL_AT] == UDP;
        datagrams += u64::from(is_udp);
        if is_udp && nth.is_some_and(|nth| datagrams.is_multiple_of(nth)) {
            dropped.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        // A device that is down takes nothing.
        let _ = to.write(&frame[..length]);
    }
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
