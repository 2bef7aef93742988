//! `rxpath export --netns`: the port stays where it was started, and one exporter of a namespace has the probes.

use std::net::UdpSocket;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Command;

use rxpath_host::lab::netns::Namespace;

use crate::bed::{Bed, RX_IP, send, until};
use crate::exporter::{QUICK, Running};

/// An exporter of this namespace.
fn exporter(rx: &Namespace, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxpath"));
    command.args(["export", "--netns", rx.name()]).args(words);
    command
}

/// The path of a namespace is measured by an exporter whose port is where it was started.
#[test]
fn another_namespace_is_measured_and_the_port_stays() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4810)).unwrap()).unwrap();
    let running = Running::of(exporter(&rx, &QUICK));
    let passed = "rxpath_stage_passed_total{stage=\"ip\",unit=\"packets\"}";
    until("datagrams arrive there", || {
        send(&tx, 4810, 1_000);
        running.value(passed) > Some(10_000.0)
    });
}

/// Two would cost twice as much and measure each other.
#[test]
fn a_second_exporter_goes_on_with_counters_only_and_says_why() {
    let Some((_bed, _tx, rx)) = Bed::wired_with_bpf() else { return };
    let first = Running::of(exporter(&rx, &QUICK));
    let (second, told) = Running::told(exporter(&rx, &[]));
    assert!(told.contains("another exporter") && told.contains("--no-bpf"), "{told}");
    assert_eq!(told.matches("counters only:").count(), 1, "{told}");
    until("it counts", || second.value("rxpath_window_seconds_total") > Some(0.0));
    assert_eq!(second.value("rxpath_probe_up"), Some(0.0));
    drop(second);
    let alongside = Running::of(exporter(&rx, &["--no-bpf"]));
    let counted = || alongside.value("rxpath_window_seconds_total") > Some(0.0);
    until("counters alone run alongside", counted);
    first.goes_on();
    // The kernel gives the place back, also after a kill.
    drop(first);
    Running::of(exporter(&rx, &QUICK)).goes_on();
}

/// Any local user can take the name: that must not switch off the probes.
#[test]
fn a_stranger_with_the_name_does_not_switch_off_the_probes() {
    let Some((_bed, _tx, rx)) = Bed::wired_with_bpf() else { return };
    let stranger = rx.run(|_| {
        let name = SocketAddr::from_abstract_name("rxpath-export").unwrap();
        UnixDatagram::bind_addr(&name).unwrap()
    });
    let _stranger = stranger.unwrap();
    let (running, told) = Running::told(exporter(&rx, &QUICK));
    assert!(told.contains("@rxpath-export") && !told.contains("counters only"), "{told}");
    running.goes_on();
}
