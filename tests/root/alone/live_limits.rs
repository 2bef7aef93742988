//! `rxpath diagnose` on a host: what drops beside UDP, who may be a reader, and what is too little to be a limit.

use std::io::ErrorKind;
use std::net::{SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen, setsockopt,
    socket, sockopt,
};
use nix::unistd::Pid;
use rxpath_host::lab::netns::Namespace;
use serde_json::Value;

use crate::alone::arrived::send_all;
use crate::alone::diagnose::{end, in_window, looks, watching};
use crate::bed::{Bed, RX_IP, TX_IP, send, until};

/// Watches without BPF until it is told to stop, and is in its window.
fn counting(rx: &Namespace) -> Child {
    let mut child = watching(rx, &["-d", "600s", "--no-bpf"]);
    in_window(&mut child);
    child
}

/// Waits for so many more samples.
pub fn seen(child: &Child, more: u64) {
    let before = looks(child);
    until("it looks", || looks(child) >= before + more);
}

/// Ends the watch: the result.
pub fn stop(child: Child) -> Value {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let (code, mut value) = end(child);
    assert_eq!(code, Some(130), "{value}");
    value["result"].take()
}

fn bound(rx: &Namespace, port: u16) -> UdpSocket {
    let socket = rx.run(move |_| UdpSocket::bind((RX_IP, port)).unwrap()).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// Takes all that waits.
fn drain(socket: &UdpSocket) -> u64 {
    let mut count = 0;
    loop {
        match socket.recv(&mut [0; 64]) {
            Ok(_) => count += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return count,
            Err(error) => panic!("{error}"),
        }
    }
}

fn texts(result: &Value) -> String {
    result["evidence"].to_string()
}

#[test]
fn what_a_firewall_drops_is_seen_and_named() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let reader = bound(&rx, 4820);
    rx.apply_nft(
        "table ip t {\n chain in {\n type filter hook input priority 0;\n \
         udp dport 4820 numgen inc mod 4 < 3 drop\n }\n}\n",
    )
    .unwrap();
    let mut child = watching(&rx, &["-d", "600s"]);
    in_window(&mut child);
    let (mut sent, mut read) = (0, 0u64);
    while sent < 8_000 {
        send(&tx, 4820, 200);
        sent += 200;
        // What the softirq thread still has comes too.
        until("all that was let through is read", || {
            read += drain(&reader);
            read == sent / 4
        });
    }
    let result = stop(child);
    assert_eq!(
        (&result["stage"], &result["confidence"]),
        (&"filter".into(), &"strong".into()),
        "{result}"
    );
    let evidence = &result["evidence_read"];
    let any = evidence["any_protocol"].as_array().unwrap();
    let drop = any.iter().find(|loss| loss["place"] == "netfilter").unwrap();
    assert_eq!(drop["packets"].as_u64(), Some(6_000), "{any:?}");
    assert_eq!(drop["derived"], true, "{drop}");
    assert_eq!(drop["cross_checks"][0]["agrees"], true, "{drop}");
    // Those that it let through are UDP's, all of them.
    assert_eq!(evidence["ledger"]["offered_packets"], 2_000, "{result}");
}

#[test]
fn one_stray_datagram_on_a_quiet_host_is_told_and_limits_nothing() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    let child = counting(&rx);
    send(&tx, 4821, 1);
    let closed = |_: &mut rxpath_host::lab::netns::Inside| {
        let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        text.lines().filter(|line| line.starts_with("Udp:")).nth(1).map(str::to_owned).unwrap()
    };
    until("it is counted", || rx.run(closed).unwrap().split(' ').nth(2) == Some("1"));
    let result = stop(child);
    assert_eq!(result["stage"], "nothing", "{result}");
    assert_ne!(result["confidence"], "strong", "{result}");
    let told = texts(&result);
    assert!(told.contains("1 of 1 offered at a port without a listener"), "{told}");
}

