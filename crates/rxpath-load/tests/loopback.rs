//! Sender and receiver over loopback, without root: every datagram is accounted for.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use rxpath_load::engine::clock;
use rxpath_load::udp::load::Load;
use rxpath_load::udp::load::options::LoadOptions;
use rxpath_load::udp::result::{LoadResult, ServeResult};
use rxpath_load::udp::serve::Serve;
use rxpath_load::udp::serve::options::{ReaderStall, ServeOptions, Sockets};
use rxpath_load::values::defaults;
use rxpath_load::workload::{Finished, WorkloadHandle};

const V4: &str = "127.0.0.1:0";
const V6: &str = "[::1]:0";

/// Options of a receiver.
fn at(address: &str) -> ServeOptions {
    defaults(address).unwrap()
}

fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < deadline, "no {what} within a minute");
        // why: the pace of looking; the deadline above ends it.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs a sender into a receiver until the sender is through.
fn run(serve: ServeOptions, load: impl FnOnce(&mut LoadOptions)) -> (LoadResult, ServeResult) {
    let mut serve = Serve::open(serve).unwrap();
    let mut options: LoadOptions = defaults(serve.settings().addr).unwrap();
    load(&mut options);
    let mut load = Load::open(options).unwrap();
    load.start(clock::now_ns());
    until("end of the sender", || load.shared().all_done());
    let sent = named(load.finish().unwrap());
    // Loopback delivers inside of the send call: what was sent is queued, read or dropped by now.
    let delivered = named(serve.finish().unwrap());
    (sent, delivered)
}

/// The result, in which each histogram has its quantiles under the same name.
fn named<R: serde::Serialize>(finished: Finished<R>) -> R {
    let result = serde_json::to_value(&finished.result).unwrap();
    for (name, _) in &finished.histograms {
        assert!(result[format!("{name}_us")].is_object(), "{name} in {result}");
    }
    finished.result
}

fn conserved(sent: &LoadResult, got: &ServeResult) {
    assert_eq!(sent.offered_packets, sent.sent_packets + sent.send_errors_packets);
    assert_eq!(got.in_flight_bytes, 0);
    assert_eq!(sent.sent_packets, got.delivered_packets + got.socket_drops_packets);
}

#[test]
fn a_paced_count_arrives_whole() {
    let (sent, got) = run(at(V4), |load| {
        load.count = Some(2000);
        load.rate_pps = Some(20_000);
    });
    conserved(&sent, &got);
    assert_eq!((sent.target_packets, sent.offered_packets), (2000, 2000));
    let late = sent.lateness_us.unwrap();
    assert!(late.p50 <= late.p99 && late.p99 <= late.max);
    assert!(got.sequence.checked);
    assert_eq!(got.sequence.streams_count, 1);
    assert_eq!(got.delivered_bytes, got.delivered_packets * 32);
    let delay = got.one_way_delay_us.expect("one clock");
    assert_eq!(delay.samples_count, got.delivered_packets);
}

#[test]
fn both_families_and_one_call_per_datagram() {
    for family in [V4, V6] {
        let mut serve = at(family);
        serve.batch = 1;
        let (sent, got) = run(serve, |load| {
            load.count = Some(5000);
            load.batch = 1;
        });
        conserved(&sent, &got);
        assert_eq!(sent.sent_packets, 5000);
        assert_eq!(sent.threads[0].calls_count, 5000);
        assert_eq!(got.threads[0].calls_count, got.delivered_packets);
    }
}

#[test]
fn gso_is_counted_by_datagram_with_and_without_gro() {
    for gro in [false, true] {
        let mut serve = at(V4);
        serve.gro = gro;
        serve.rcvbuf = Some(4 << 20);
        let (sent, got) = run(serve, |load| {
            load.gso = Some(20);
            load.count = Some(2000);
            load.rate_pps = Some(20_000);
        });
        assert_eq!((sent.sent_packets, sent.segments_per_send), (2000, 20));
        assert_eq!((got.delivered_packets, got.socket_drops_packets), (2000, 0), "gro {gro}");
        assert_eq!(got.delivered_bytes, 64_000);
        assert_eq!((got.sequence.lost_packets, got.sequence.reordered_packets), (0, 0));
        assert_eq!(got.sockets[0].reads_count, if gro { 100 } else { 2000 });
    }
}

