//! What root tests stand on: a `/run` of their own, an owner with a random id, two namespaces with a wire.

use std::cell::Cell;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rand::RngExt;
use rxpath_host::lab::lock::LabLock;
use rxpath_host::lab::netns::Namespace;
use rxpath_host::lab::owner::Owner;
use rxpath_host::read::thread;

use crate::program::{Said, said};
use crate::skip::skip;

pub const TX_IP: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub const RX_IP: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const TX_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const RX_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// The machine's lab lock, held until the last test has ended: no experiment runs on a machine that tests.
static MACHINE: OnceLock<LabLock> = OnceLock::new();

/// Namespaces of a test, removed with it.
pub struct Bed {
    pub owner: Owner,
}

impl Bed {
    /// `None`, and the test is named as skipped, without root.
    pub fn new() -> Option<Self> {
        if !may_run() {
            return None;
        }
        Some(Self { owner: Owner::register(&random_id()).expect("root") })
    }

    /// As [`Bed::new`], where BPF programs can be loaded too.
    pub fn with_bpf() -> Option<Self> {
        let bed = Self::new()?;
        match rxpath_bpf::can_run(&rxpath_host::Root::host()).require("load BPF programs") {
            Ok(()) => Some(bed),
            Err(reason) => {
                skip("bpf_programs", &reason.to_string());
                None
            }
        }
    }

    /// As [`Bed::new`], with a [`Bed::pair`] of one queue.
    pub fn wired() -> Option<(Self, Namespace, Namespace)> {
        Some(Self::new()?.with_pair())
    }

    /// As [`Bed::wired`], where BPF programs can be loaded too.
    pub fn wired_with_bpf() -> Option<(Self, Namespace, Namespace)> {
        Some(Self::with_bpf()?.with_pair())
    }

    /// As [`Bed::wired_with_bpf`], where RPS puts what the second namespace receives on the last CPU. With the first CPU and that
    /// one; `None` also where they are the same.
    pub fn steered() -> Option<(Self, Namespace, Namespace, [u32; 2])> {
        let bed = Self::with_bpf()?;
        let [from, .., to] = thread::allowed_cpus().unwrap().0[..] else {
            skip("second_cpu", "one CPU: there is none to steer to");
            return None;
        };
        let (bed, tx, rx) = bed.with_pair();
        rx.set_dev_attr("veth", "queues/rx-0/rps_cpus", &format!("{:x}", 1u64 << to)).unwrap();
        Some((bed, tx, rx, [from, to]))
    }

    fn with_pair(self) -> (Self, Namespace, Namespace) {
        let (tx, rx) = self.pair(1);
        (self, tx, rx)
    }

    /// Sender and receiver, joined by a veth pair named `veth` at both ends: up, quiet (no IPv6,
    /// permanent neighbours), with `queues` queues.
    pub fn pair(&self, queues: u32) -> (Namespace, Namespace) {
        let tx = Namespace::create(&self.owner, "tx").unwrap();
        let rx = Namespace::create(&self.owner, "rx").unwrap();
        tx.disable_ipv6().unwrap();
        rx.disable_ipv6().unwrap();
        tx.veth_to("veth", &rx, "veth", queues).unwrap();
        for (ns, ip, mac) in [(&tx, TX_IP, TX_MAC), (&rx, RX_IP, RX_MAC)] {
            ns.set_mac("veth", mac).unwrap();
            ns.add_address("veth", ip.into(), 24).unwrap();
            ns.set_up("veth", true).unwrap();
        }
        tx.add_neighbour("veth", RX_IP.into(), RX_MAC).unwrap();
        rx.add_neighbour("veth", TX_IP.into(), TX_MAC).unwrap();
        (tx, rx)
    }
}

/// Whether a lab can be made here; otherwise says that the test is skipped.
///
/// From here on the test has a `/run` of its own: lock files, records and names of namespaces are not those of another test
/// or of the machine.
pub fn may_run() -> bool {
    let can = rxpath_host::caps::lab();
    if let Err(reason) = can.require("make a lab") {
        skip("root_lab", &reason.to_string());
        return false;
    }
    let lock = || LabLock::take(Duration::from_secs(300)).expect("the lab lock within 5 minutes");
    MACHINE.get_or_init(lock);
    own_run().expect("a /run of its own");
    true
}

thread_local! {
    /// Whether this thread has a `/run` of its own; tests that run one at a time share a thread.
    static HAS_OWN_RUN: Cell<bool> = const { Cell::new(false) };
}

/// Gives the calling thread, and every thread and process that it starts, an empty `/run`.
fn own_run() -> nix::Result<()> {
    if HAS_OWN_RUN.replace(true) {
        return Ok(());
    }
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    // As on a host: only root may create a file in it.
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), Some("mode=755"))
}

/// Runs the program where the kernel shows no types (BTF).
pub fn without_types(words: &[&str]) -> Said {
    let script = "mount -t tmpfs none /sys/kernel/btf && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_rxpath")]);
    said(command.args(words))
}

pub fn random_id() -> String {
    format!("{:06x}", rand::rng().random_range(0..1u32 << 24))
}

/// Sends `count` datagrams of 32 bytes from a namespace to the receiver's `port`.
pub fn send(tx: &Namespace, port: u16, count: u32) {
    tx.run(move |_| {
        let socket = UdpSocket::bind((TX_IP, 0)).unwrap();
        for _ in 0..count {
            socket.send_to(&[7; 32], (RX_IP, port)).unwrap();
        }
    })
    .unwrap();
}

/// The last of at most three attempts: other load may rightly decide how one ends, not how three in a row do.
///
/// What must hold however an attempt ends is asserted within it, and the caller asserts the rest of the one that it gets.
pub fn tried<T>(attempt: impl Fn() -> T, is_as_wanted: impl Fn(&T) -> bool) -> T {
    (0..2).fold(attempt(), |last, _| {
        if is_as_wanted(&last) {
            return last;
        }
        // Two at a time could disturb each other.
        drop(last);
        attempt()
    })
}

/// A search by [`tried`]: one may end without a proof on a machine that is disturbed meanwhile, or before it has one, where the
/// sender had no CPU in some trials (5). It says so.
pub fn searched(search: impl Fn() -> Said) -> Said {
    tried(search, |said| !matches!(said.code, Some(1 | 4 | 5)))
}

/// Waits for a condition; panics with `what` after 20 s.
pub fn until(what: &str, condition: impl FnMut() -> bool) {
    until_within(Duration::from_secs(20), what, condition);
}

/// Waits for a condition; panics with `what` after this time.
pub fn until_within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(2));
    }
}
