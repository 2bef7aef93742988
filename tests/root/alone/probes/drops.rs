//! `rxpath trace` counts drops exactly, by reason, place and port, and leaves out those of others.

use std::net::UdpSocket;
use std::time::Duration;

use rxpath_bpf::drops::Drops;
use rxpath_bpf::filter::Filter;
use rxpath_host::lab::netns::Namespace;
use serde_json::Value;

use super::{number, probe, rows};
use crate::alone::arrived::{send_all, until_arrived};
use crate::bed::{Bed, RX_IP, TX_IP, send, until};

#[test]
fn drops_are_counted_exactly_with_reason_place_and_port() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let full = rx.run(|_| UdpSocket::bind((RX_IP, 4501)).unwrap()).unwrap();
    // Stages that are counted by turns may have a pause while this test sends and reads.
    let trace = probe(&["trace", "-d", "10m", "--every-packet"]);
    send_all(&tx, &rx, 4500, 500);
    send_all(&tx, &rx, 4501, 5000);
    let received = rx
        .run(move |_| {
            full.set_nonblocking(true).unwrap();
            let mut buffer = [0; 64];
            let count = std::iter::from_fn(|| full.recv(&mut buffer).ok()).count();
            (count as u64, full)
        })
        .unwrap();
    let result = trace.end_as("trace");
    let dropped = |port: u64, reason: &str| {
        let drops = rows(&result, "drops").iter();
        let of: Vec<&Value> =
            drops.filter(|drop| drop["port"] == port && drop["dev"] == "veth").collect();
        assert!(of.iter().all(|drop| drop["reason"] == reason), "{of:?}");
        assert!(of.iter().all(|drop| drop["place"].as_str().unwrap().contains("udp")), "{of:?}");
        of.iter().map(|drop| drop["packets"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(dropped(4500, "NO_SOCKET"), 500);
    let lost = dropped(4501, "SOCKET_RCVBUFF");
    assert_eq!(lost + received.0, 5000);
    assert!(lost > 0, "the default buffer holds fewer than 5,000 datagrams");
    // Whose socket it is: this process', which has it open; of the other port there is none.
    let own = format!("({})", std::process::id());
    for drop in rows(&result, "drops").iter().filter(|drop| drop["dev"] == "veth") {
        let named = drop["processes"]
            .as_array()
            .is_some_and(|names| names.iter().any(|name| name.as_str().unwrap().ends_with(&own)));
        assert_eq!(named, drop["port"] == 4501, "{drop}");
    }
    let stages = rows(&result, "stages");
    assert!(stages.iter().all(|stage| number(stage, "latencies_count") > 0.0), "{stages:?}");
}

/// More ports than the kernel's table has room for: the rest is told without its ports, and nothing is lost.
#[test]
fn drops_of_more_ports_than_there_is_room_for_keep_their_reason() {
    const PORTS: u16 = 10_000;
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let full = rx.run(|_| UdpSocket::bind((RX_IP, 4501)).unwrap()).unwrap();
    let trace = probe(&["trace", "-d", "10m", "--netns", rx.name()]);
    tx.run(|_| {
        let socket = UdpSocket::bind((TX_IP, 0)).unwrap();
        for port in 0..PORTS {
            socket.send_to(&[7; 32], (RX_IP, 20_000 + port)).unwrap();
        }
    })
    .unwrap();
    until_arrived(&rx, u64::from(PORTS));
    send_all(&tx, &rx, 4501, 5000);
    let result = trace.end();
    let of = |reason: &str, folded: bool| {
        let drops = rows(&result, "drops").iter().filter(|drop| drop["reason"] == reason);
        let drops = drops.filter(|drop| (drop["folded"] == true) == folded);
        drops.fold((0, 0), |(rows, packets), drop| {
            (rows + 1, packets + drop["packets"].as_u64().unwrap())
        })
    };
    let ((ports, single), (_, folded)) = (of("NO_SOCKET", false), of("NO_SOCKET", true));
    assert_eq!(single + folded, u64::from(PORTS));
    assert!(ports == single && folded > 0, "{ports} ports, {single} packets, {folded} folded");
    let (rows, lost) = of("SOCKET_RCVBUFF", true);
    assert!(rows > 0 && lost > 0, "the reason is there although the table was full");
    assert_eq!(number(&result["probe_cost"], "lost_count") as u64, 0);
    drop(full);
}

/// Who watches for long has room for what is dropped now.
#[test]
fn drops_of_long_ago_are_forgotten_and_later_ones_counted_anew() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4810)).unwrap()).unwrap();
    let drops = Drops::start(&Filter::default()).unwrap();
    let dropped = || {
        let rows = drops.read().unwrap();
        rows.iter().filter(|row| row.port == 4810).map(|row| row.packets).sum::<u64>()
    };
    send_all(&tx, &rx, 4810, 5_000);
    assert!(dropped() > 1_000, "what found no room was counted");
    let before = dropped();
    drops.forget(Duration::from_secs(3600)).unwrap();
    assert_eq!(dropped(), before, "it is not that long ago");
    drops.forget(Duration::ZERO).unwrap();
    assert_eq!(dropped(), 0);
    send(&tx, 4810, 100);
    until("the next ones were counted", || dropped() == 100);
}

/// Packets dropped on these ports, by what traces with these words saw of the same datagrams.
fn dropped_on<const TRACES: usize>(
    words: [[&str; 2]; TRACES],
    (tx, rx): (&Namespace, &Namespace),
    ports: [u16; 2],
) -> [[u64; 2]; TRACES] {
    let start = |words: [&str; 2]| probe(&[&["trace", "-d", "10m"][..], &words].concat());
    // Each takes a second of a CPU to load its programs.
    let traces = std::thread::scope(|scope| {
        let starting = words.map(|words| scope.spawn(move || start(words)));
        starting.map(|trace| trace.join().unwrap())
    });
    for port in ports {
        send_all(tx, rx, port, 3000);
    }
    traces.map(|trace| {
        let result = trace.end();
        ports.map(|port| {
            let drops = rows(&result, "drops").iter().filter(|drop| drop["port"] == port);
            drops.map(|drop| drop["packets"].as_u64().unwrap()).sum()
        })
    })
}

#[test]
fn filters_leave_out_what_is_anothers() {
    let Some((_bed, tx, rx)) = Bed::wired_with_bpf() else { return };
    // Nobody reads it: it overflows, and is this process' own.
    let _full = rx.run(|_| UdpSocket::bind((RX_IP, 4501)).unwrap()).unwrap();
    send_all(&tx, &rx, 4501, 3000);
    let me = std::process::id().to_string();
    let words = [
        ["--pid", &me],
        ["--pid", "1"],
        ["--netns", rx.name()],
        ["--netns", tx.name()],
        ["--netns", &me],
    ];
    let [own, of_first, received, sent, here] = dropped_on(words, (&tx, &rx), [4501, 4502]);
    assert_eq!(own, [3000, 0], "nobody's socket is not this process'");
    assert_eq!(of_first[0], 0);
    assert_eq!(received[0], 3000);
    assert_eq!(sent[0], 0);
    assert_eq!(here[0], 0, "this process is elsewhere");
}