/// A process of two threads, one that computes and one that reads and stalls; watched by the child that `start` gives. The
/// result, and the reader's number.
fn beside_a_thread_that_computes(
    port: u16,
    start: fn(&Namespace) -> Child,
) -> Option<(Value, i32)> {
    let bed = Bed::with_bpf()?;
    let (tx, rx) = bed.pair(1);
    let socket = bound(&rx, port);
    let (done, tid) = (AtomicBool::new(false), AtomicI32::new(0));
    // Rounds in a row in which it found nothing.
    let idle = AtomicI32::new(0);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        scope.spawn(|| {
            tid.store(rxpath_host::read::thread::current_tid(), Ordering::Relaxed);
            while !done.load(Ordering::Relaxed) {
                let (begun, mut read) = (Instant::now(), 0);
                while begun.elapsed() < Duration::from_millis(5) {
                    read += drain(&socket);
                }
                let rounds = if read == 0 { idle.load(Ordering::Relaxed) + 1 } else { 0 };
                idle.store(rounds, Ordering::Relaxed);
                // why: the stall that this test is about.
                std::thread::sleep(Duration::from_millis(30));
            }
        });
        let child = start(&rx);
        let before = looks(&child);
        while looks(&child) < before + 50 {
            send(&tx, port, 2_000);
        }
        // Then the counters of the socket and of UDP are those of the same reads.
        let before = idle.load(Ordering::Relaxed);
        until("all is read", || idle.load(Ordering::Relaxed) >= before + 2);
        let result = stop(child);
        done.store(true, Ordering::Relaxed);
        result
    });
    Some((result, tid.into_inner()))
}

#[test]
fn a_reader_that_stalls_beside_a_thread_that_computes_is_not_called_slow() {
    let Some((result, _)) = beside_a_thread_that_computes(4822, counting) else { return };
    assert_eq!(result["confidence"], "weak", "{result}");
    let told = texts(&result);
    assert!(told.contains("which threads read"), "{told}");
    assert!(
        result["sentence"].as_str().unwrap().starts_with("UDP, 10.77.0.2:4822 of "),
        "{result}"
    );
}

#[test]
fn which_thread_reads_is_watched() {
    let start = |rx: &Namespace| {
        let mut child = watching(rx, &["-d", "600s"]);
        in_window(&mut child);
        child
    };
    let Some((result, tid)) = beside_a_thread_that_computes(4829, start) else { return };
    // On a machine with other work the reader is kept from its CPU, and that limits it then; or its queue never empties.
    let stage = result["stage"].as_str().unwrap();
    let sleeps = result["sentence"].as_str().unwrap().contains("it waits for something else");
    assert!(sleeps || ["socket-queue", "application-descheduled"].contains(&stage), "{result}");
    assert_ne!(result["confidence"], "weak", "{result}");
    assert!(!texts(&result).contains("which threads read"), "{result}");
    let evidence = &result["evidence_read"];
    let socket = &evidence["sockets"][0];
    assert_eq!(socket["readers"], serde_json::json!([tid]), "{socket}");
    // All that UDP delivered in this namespace came from this socket; a read may fall between two readings at the start.
    let read = socket["delivered_packets"].as_u64().unwrap();
    let delivered = evidence["ledger"]["delivered_packets"].as_u64().unwrap();
    assert!(read > 0 && read.abs_diff(delivered) <= delivered / 100 + 1_000, "{read} {delivered}");
}

