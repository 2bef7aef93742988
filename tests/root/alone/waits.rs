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

use crate::alone::probes::{Probe, number, probe, rows};
use crate::bed::{Bed, RX_IP, TX_IP, send, until};

/// Far longer than anything else here takes.
const WAIT: Duration = Duration::from_millis(120);

/// Longer than any wait to be scheduled.
const LONG: Duration = Duration::from_secs(3);

pub fn stage<'v>(result: &'v Value, name: &str) -> &'v Value {
    rows(result, "stages").iter().find(|stage| stage["stage"] == name).unwrap()
}

/// Packets measured, and the longest wait in seconds.
fn waits(result: &Value) -> (f64, f64) {
    let stage = stage(result, "socket-to-read");
    (number(stage, "latencies_count"), number(stage, "max_ns") / 1e9)
}

pub fn bound(rx: &Namespace, port: u16) -> UdpSocket {
    rx.run(move |_| UdpSocket::bind((RX_IP, port)).unwrap()).unwrap()
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
    send(&tx, 4711, 20);
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
    send(&tx, 4722, 7);
    socket.recv(&mut [0; 64]).unwrap();
    pause();
    let result = trace.end();
    let stage = stage(&result, "socket-to-read");
    let counts = ["latencies_count", "unread_count"].map(|name| number(stage, name) as u64);
    assert_eq!(counts, [1, 6]);
    assert!(number(stage, "longest_unread_ns") / 1e9 >= WAIT.as_secs_f64(), "{stage}");
}

#[test]
fn with_every_packet_none_is_left_out() {
    const COUNT: u32 = 30_000;
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let socket = bound(&rx, 4715);
    socket.set_nonblocking(true).unwrap();
    let words = ["trace", "-d", "10m", "--netns", rx.name(), "--port", "4715"];
    // Sent and read in turns, so that no buffer overflows.
    let flood = || -> usize {
        let some = |_| {
            send(&tx, 4715, 100);
            let mut count = 0;
            until("all are read", || {
                count += std::iter::from_fn(|| socket.recv(&mut [0; 64]).ok()).count();
                count == 100
            });
            count
        };
        (0..COUNT / 100).map(some).sum()
    };
    let trace = probe(&[&words[..], &["--every-packet"]].concat());
    let received = flood();
    let every = trace.end();
    let ready = number(stage(&every, "receive-to-socket"), "latencies_count");
    assert_eq!((received, ready as u32), (COUNT as usize, COUNT));
    assert!((number(&every, "stages_looked_s") - number(&every, "duration_s")).abs() < 1e-6);
    let trace = probe(&words);
    flood();
    let turns = trace.end();
    let ready = number(stage(&turns, "receive-to-socket"), "latencies_count");
    assert!((1..=COUNT).contains(&(ready as u32)), "{ready}");
    assert!(number(&turns, "stages_looked_s") <= number(&turns, "duration_s"));
}

/// Reads are looked at in a turn, and after it until what was followed in it is read, however late.
#[test]
fn between_turns_reads_are_looked_at_only_for_what_is_followed() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let (slow, fast) = (bound(&rx, 4716), bound(&rx, 4717));
    slow.set_nonblocking(true).unwrap();
    fast.set_nonblocking(true).unwrap();
    let drain = |socket: &UdpSocket| while socket.recv(&mut [0; 64]).is_ok() {};
    let trace = probe(&["trace", "-d", "10m", "--netns", rx.name()]);
    let hooks = || {
        send(&tx, 4717, 200);
        drain(&fast);
        trace.attached()
    };
    let (mut fewest, mut most) = (hooks(), hooks());
    until("there are turns, and nothing between them", || {
        let now = hooks();
        if now.len() < fewest.len() {
            fewest = now;
        } else if now.len() > most.len() {
            most = now;
        }
        most.len() == fewest.len() + 4
    });
    // A datagram of a turn is followed.
    until("a turn lasted from one look to the next", || {
        let before = hooks();
        send(&tx, 4716, 1);
        before == most && hooks() == most
    });
    let begun = Instant::now();
    until("that was long ago", || {
        let now = hooks();
        assert!(now.len() > fewest.len(), "it is not read yet");
        begun.elapsed() >= LONG
    });
    drain(&slow);
    until("nothing is looked at", || hooks() == fewest);
    let result = trace.end();
    let id = |name: &str| {
        let found = rows(&result, "probes").iter().find(|probe| probe["program"] == name).unwrap();
        found["id"]["value"].as_u64().unwrap() as u32
    };
    for hook in ["netif_receive_skb", "napi_poll", "sk_data_ready", "sock_recv_length"] {
        let of_stages = rows(&result, "probes").iter().filter(|probe| probe["program"] == hook);
        let ids: Vec<u64> = of_stages.map(|probe| probe["id"]["value"].as_u64().unwrap()).collect();
        let comes_and_goes =
            |id: &u64| most.contains(&(*id as u32)) && !fewest.contains(&(*id as u32));
        assert_eq!(ids.iter().filter(|id| comes_and_goes(id)).count(), 1, "{hook}: {ids:?}");
    }
    assert!(!most.contains(&id("still_followed")));
    // Costs are those of the turns, by the part that was measured: less than all CPUs had, and not nothing.
    let cost = number(&result["probe_cost"], "run_time_s");
    let window = number(&result, "duration_s") * rows(&result, "cpus").len() as f64;
    assert!(cost > 0.0 && cost < window, "{cost} of {window}");
    let kept = rows(stage(&result, "socket-to-read"), "outliers").iter();
    let late = kept.filter(|kept| kept["port"] == 4716).map(|kept| number(kept, "latency_ns"));
    assert!(late.fold(0.0, f64::max) / 1e9 >= LONG.as_secs_f64(), "{}", result["stages"]);
}