#[test]
fn a_small_buffer_drops_and_every_drop_is_counted() {
    let mut serve = at(V4);
    serve.rcvbuf = Some(8192);
    serve.work_ns = 20_000;
    let (sent, got) = run(serve, |load| load.count = Some(20_000));
    conserved(&sent, &got);
    assert!(got.socket_drops_packets > 0);
    // Numbers that never came, except those behind the last one delivered.
    assert!(got.sequence.lost_packets <= got.socket_drops_packets);
    assert_eq!(got.sockets[0].drops_packets, got.socket_drops_packets);
}

#[test]
fn reuseport_splits_flows_and_loses_none() {
    let mut serve = at(V4);
    serve.threads.count = 2;
    serve.sockets = Sockets::Reuseport;
    // Room for all: none of a flow that begins late is dropped.
    serve.rcvbuf = Some(4 << 20);
    let (sent, got) = run(serve, |load| {
        load.flows = Some(32);
        load.threads.count = 2;
        load.count = Some(6400);
        load.rate_pps = Some(64_000);
    });
    conserved(&sent, &got);
    assert_eq!((got.sockets.len(), got.threads.len(), sent.threads.len()), (2, 2, 2));
    assert_eq!(got.sequence.streams_count, 32);
    assert_eq!(got.sequence.reordered_packets, 0);
    let split: u64 = got.sockets.iter().map(|socket| socket.delivered_packets).sum();
    assert_eq!(split, got.delivered_packets);
}

#[test]
fn threads_on_one_socket_lose_nothing_in_the_sum() {
    let mut serve = at(V4);
    serve.threads.count = 2;
    serve.rcvbuf = Some(4 << 20);
    let (sent, got) = run(serve, |load| {
        load.count = Some(4000);
        load.rate_pps = Some(20_000);
    });
    conserved(&sent, &got);
    assert_eq!(got.sequence.lost_packets, got.socket_drops_packets);
}

#[test]
fn a_stalling_reader_with_stamps_still_counts_all() {
    let stamped = || {
        let mut serve = at(V4);
        serve.stamps = true;
        serve.stall = Some(ReaderStall { sleep_ns: 20_000_000, every_ns: 50_000_000 });
        let (sent, got) = run(serve, |load| {
            load.duration_ns = Some(200_000_000);
            load.rate_pps = Some(1000);
        });
        conserved(&sent, &got);
        assert_eq!(sent.target_packets, 200);
        let stamped = got.socket_wait_us.unwrap().samples_count;
        assert!(stamped <= got.delivered_packets, "{stamped}");
        stamped
    };
    // The kernel switches stamping on by a work item, which a busy machine runs late.
    assert!((0..50).any(|_| stamped() > 0));
}

#[test]
fn a_napping_reader_reads_in_batches_and_loses_nothing() {
    let attempt = |nap_ns| {
        let mut serve = at(V4);
        serve.rcvbuf = Some(4 << 20);
        serve.nap_ns = nap_ns;
        let (sent, got) = run(serve, |load| {
            // Past the calls that learn the truesize.
            load.count = Some(20_000);
            load.rate_pps = Some(50_000);
            load.batch = 1;
        });
        conserved(&sent, &got);
        (got.socket_drops_packets == 0).then_some(got.threads[0].calls_count)
    };
    // A reader that waits for its CPU may lose some.
    let reader = |nap_ns| (0..20).find_map(|_| attempt(nap_ns)).expect("none is lost");
    let (woken, napping) = (reader(None), reader(Some(2_000_000)));
    // 2 ms at 50,000/s are 100 datagrams, more than one batch of 64: about 400 calls instead of thousands.
    assert!(napping < 1_500, "{napping} calls with naps, {woken} without");
    // A reader that has to wait for its CPU reads in batches without naps too.
    assert!(woken < 3_000 || napping < woken / 2, "{napping} calls with naps, {woken} without");
}