#[test]
fn of_two_services_the_one_that_drops_is_named_and_no_group_is_made_of_them() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    let (_full, read) = (bound(&rx, 4823), bound(&rx, 4824));
    let child = counting(&rx);
    let before = looks(&child);
    while looks(&child) < before + 20 {
        send(&tx, 4823, 1_000);
        send(&tx, 4824, 100);
        let mut count = 0;
        until("the other one's are read", || {
            count += drain(&read);
            count == 100
        });
    }
    let result = stop(child);
    let sentence = result["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("UDP, 10.77.0.2:4823 of "), "{result}");
    assert_ne!(result["stage"], "reuseport-imbalance", "{result}");
    let told = texts(&result);
    assert!(told.contains("dropped at 10.77.0.2:4823 of") && !told.contains("4824"), "{told}");
    for socket in result["evidence_read"]["sockets"].as_array().unwrap() {
        assert_eq!(socket["owners"][0]["pid"], std::process::id(), "{socket}");
    }
}

#[test]
fn what_other_ports_lose_is_not_put_on_the_port_that_is_looked_at() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    let (_asked, _other) = (bound(&rx, 4827), bound(&rx, 4828));
    // Its queue is full, so that a few more are lost.
    send_all(&tx, &rx, 4827, 2_000);
    let mut child = watching(&rx, &["-d", "600s", "--no-bpf", "--port", "4827"]);
    in_window(&mut child);
    send_all(&tx, &rx, 4827, 500);
    send(&tx, 4828, 20_000);
    send(&tx, 4829, 300);
    seen(&child, 2);
    let result = stop(child);
    let sentence = result["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("UDP, 10.77.0.2:4827 of "), "{result}");
    let drops = result["evidence_read"]["ledger"]["drops"].as_array().unwrap();
    let told: Vec<_> =
        drops.iter().map(|it| (it["place"].as_str(), it["packets"].as_u64())).collect();
    assert_eq!(told, [(Some("socket-buffer"), Some(500))], "{result}");
    let unread = result["evidence_read"]["unread"].to_string();
    assert!(unread.contains("shares are of all that UDP received"), "{result}");
}

/// Beside a service that loses nearly all, the one that loses nothing is well.
#[test]
fn a_port_that_loses_nothing_is_well_whatever_its_neighbours_lose() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let (read, _full) = (bound(&rx, 4831), bound(&rx, 4832));
    let mut child = watching(&rx, &["-d", "600s", "--port", "4831"]);
    in_window(&mut child);
    let before = looks(&child);
    let mut sent = 0;
    while looks(&child) < before + 20 {
        send(&tx, 4831, 100);
        sent += drain(&read);
        send(&tx, 4832, 1_000);
        send(&tx, 4833, 100);
    }
    let result = stop(child);
    // Each of these says that nothing is lost. Where a hypervisor takes the CPU away, ticks and measured time differ.
    let stage = result["stage"].as_str().unwrap();
    assert!(["nothing", "victim", "tick-artefact"].contains(&stage), "{result}");
    let ledger = &result["evidence_read"]["ledger"];
    let delivered = ledger["delivered_packets"].as_u64().unwrap();
    assert!(delivered > 0 && delivered <= sent, "{delivered} of {sent}");
    assert_eq!(ledger["offered_packets"], delivered, "{ledger}");
}

/// A socket of a `SO_REUSEPORT` group.
fn grouped(rx: &Namespace, port: u16) -> OwnedFd {
    rx.run(move |_| {
        let flags = SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Inet, SockType::Datagram, flags, None).unwrap();
        setsockopt(&fd, sockopt::ReusePort, &true).unwrap();
        bind(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(RX_IP, port))).unwrap();
        fd
    })
    .unwrap()
}

#[test]
fn drops_of_one_socket_of_a_group_are_not_called_an_uneven_group() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    let _group = [grouped(&rx, 4825), grouped(&rx, 4825)];
    let child = counting(&rx);
    // One flow: one of the two gets it all.
    send(&tx, 4825, 20_000);
    seen(&child, 2);
    let result = stop(child);
    assert_ne!(result["stage"], "reuseport-imbalance", "{result}");
    let told = texts(&result);
    assert!(told.contains("of the 2 on 10.77.0.2:4825 has 100 % of its drops"), "{told}");
}

