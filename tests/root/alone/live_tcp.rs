//! `rxpath diagnose` and `rxpath watch` on TCP and on other namespaces: real sockets, judged from outside.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen, socket,
};
use nix::unistd::Pid;
use rxpath_host::lab::netns::Namespace;
use serde_json::Value;
use std::os::fd::AsRawFd;

use crate::alone::diagnose::{end, in_window, looks, watching};
use crate::alone::live_limits::seen;
use crate::bed::{Bed, RX_IP, send};

/// Watches counters in this namespace, and is in its window.
fn counting(ns: &Namespace) -> Child {
    let mut child = watching(ns, &["-d", "600s", "--no-bpf"]);
    in_window(&mut child);
    child
}

/// Ends the watch: the whole answer.
pub fn stop(child: Child) -> Value {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let (code, value) = end(child);
    assert_eq!(code, Some(130), "{value}");
    value
}

fn listener(rx: &Namespace, port: u16) -> TcpListener {
    rx.run(move |_| TcpListener::bind((RX_IP, port)).unwrap()).unwrap()
}

/// A connection: the far end's, and the accepted one.
fn connected(tx: &Namespace, listener: &TcpListener, port: u16) -> (TcpStream, TcpStream) {
    let far = tx.run(move |_| TcpStream::connect((RX_IP, port)).unwrap()).unwrap();
    far.set_nodelay(true).unwrap();
    let (near, _) = listener.accept().unwrap();
    near.set_nodelay(true).unwrap();
    (far, near)
}

/// A question and an answer of 100 bytes each, so often.
fn ask(far: &mut TcpStream, near: &mut TcpStream, times: u32) {
    let mut buffer = [0; 100];
    for _ in 0..times {
        far.write_all(&[7; 100]).unwrap();
        near.read_exact(&mut buffer).unwrap();
        near.write_all(&buffer).unwrap();
        far.read_exact(&mut buffer).unwrap();
    }
}

#[test]
fn a_program_that_does_not_read_its_connection_is_named() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    let listener = listener(&rx, 4840);
    let (mut far, near) = connected(&tx, &listener, 4840);
    far.set_nonblocking(true).unwrap();
    let child = counting(&rx);
    let before = looks(&child);
    // Nobody reads: soon there is no room on either side.
    while looks(&child) < before + 60 {
        match far.write(&[7; 16_384]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => seen(&child, 1),
            Err(error) => panic!("{error}"),
        }
    }
    let result = stop(child)["result"].take();
    drop(near);
    assert_eq!(result["stage"], "tcp-reader", "{result}");
    assert_ne!(result["confidence"], "weak", "{result}");
    let sentence = result["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("TCP: 10.77.0.2:4840 of "), "{sentence}");
    let service = &result["evidence_read"]["tcp"]["services"][0];
    assert_eq!((&service["connections_count"], &service["full_count"]), (&1.into(), &1.into()));
    assert_eq!(service["owners"][0]["pid"], std::process::id(), "{service}");
    assert_eq!(service["fullest"]["read_bytes"], 0, "{service}");
    assert!(service["fullest"]["unread_max_bytes"].as_u64() > Some(16_384), "{service}");
}

#[test]
fn tcp_that_is_well_is_judged_by_its_numbers() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    let listener = listener(&rx, 4841);
    let (mut far, mut near) = connected(&tx, &listener, 4841);
    let child = counting(&rx);
    let before = looks(&child);
    let mut asked = 0;
    while looks(&child) < before + 20 {
        let begun = Instant::now();
        ask(&mut far, &mut near, 100);
        asked += 100;
        // why: an exchange without a pause fills its CPU, about half of it with softirqs, which would be a limit.
        std::thread::sleep((4 * begun.elapsed()).max(Duration::from_millis(20)));
    }
    let result = stop(child)["result"].take();
    assert_eq!(result["stage"], "nothing", "{result}");
    let sentence = result["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("TCP: nothing limits: "), "{sentence}");
    for part in ["TCP segments/s arrived", "no listen drops", "no prunes", "% busy"] {
        assert!(sentence.contains(part), "{part}: {sentence}");
    }
    let tcp = &result["evidence_read"]["tcp"];
    // Each question is a segment; its window begins and ends inside of the exchange.
    assert!(tcp["received_segments"].as_u64() >= Some(asked - 100), "{asked}: {tcp}");
    let service = &tcp["services"][0];
    assert_eq!(service["address"], "10.77.0.2:4841", "{service}");
    assert!(service["received_bytes"].as_u64() > Some(0), "{service}");
    assert_eq!((&service["full_count"], &service["outgoing"]), (&0.into(), &false.into()));
}

#[test]
fn a_full_accept_queue_is_named_before_anything_is_dropped() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    // Two may wait.
    let _listener = rx
        .run(|_| {
            let flags = SockFlag::SOCK_CLOEXEC;
            let fd = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
            bind(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(RX_IP, 4842))).unwrap();
            listen(&fd, Backlog::new(1).unwrap()).unwrap();
            fd
        })
        .unwrap();
    let _waiting = tx
        .run(|_| {
            let one = |_| {
                let flags = SockFlag::SOCK_CLOEXEC;
                let fd = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
                connect(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(RX_IP, 4842))).unwrap();
                fd
            };
            (0..2).map(one).collect::<Vec<_>>()
        })
        .unwrap();
    let child = counting(&rx);
    seen(&child, 5);
    let result = stop(child)["result"].take();
    assert_eq!(
        (&result["stage"], &result["confidence"]),
        (&"accept-queue".into(), &"weak".into()),
        "{result}"
    );
    let listener = &result["evidence_read"]["tcp"]["listeners"][0];
    assert_eq!((&listener["waiting_max_count"], &listener["drops_count"]), (&2.into(), &0.into()));
}

#[test]
fn traffic_of_another_namespace_is_named() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    let _full = rx.run(|_| std::net::UdpSocket::bind((RX_IP, 4844)).unwrap()).unwrap();
    let child = counting(&tx);
    let before = looks(&child);
    while looks(&child) < before + 10 {
        send(&tx, 4844, 2_000);
    }
    let result = stop(child)["result"].take();
    assert_eq!(result["stage"], "unknown", "{result}");
    let sentence = result["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("no traffic: no UDP datagram and no TCP segment"), "{sentence}");
    assert!(sentence.contains(tx.name()), "{sentence}");
    assert!(
        result["evidence"].to_string().contains("went to other network namespaces"),
        "{result}"
    );
    assert!(result["remedies"].to_string().contains("--netns NAME"), "{result}");
}

#[test]
fn the_live_view_looks_into_a_namespace_and_at_one_process() {
    let Some((_bed, _tx, rx)) = Bed::wired() else { return };
    let _listener = listener(&rx, 4845);
    let look = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_rxpath"))
            .args(["watch", "--once", "--json", "--no-bpf", "--interval", "200ms"])
            .args(["--netns", rx.name()])
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        value["result"].clone()
    };
    let frame = look(&[]);
    assert!(frame["sockets"].to_string().contains("10.77.0.2:4845"), "{frame}");
    assert!(frame["verdict"]["sentence"].as_str().unwrap().contains(rx.name()), "{frame}");
    let own = std::process::id().to_string();
    assert!(look(&["--pid", &own])["sockets"].to_string().contains("10.77.0.2:4845"));
    // It has none.
    assert_eq!(look(&["--pid", "1"])["sockets"], serde_json::json!([]));
}