#[test]
fn unconnected_flows_to_two_destinations() {
    let second = Serve::open(at(V4)).unwrap();
    let mut second = second;
    let other = second.settings().addr;
    let (sent, got) = run(at(V4), |load| {
        load.to.push(other);
        load.unconnected = true;
        load.flows = Some(4);
        load.count = Some(800);
        load.rate_pps = Some(8000);
    });
    let there = second.finish().unwrap().result;
    let delivered = got.delivered_packets + there.delivered_packets;
    assert_eq!(
        sent.sent_packets,
        delivered + got.socket_drops_packets + there.socket_drops_packets
    );
    assert_eq!((got.sequence.streams_count, there.sequence.streams_count), (4, 4));
    assert!(there.delivered_packets > 0);
}

#[test]
fn small_payloads_carry_no_numbers_and_say_so() {
    let (sent, got) = run(at(V4), |load| {
        load.size = 8;
        load.count = Some(100);
        load.rate_pps = Some(10_000);
    });
    conserved(&sent, &got);
    assert!(!got.sequence.checked);
    assert_eq!(got.sequence.unnumbered_packets, got.delivered_packets);
}

#[test]
fn nobody_listening_is_retried_and_never_counted_as_offered() {
    let port = {
        // No other test has the address, nor its ports.
        let free = std::net::UdpSocket::bind("127.0.83.1:0").unwrap();
        free.local_addr().unwrap()
    };
    let mut options: LoadOptions = defaults(port).unwrap();
    options.count = Some(200);
    options.rate_pps = Some(20_000);
    let mut load = Load::open(options).unwrap();
    load.start(clock::now_ns());
    until("end of the sender", || load.shared().all_done());
    let finished = load.finish().unwrap();
    let result = &finished.result;
    assert_eq!(
        (result.offered_packets, result.sent_packets, result.send_errors_packets),
        (200, 200, 0)
    );
    assert!(result.refused_count > 0);
    assert!(finished.warnings.iter().any(|warning| warning.code == "refused"));
}

#[test]
fn truesize_is_learned_from_the_queue() {
    let learned = || {
        let (_, got) = run(at(V4), |load| {
            load.count = Some(500);
            load.rate_pps = Some(5000);
        });
        let socket = &got.sockets[0];
        let truesize = socket.truesize_bytes?;
        assert_eq!(socket.capacity_packets, Some(socket.rcvbuf_bytes / truesize));
        Some(truesize)
    };
    // A reader that gets its CPU late finds more than a read takes, and learns nothing.
    let truesize = (0..50).find_map(|_| learned()).expect("learned");
    // A datagram takes its payload, an sk_buff and its head: more than the payload, far less than a page.
    assert!((256..4096).contains(&truesize), "{truesize}");
}

#[test]
fn what_cannot_work_is_refused_with_what_would() {
    let refused = |change: fn(&mut LoadOptions)| {
        let mut options = defaults("127.0.0.1:9").unwrap();
        change(&mut options);
        let error = Load::open(options).unwrap_err();
        assert!(error.is_usage(), "{error}");
        format!("{error} / {}", error.hint().unwrap_or_default())
    };
    assert!(refused(|o| o.size = 70_000).contains("65507"));
    assert!(refused(|o| o.gso = Some(500)).contains("UDP_MAX_SEGMENTS"));
    assert!(refused(|o| (o.gso, o.size) = (Some(100), 1472)).contains("use --gso 44"));
    assert!(refused(|o| (o.gso, o.count) = (Some(20), Some(30))).contains("use --count 40"));
    assert!(refused(|o| (o.flows, o.threads.count) = (Some(1), 2)).contains("raise --flows"));
    assert!(refused(|o| o.threads.cpus = vec![16_000]).contains("not online"));
    assert!(refused(|o| o.to = vec!["127.0.0.1:0".parse().unwrap()]).contains("port 0"));
    assert!(refused(|o| (o.source_port, o.flows) = (Some(65_530), Some(10))).contains("65535"));
    assert!(
        refused(|o| o.source = Some("9.9.9.9".parse().unwrap()))
            .contains("not an address of this host")
    );
}

#[test]
fn a_port_in_use_is_named() {
    let first = Serve::open(at(V4)).unwrap();
    let error = Serve::open(defaults(first.settings().addr).unwrap()).unwrap_err();
    assert!(error.is_usage());
    let port = first.settings().addr.port().to_string();
    assert!(error.to_string().contains(&port) && error.hint().unwrap().contains(&port));
}