#[test]
fn a_group_whose_reads_are_counted_is_called_uneven_when_it_is() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let group = [grouped(&rx, 4830), grouped(&rx, 4830)].map(UdpSocket::from);
    let done = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        for socket in &group {
            // Longer than any window: the one that gets nothing is found in its call.
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // 200 us of work for each datagram.
                    let begun = socket.recv(&mut [0; 64]).is_ok().then(Instant::now);
                    while begun.is_some_and(|it| it.elapsed() < Duration::from_micros(200)) {
                        std::hint::spin_loop();
                    }
                }
            });
        }
        // One flow: one of the two gets it all, and is full before the window begins.
        let sender = tx.run(|_| UdpSocket::bind((TX_IP, 0)).unwrap()).unwrap();
        let send = |count| {
            for _ in 0..count {
                sender.send_to(&[0; 32], (RX_IP, 4830)).unwrap();
            }
        };
        send(2_000);
        let mut child = watching(&rx, &["-d", "600s"]);
        in_window(&mut child);
        let before = looks(&child);
        while looks(&child) < before + 50 {
            send(300);
            // why: the sender leaves its CPU to the readers.
            std::thread::sleep(Duration::from_millis(10));
        }
        let result = stop(child);
        done.store(true, Ordering::Relaxed);
        result
    });
    let sockets = result["evidence_read"]["sockets"].as_array().unwrap();
    let mut read: Vec<u64> =
        sockets.iter().map(|socket| socket["delivered_packets"].as_u64().unwrap()).collect();
    read.sort_unstable();
    assert!(read.len() == 2 && read[0] == 0 && read[1] > 0, "{sockets:?}");
    // The other one's thread waits, and its socket says so.
    let idle = sockets.iter().find(|socket| socket["delivered_packets"] == 0).unwrap();
    assert!(idle["waiters"][0].is_i64(), "{idle}");
    // On a machine with other work the reader may be kept from its CPU, and that limits it then.
    let threads = result["evidence_read"]["receiver_threads"].as_array().unwrap();
    let by = |it: &&Value| sockets.iter().any(|s| s["readers"][0] == it["tid"]);
    let reader = threads.iter().find(by).unwrap();
    let [ran, waited] =
        ["running_ratio", "waiting_ratio"].map(|part| reader[part].as_f64().unwrap());
    let held_up = ran + waited < 0.96 || waited > 0.09;
    assert!(result["stage"] == "reuseport-imbalance" || held_up, "{result}");
}

#[test]
fn a_host_of_tcp_whose_accept_queue_is_full_is_not_well() {
    let Some((_bed, tx, rx)) = Bed::wired() else { return };
    let listener = |_: &mut rxpath_host::lab::netns::Inside| {
        let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).unwrap();
        bind(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(RX_IP, 4826))).unwrap();
        listen(&fd, Backlog::new(1).unwrap()).unwrap();
        fd
    };
    let _listener = rx.run(listener).unwrap();
    let child = counting(&rx);
    let connecting = tx.run(|_| {
        let one = |_| {
            let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_NONBLOCK, None)
                .unwrap();
            // It goes on by itself.
            let _ = connect(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(RX_IP, 4826)));
            TcpStream::from(fd)
        };
        (0..200).map(one).collect::<Vec<TcpStream>>()
    });
    seen(&child, 20);
    let result = stop(child);
    drop(connecting);
    assert_eq!(result["stage"], "accept-queue", "{result}");
    assert!(
        result["sentence"].as_str().unwrap().starts_with("TCP: 10.77.0.2:4826 of "),
        "{result}"
    );
    let tcp = &result["evidence_read"]["tcp"];
    assert!(tcp["counters"]["TcpExt.ListenDrops"].as_u64().unwrap() >= 100, "{tcp}");
    assert!(tcp["listeners"][0]["drops_count"].as_u64().unwrap() >= 100, "{tcp}");
    assert!(result["check_rules"].to_string().contains("somaxconn"), "{result}");
}
