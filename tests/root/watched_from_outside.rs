//! `rxpath diagnose` on a network namespace that it was not started in, and on one that goes.

use std::process::{Child, Command, Stdio};

use crate::alone::diagnose::{in_window, watching};
use crate::alone::live_limits::seen;
use crate::alone::live_tcp::stop;
use crate::bed::{Bed, RX_IP, send, until};

/// Watches from here, where the tests are, and is in its window.
fn from_outside(words: &[&str]) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rxpath"))
        .args(["diagnose", "--json", "-d", "600s", "--no-bpf"])
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    in_window(&mut child);
    child
}

#[test]
fn a_namespace_is_watched_from_outside_by_its_name_and_by_a_process() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    let _full = rx.run(|_| std::net::UdpSocket::bind((RX_IP, 4843)).unwrap()).unwrap();
    let child = from_outside(&["--netns", rx.name()]);
    send(&tx, 4843, 50);
    seen(&child, 2);
    let value = stop(child);
    let evidence = &value["result"]["evidence_read"];
    assert_eq!(evidence["namespace"], rx.name(), "{evidence}");
    assert_eq!(value["settings"]["netns"], rx.name(), "{value}");
    // In this namespace nothing else sends UDP.
    assert!(evidence["sockets"].to_string().contains("10.77.0.2:4843"), "{evidence}");
    assert_eq!(evidence["sockets"].as_array().unwrap().len(), 1, "{evidence}");
    // A process there that has no socket.
    let mut sleeper =
        Command::new("ip").args(["netns", "exec", rx.name(), "sleep", "600"]).spawn().unwrap();
    let pid = sleeper.id().to_string();
    let name = format!("/proc/{pid}/comm");
    until("it sleeps", || std::fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n"));
    let child = from_outside(&["--pid", &pid]);
    seen(&child, 2);
    let value = stop(child);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let evidence = &value["result"]["evidence_read"];
    assert_eq!(evidence["namespace"], rx.name(), "{evidence}");
    assert_eq!(evidence["sockets"].as_array().unwrap().len(), 0, "{evidence}");
    let warnings = value["warnings"].to_string();
    assert!(warnings.contains("all-processes") && warnings.contains("no-socket"), "{warnings}");
}

#[test]
fn a_namespace_that_goes_while_it_is_watched_does_not_end_the_watch() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let mut child = watching(&rx, &["-d", "600s"]);
    in_window(&mut child);
    send(&tx, 4812, 1_000);
    // Its name and its link go; the watch is inside and keeps what is left.
    drop((tx, rx));
    let value = stop(child);
    assert!(value["result"]["stage"].is_string(), "{value}");
}
