//! The programs of deep looks, which are attached again and again.

use std::net::UdpSocket;

use nix::unistd::gettid;
use rxpath_bpf::locks::Locks;
use rxpath_bpf::probe::{Probe, lost};
use rxpath_bpf::reads::Reads;
use rxpath_host::read::identity::network_namespace;

use crate::xdp::has_bpf;

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
    let mut reads = Reads::load(network_namespace().unwrap() as u32).unwrap();
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
