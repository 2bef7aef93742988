//! The programs of deep looks, which are attached again and again.

use std::net::UdpSocket;
use std::time::Duration;

use nix::unistd::gettid;
use rxpath_bpf::locks::Locks;
use rxpath_bpf::probe::{Probe, lost};
use rxpath_bpf::reads::Reads;
use rxpath_host::read::identity::network_namespace;
use rxpath_live::deep::{DeepLook, Programs};

use crate::bypass::has_bpf;

/// Reads one datagram.
fn read_one() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&[0; 8], socket.local_addr().unwrap()).unwrap();
    socket.recv(&mut [0; 8]).unwrap();
}

#[test]
fn what_was_counted_and_lost_before_is_forgotten_when_it_is_attached_again() {
    if !has_bpf() {
        return;
    }
    let mut reads = Reads::load(network_namespace().unwrap() as u32, 1024).unwrap();
    let mut locks = Locks::load().unwrap();
    for probe in [&reads as &dyn Probe, &locks] {
        probe.loaded().put("lost", &0u32.to_ne_bytes(), &7u64.to_ne_bytes()).unwrap();
    }
    assert_eq!(lost(&[&reads, &locks]).unwrap(), 14);
    reads.attach().unwrap();
    locks.attach().unwrap();
    assert_eq!(lost(&[&reads, &locks]).unwrap(), 0);
    let own = gettid().as_raw();
    let is_counted = |reads: &Reads| reads.read().unwrap().iter().any(|read| read.tid == own);
    read_one();
    assert!(is_counted(&reads));
    reads.detach();
    assert!(!is_counted(&reads), "its entries take memory until the next deep look");
    reads.attach().unwrap();
    read_one();
    assert!(is_counted(&reads), "a program that was detached stays loaded");
}

/// Each read is one of another socket. Linux counts the entries that there are (since 6.4).
#[test]
fn what_the_readers_of_a_deep_look_take_counts_as_memory_and_is_bounded() {
    if !has_bpf() {
        return;
    }
    let (programs, unloaded) = Programs::load();
    assert!(unloaded.is_empty(), "{unloaded:?}");
    let between = programs.map_bytes();
    let look = DeepLook::begin(Duration::from_millis(500), &mut Some(programs)).unwrap();
    while !look.is_over() {
        read_one();
    }
    let seen = look.end();
    assert!(seen.refused.is_empty(), "{seen:?}");
    assert!(between > 0 && seen.map_bytes > between, "{between} {seen:?}");
    assert!(seen.map_bytes < 6_000_000, "{seen:?}");
    assert_eq!(seen.programs.map_bytes(), between, "what was read takes memory until the next one");
}
