//! `rxpath trace` on how long packets wait: each latency belongs to a packet that was really read then.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::fcntl::{SpliceFFlags, splice};
use nix::sys::socket::sockopt::Ipv4RecvErr;
use nix::sys::socket::{MsgFlags, recv, setsockopt};
use rxpath_host::lab::netns::Namespace;
use serde_json::Value;

use crate::alone::arrived::send_all;
use crate::alone::probes::{Probe, number, probe, rows};
use crate::bed::{Bed, RX_IP, TX_IP, send, until};

/// Far longer than anything else here takes.
const WAIT: Duration = Duration::from_millis(120);

/// Longer than any wait to be scheduled, on a busy machine too.
const LONG: Duration = Duration::from_secs(5);

pub fn stage<'v>(result: &'v Value, name: &str) -> &'v Value {
    rows(result, "stages").iter().find(|stage| stage["stage"] == name).unwrap()
}

/// Packets measured, and the longest wait in seconds.
fn waits(result: &Value) -> (f64, f64) {
    let stage = stage(result, "socket-to-read");
    (number(stage, "latencies_count"), number(stage, "max_ns") / 1e9)
}

/// A program that another test starts has the sockets of this process until its exec, also one that was closed just now.
pub fn bound(rx: &Namespace, port: u16) -> UdpSocket {
    rx.run(move |_| {
        let mut socket = None;
        until("the port is free", || {
            socket = UdpSocket::bind((RX_IP, port)).ok();
            socket.is_some()
        });
        socket.unwrap()
    })
    .unwrap()
}

/// Both ends of a connection.
pub fn stream(tx: &Namespace, rx: &Namespace, port: u16) -> (TcpStream, TcpStream) {
    let listener = rx.run(move |_| TcpListener::bind((RX_IP, port)).unwrap()).unwrap();
    let out = tx.run(move |_| TcpStream::connect((RX_IP, port)).unwrap()).unwrap();
    (out, listener.accept().unwrap().0)
}

/// A trace of a port that looks at each packet.
fn every_packet(rx: &Namespace, port: u16) -> Probe {
    let port = port.to_string();
    probe(&["trace", "-d", "10m", "--netns", rx.name(), "--port", &port, "--every-packet"])
}

fn pause() {
    let begun = Instant::now();
    until("the time has passed", || begun.elapsed() >= WAIT);
}

/// A reader that takes what came before has not read what came after it.
#[test]
fn a_datagram_behind_others_waits_for_its_own_read() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let socket = bound(&rx, 4711);
    send_all(&tx, &rx, 4711, 20);
    let trace = every_packet(&rx, 4711);
    send(&tx, 4711, 1);
    let mut buffer = [0; 64];
    for _ in 0..20 {
        socket.recv(&mut buffer).unwrap();
    }
    pause();
    socket.recv(&mut buffer).unwrap();
    let result = trace.end();
    let (count, longest) = waits(&result);
    assert_eq!(count as u64, 1, "one packet came, and was followed to its read");
    assert!(longest >= WAIT.as_secs_f64(), "{longest}");
    // It is kept as a sample, with who read it.
    let comm = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
    let reader = format!("{} ({})", comm.trim_end(), std::process::id());
    let [kept] = &rows(stage(&result, "socket-to-read"), "outliers")[..] else {
        panic!("{}", result["stages"])
    };
    assert_eq!((&kept["port"], &kept["task"]), (&4711.into(), &reader.into()), "{kept}");
    assert!(number(kept, "latency_ns") / 1e9 >= WAIT.as_secs_f64(), "{kept}");
}

#[test]
fn a_look_at_a_datagram_is_no_read() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let socket = bound(&rx, 4712);
    let trace = every_packet(&rx, 4712);
    send(&tx, 4712, 1);
    let mut buffer = [0; 64];
    socket.peek(&mut buffer).unwrap();
    pause();
    socket.recv(&mut buffer).unwrap();
    let (count, longest) = waits(&trace.end());
    assert!(count as u64 == 1 && longest >= WAIT.as_secs_f64(), "{count} {longest}");
}

/// A packet of a stream is read when its last byte is.
#[test]
fn a_part_of_a_segment_is_not_the_segment() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let (mut out, mut socket) = stream(&tx, &rx, 4713);
    let trace = every_packet(&rx, 4713);
    out.write_all(&[7; 100]).unwrap();
    let mut buffer = [0; 99];
    socket.read_exact(&mut buffer).unwrap();
    pause();
    socket.read_exact(&mut buffer[..1]).unwrap();
    let (count, longest) = waits(&trace.end());
    assert!(count as u64 == 1 && longest >= WAIT.as_secs_f64(), "{count} {longest}");
}

