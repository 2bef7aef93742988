//! A thread inside a network namespace reads that namespace's counters and devices, and only those.

use std::net::UdpSocket;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use rxpath_host::Root;
use rxpath_host::read::snapshot;
use rxpath_host::read::sysfs::device;

use crate::skip::skip;

const COUNTER: &str = "Ip.OutNoRoutes";
/// Datagrams that find no route.
const FAILED: u64 = 500;

/// Runs `job` in a new network and mount namespace with a sysfs of its own; both end with the thread.
fn inside<T: Send + 'static>(job: impl FnOnce(&Root) -> T + Send + 'static) -> T {
    let run = move || {
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
        let none: Option<&str> = None;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        let sysfs = tempfile::tempdir().unwrap();
        mount(Some("sysfs"), sysfs.path(), Some("sysfs"), MsFlags::MS_RDONLY, none).unwrap();
        let result = job(&Root::thread_netns(sysfs.path()));
        umount2(sysfs.path(), MntFlags::MNT_DETACH).unwrap();
        result
    };
    std::thread::spawn(run).join().unwrap()
}

/// A datagram that finds no route: the namespace has no address and its loopback is down.
fn fail_to_send() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.send_to(b"x", "192.0.2.1:9").unwrap_err();
}

#[test]
fn counters_are_the_threads_namespaces() {
    if !nix::unistd::geteuid().is_root() {
        return skip("thread_netns", "not root");
    }
    let mut reader = inside(|root| {
        let mut of_namespace = snapshot::Reader::protocols(root);
        let mut of_process = snapshot::Reader::protocols(&Root::host());
        let process_before = of_process.read();
        assert_eq!(of_namespace.read().values[COUNTER], 0, "a new namespace begins at 0");
        for _ in 0..FAILED {
            fail_to_send();
        }
        assert_eq!(of_namespace.read().values[COUNTER], FAILED);
        // The trap that the view is for: /proc/net is the process's, not the thread's. Other programs may have no route there.
        let others = of_process.read().values[COUNTER] - process_before.values[COUNTER];
        assert!(others < FAILED / 2, "{others}");
        of_namespace
    });
    // The files held open still show the namespace, read from a thread that was never in it.
    assert_eq!(reader.read().values[COUNTER], FAILED);
}

#[test]
fn devices_are_the_threads_namespaces() {
    if !nix::unistd::geteuid().is_root() {
        return skip("thread_netns", "not root");
    }
    inside(|root| {
        assert_eq!(device::names(root).unwrap(), ["lo"]);
        assert_eq!(device::read(root, "lo").unwrap().operstate.into_value().unwrap(), "down");
        assert!(Path::new("/sys/class/net/lo").exists());
        assert_eq!(
            rxpath_host::read::procfs::sysctl::read(root, "net.ipv4.ip_forward").unwrap().number(),
            Some(0)
        );
        let core = rxpath_host::read::procfs::sysctl::read(root, "net.core.netdev_budget");
        assert!(core.is_err(), "a namespace does not show the machine's budget");
    });
}
