//! Programs of the live view and of deep looks that cannot be put into their places for a while: nothing old is shown as new,
//! counters go on, and the programs count again later.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rxpath_live::deep::{DeepLook, Programs};
use rxpath_live::watch::{LiveWatcher, ProbeLimit, WatcherOptions};
use rxpath_record::watch::PathStage;

use crate::bed::{Bed, until};

/// A soft limit of descriptors, of which so many are free; taken back when it is dropped.
struct FewDescriptors {
    before: (u64, u64),
}

impl FewDescriptors {
    fn free(count: u64) -> Self {
        let before = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        // The kernel gives the lowest number that is free.
        let lowest = File::open("/dev/null").unwrap().as_raw_fd() as u64;
        setrlimit(Resource::RLIMIT_NOFILE, lowest + count, before.1).unwrap();
        Self { before }
    }
}

impl Drop for FewDescriptors {
    fn drop(&mut self) {
        setrlimit(Resource::RLIMIT_NOFILE, self.before.0, self.before.1).unwrap();
    }
}

const PROBES: &str = "BPF probes";

/// Whether a window has what its probes counted.
fn counts(watcher: &mut LiveWatcher) -> bool {
    watcher.note();
    let frame = watcher.frame();
    watcher.totals(&frame).is_some() && !frame.gaps.contains_key(PROBES)
}

#[test]
fn probes_that_cannot_be_attached_again_show_nothing_old_and_come_back() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let limit = |with_any| ProbeLimit { cpu_ratio: 0.01, with_latency: true, with_any };
    let mut watcher = LiveWatcher::start(WatcherOptions::default()).unwrap();
    until("a window with probes", || counts(&mut watcher));
    watcher.limit(limit(false));
    {
        // Each program in its place has a descriptor, and three are needed at least.
        let _few = FewDescriptors::free(2);
        watcher.limit(limit(true));
    }
    for _ in 0..2 {
        let frame = watcher.frame();
        let why = frame.gaps.get(PROBES).unwrap_or_else(|| panic!("{:?}", frame.gaps));
        assert!(why.contains("tried again"), "{why}");
        assert!(watcher.totals(&frame).is_none(), "an old sample is shown as new");
        let ip = frame.stages.iter().find(|row| row.stage == PathStage::Ip).unwrap();
        assert!(ip.rate_per_s.value().is_some(), "{ip:?}");
    }
    assert!(watcher.due().is_some(), "nobody tries again");
    watcher.limit(limit(false));
    watcher.limit(limit(true));
    until("the probes count again", || counts(&mut watcher));
}

#[test]
fn programs_that_a_deep_look_cannot_attach_are_attached_by_the_next() {
    let Some(_bed) = Bed::with_bpf() else { return };
    let (programs, unloaded) = Programs::load();
    assert!(unloaded.is_empty(), "{unloaded:?}");
    let begin =
        |programs| DeepLook::begin(Duration::from_millis(200), &mut Some(programs)).unwrap();
    let without = {
        let _none = FewDescriptors::free(0);
        begin(programs).end()
    };
    assert_eq!(without.refused.len(), 2, "{without:?}");
    assert!(without.programs_cpu.whole().is_zero(), "{without:?}");
    let look = begin(without.programs);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    while !look.is_over() {
        socket.send_to(&[0; 8], socket.local_addr().unwrap()).unwrap();
        socket.recv(&mut [0; 8]).unwrap();
    }
    let with = look.end();
    assert!(with.refused.is_empty() && with.verdict.is_ok(), "{with:?}");
    assert!(!with.programs_cpu.whole().is_zero(), "{with:?}");
}