/// What splice takes is read where nothing shows it: the next read is not its own.
#[test]
fn what_was_spliced_does_not_wait_for_the_next_read() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let (mut out, mut socket) = stream(&tx, &rx, 4718);
    let (_pipe, into) = nix::unistd::pipe().unwrap();
    let trace = every_packet(&rx, 4718);
    out.write_all(&[7; 100]).unwrap();
    let mut left = 100;
    until("all is spliced", || {
        left -= splice(&socket, None, &into, None, left, SpliceFFlags::empty()).unwrap();
        left == 0
    });
    // The next read may have no CPU for longer than a pause.
    let begun = Instant::now();
    until("a long time has passed", || begun.elapsed() >= LONG);
    out.write_all(&[7; 10]).unwrap();
    socket.read_exact(&mut [0; 10]).unwrap();
    let (_, longest) = waits(&trace.end());
    assert!(longest < LONG.as_secs_f64(), "{longest}");
}

/// A read of the error queue is none of a datagram.
#[test]
fn a_read_of_an_error_is_no_read() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let socket = bound(&rx, 4719);
    setsockopt(&socket, Ipv4RecvErr, &true).unwrap();
    let trace = every_packet(&rx, 4719);
    send(&tx, 4719, 1);
    // Nobody listens there.
    socket.send_to(&[7; 32], (TX_IP, 4720)).unwrap();
    let mut buffer = [0; 64];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    until("the refusal has come back", || recv(socket.as_raw_fd(), &mut buffer, flags).is_ok());
    pause();
    // An error is told once more.
    let received = (0..2).find_map(|_| socket.recv(&mut buffer).ok());
    assert_eq!(received, Some(32));
    let (count, longest) = waits(&trace.end());
    assert!(count as u64 == 1 && longest >= WAIT.as_secs_f64(), "{count} {longest}");
}

/// Readers that meet at one socket end each wait once, and none with a later packet's read.
#[test]
fn readers_of_one_socket_make_no_wait_up() {
    const COUNT: u32 = 5_000;
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let socket = bound(&rx, 4721);
    // The sender may have no CPU for a while.
    socket.set_read_timeout(Some(LONG)).unwrap();
    let trace = every_packet(&rx, 4721);
    let read = || std::iter::from_fn(|| socket.recv(&mut [0; 64]).ok()).count();
    let received: usize = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
        (0..COUNT / 50).for_each(|_| send(&tx, 4721, 50));
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    let result = trace.end();
    let (count, longest) = waits(&result);
    assert!((1..=received).contains(&(count as usize)), "{count} of {received}");
    // Nobody waits longer than a reader that lost its CPU.
    assert!(longest < LONG.as_secs_f64(), "{longest}");
}

/// What a closed socket left unread is not waited for by the next socket, whatever address it has.
#[test]
fn what_is_never_read_is_no_wait() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let trace = every_packet(&rx, 4714);
    for _ in 0..30 {
        drop(bound(&rx, 4714));
        let socket = bound(&rx, 4714);
        send(&tx, 4714, 1);
        drop(socket);
    }
    let begun = Instant::now();
    until("a long time has passed", || begun.elapsed() >= LONG);
    for _ in 0..30 {
        let socket = bound(&rx, 4714);
        send(&tx, 4714, 1);
        socket.recv(&mut [0; 64]).unwrap();
    }
    let (count, longest) = waits(&trace.end());
    assert!(
        (1..=30).contains(&(count as u64)) && longest < LONG.as_secs_f64(),
        "{count} {longest}"
    );
}

/// A reader that does not read has no latency, and is told.
#[test]
fn what_is_not_read_at_the_end_is_counted() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let socket = bound(&rx, 4722);
    let trace = every_packet(&rx, 4722);
    send_all(&tx, &rx, 4722, 7);
    socket.recv(&mut [0; 64]).unwrap();
    pause();
    let result = trace.end();
    let stage = stage(&result, "socket-to-read");
    let counts = ["latencies_count", "unread_count"].map(|name| number(stage, name) as u64);
    assert_eq!(counts, [1, 6]);
    assert!(number(stage, "longest_unread_ns") / 1e9 >= WAIT.as_secs_f64(), "{stage}");
}
