//! `rxpath trace` on how long packets wait: which packets are looked at, with `--every-packet` and by turns.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::alone::probes::{number, probe, rows};
use crate::bed::{Bed, send, until};
use crate::waits::{bound, stage};

/// Longer than any wait to be scheduled.
const LONG: Duration = Duration::from_secs(3);

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
