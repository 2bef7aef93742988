//! TCP of a watched host: each stage speaks from its threshold on and is silent below it.

use rxpath_diagnose::diagnose;
use rxpath_record::evidence::{
    Listener, SocketOwner, TcpConnection, TcpService, TcpUse, ThreadUse, WindowEvidence,
};
use rxpath_record::ledger::{DropReason, Place};
use rxpath_record::verdict::{Confidence, DiagnosisVerdict, Stage};

use crate::made::{cpu, lost, text, thread};
use crate::watched::{any, host, packets};

/// A web server that takes 10,000 segments/s over ten connections, and nothing else moves.
pub fn web() -> WindowEvidence {
    let mut e = host(0, vec![]);
    (e.offered_pps, e.delivered_pps, e.target_pps) = (0.0, 0.0, None);
    e.receiver_threads.clear();
    e.sockets.clear();
    e.cpus = vec![cpu(0, 0.1, 0.8), cpu(1, 0.2, 0.48)];
    e.spread.as_mut().expect("packets").packets = vec![packets(1, 10_000, 0)];
    e.tcp = Some(TcpUse {
        received_segments: 9_990,
        sent_segments: 9_000,
        services: vec![service()],
        connections_count: 10,
        ..TcpUse::default()
    });
    e
}

fn service() -> TcpService {
    TcpService {
        address: "0.0.0.0:8080".into(),
        owners: vec![SocketOwner { pid: 99, name: "httpd".into() }],
        connections_count: 10,
        received_bytes: 1_000_000,
        threads: vec![worker(0.5, 0.0)],
        ..TcpService::default()
    }
}

fn worker(running: f64, waiting: f64) -> ThreadUse {
    ThreadUse { pid: Some(99), ..thread("worker", 1, running, waiting, 0) }
}

fn with(counters: &[(&str, u64)]) -> WindowEvidence {
    let mut e = web();
    let all = counters.iter().map(|(name, count)| ((*name).to_owned(), *count));
    e.tcp.as_mut().expect("TCP").counters = all.collect();
    e
}

/// One of ten connections whose queue takes this much of its window.
pub fn unread(filled: f64, full_count: u64, connections_count: u64) -> WindowEvidence {
    let mut e = web();
    let one = &mut e.tcp.as_mut().expect("TCP").services[0];
    (one.full_count, one.connections_count) = (full_count, connections_count);
    one.fullest = Some(TcpConnection {
        local: "10.0.0.1:8080".into(),
        remote: "10.0.0.9:4001".into(),
        rcvbuf_bytes: 131_072,
        unread_mean_bytes: 64_512.0,
        unread_max_bytes: 65_000,
        filled_mean_ratio: filled,
        samples: 20,
        read_bytes: 1_000,
    });
    e
}

fn stage(e: &WindowEvidence) -> Stage {
    diagnose(e).stage
}

fn said(verdict: &DiagnosisVerdict) -> String {
    format!("{}\n{}", verdict.sentence, text(verdict))
}

#[test]
fn healthy_traffic_is_judged_by_its_numbers() {
    let verdict = diagnose(&web());
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Nothing, Confidence::Strong));
    assert_eq!(
        verdict.sentence,
        "TCP: nothing limits: 9.99k TCP segments/s arrived, no listen drops, no drops at connections, no prunes, CPU 1 52 % busy"
    );
    let told = said(&verdict);
    assert!(
        told.contains("0.0.0.0:8080 of httpd (99): 1,000,000 bytes over 10 connections"),
        "{told}"
    );
    assert!(!told.contains("UDP:") && !told.contains("datagrams"), "{told}");
    // A place that was not read makes it less sure.
    let mut blind = web();
    blind.unread = vec!["what XDP program 7 on eth0 drops".into()];
    assert_eq!(diagnose(&blind).confidence, Confidence::Fair);
}

#[test]
fn udp_and_tcp_are_judged_together_and_the_worse_one_is_the_headline() {
    let both = |offered, drops| WindowEvidence { tcp: web().tcp, ..host(offered, drops) };
    let well = diagnose(&both(1_000, vec![]));
    assert_eq!(well.stage, Stage::Nothing);
    assert!(
        well.sentence.starts_with("UDP and TCP: nothing limits: 1.00k datagrams/s arrived")
            || well.sentence.starts_with("UDP and TCP: nothing limits: 1k datagrams/s arrived"),
        "{}",
        well.sentence
    );
    assert!(well.sentence.contains("9.99k TCP segments/s"), "{}", well.sentence);
    // UDP loses: TCP's numbers stand beside it.
    let udp = diagnose(&both(10_000, vec![lost(Place::NoListener, "Udp.NoPorts", 5_000)]));
    assert_eq!(udp.stage, Stage::NoListener);
    assert!(said(&udp).contains("9.99k TCP segments/s arrived, no listen drops"), "{}", said(&udp));
    // TCP is the worse: UDP's rates stand beside it.
    let mut tcp = both(1_000, vec![]);
    tcp.tcp = unread(0.99, 1, 10).tcp;
    let tcp = diagnose(&tcp);
    assert_eq!(tcp.stage, Stage::TcpReader);
    assert!(said(&tcp).contains("UDP: 1"), "{}", said(&tcp));
    // Both: the next limit.
    let mut two = both(10_000, vec![lost(Place::NoListener, "Udp.NoPorts", 5_000)]);
    two.tcp = unread(0.99, 1, 10).tcp;
    let two = diagnose(&two);
    assert_eq!(two.stage, Stage::NoListener);
    assert!(two.next.iter().any(|next| next.contains("does not read")), "{:?}", two.next);
}

#[test]
fn an_accept_queue_is_named_from_the_first_sample_in_which_it_was_full() {
    let listener = |waiting_max_count| {
        let mut e = web();
        e.tcp.as_mut().unwrap().listeners = vec![Listener {
            local: "0.0.0.0:8080".into(),
            owners: vec![SocketOwner { pid: 99, name: "httpd".into() }],
            waiting_count: 0,
            waiting_max_count,
            backlog_count: 4,
            drops_count: 0,
        }];
        diagnose(&e)
    };
    // One more than the backlog may wait; then it is full.
    assert_eq!(listener(4).stage, Stage::Nothing);
    let full = listener(5);
    assert_eq!((full.stage, full.confidence), (Stage::AcceptQueue, Confidence::Weak));
    assert!(full.sentence.contains("0.0.0.0:8080 of httpd (99) was full"), "{}", full.sentence);
    assert!(said(&full).contains("5 at most in a sample, the limit is 5"), "{}", said(&full));
}

#[test]
fn a_full_accept_queue_drops_and_a_full_syn_queue_drops_only_without_cookies() {
    let (all, overflows) = (("TcpExt.ListenDrops", 50), ("TcpExt.ListenOverflows", 50));
    let (syn, cookies) = (("TcpExt.TCPReqQFullDrop", 50), ("TcpExt.TCPReqQFullDoCookies", 50));
    for (counters, says, first) in [
        // Cookies keep no accept queue from dropping.
        (vec![all, overflows, cookies], "its accept queue was full", "accept faster"),
        (vec![all, syn], "its SYN queue was full, without SYN cookies", "SYN cookies"),
        (vec![all], "its accept queue was not full", "a longer queue"),
    ] {
        let verdict = diagnose(&with(&counters));
        assert_eq!(verdict.stage, Stage::AcceptQueue, "{counters:?}");
        assert!(verdict.sentence.contains(says), "{}", verdict.sentence);
        assert!(verdict.remedies[0].starts_with(first), "{:?}", verdict.remedies);
    }
    let answered = diagnose(&with(&[cookies]));
    assert_eq!((answered.stage, answered.confidence), (Stage::AcceptQueue, Confidence::Weak));
    assert!(answered.sentence.contains("none was dropped: a SYN queue"), "{}", answered.sentence);
}

#[test]
fn a_program_that_does_not_read_is_named_when_its_queue_stays_full() {
    let verdict = diagnose(&unread(0.97, 1, 10));
    assert_eq!((verdict.stage, verdict.confidence), (Stage::TcpReader, Confidence::Strong));
    let told = said(&verdict);
    for part in [
        "TCP: 0.0.0.0:8080 of httpd (99) does not read what arrives: 64,512 bytes",
        "97 % of its window",
        "1 of 10 connections",
        "from 10.0.0.9:4001",
        "worker (101), ran 50 % of the window",
        "it has time left",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // Full by half, and no window closed: less sure.
    assert_eq!(diagnose(&unread(0.6, 1, 10)).confidence, Confidence::Fair);
    // No connection is full; one of more than a hundred is a slow peer.
    assert_eq!(stage(&unread(0.4, 0, 10)), Stage::Nothing);
    assert_eq!(stage(&unread(0.97, 1, 100)), Stage::TcpReader);
    assert_eq!(stage(&unread(0.97, 1, 101)), Stage::Nothing);
    // One sample is an instant, two are both ends of a window.
    let sampled = |samples| {
        let mut e = unread(0.97, 1, 10);
        e.tcp.as_mut().unwrap().services[0].fullest.as_mut().unwrap().samples = samples;
        diagnose(&e)
    };
    assert_eq!(sampled(1).stage, Stage::Nothing);
    assert_eq!(sampled(2).confidence, Confidence::Fair);
    assert_eq!(sampled(3).confidence, Confidence::Strong);
}

#[test]
fn the_remedy_for_a_program_that_does_not_read_follows_its_threads() {
    let of = |running, waiting| {
        let mut e = unread(0.97, 1, 10);
        e.tcp.as_mut().unwrap().services[0].threads =
            vec![worker(0.1, 0.0), worker(running, waiting)];
        diagnose(&e)
    };
    assert!(of(0.99, 0.0).remedies[0].contains("no time left"), "{:?}", of(0.99, 0.0).remedies);
    assert!(of(0.5, 0.4).remedies[0].contains("give the program its CPU"));
    assert!(of(0.5, 0.0).remedies[0].contains("has time left"));
    assert_eq!((of(0.99, 0.0).cpu, of(0.5, 0.0).cpu), (Some(1), None));
}

#[test]
fn windows_that_close_now_and_then_are_named_from_ten_on() {
    assert_eq!(stage(&with(&[("TcpExt.TCPToZeroWindowAdv", 9)])), Stage::Nothing);
    let verdict =
        diagnose(&with(&[("TcpExt.TCPToZeroWindowAdv", 6), ("TcpExt.TCPWantZeroWindowAdv", 4)]));
    assert_eq!((verdict.stage, verdict.confidence), (Stage::TcpReader, Confidence::Weak));
    assert!(verdict.sentence.contains("closed 10 times"), "{}", verdict.sentence);
}

#[test]
fn drops_at_connections_are_the_buffers_unless_nobody_reads() {
    let mut e = with(&[("TcpExt.TCPRcvQDrop", 50)]);
    assert_eq!((stage(&e), diagnose(&e).confidence), (Stage::TcpReceive, Confidence::Fair));
    // Half of them at one service's connections.
    e.tcp.as_mut().unwrap().services[0].drops_count = 25;
    let named = diagnose(&e);
    assert_eq!(named.confidence, Confidence::Strong);
    assert!(named.sentence.contains("0.0.0.0:8080 of httpd (99)"), "{}", named.sentence);
    e.tcp.as_mut().unwrap().services[0].drops_count = 24;
    assert_eq!(diagnose(&e).confidence, Confidence::Fair);
    // The queue of a program that does not read drops too: that is not another limit.
    let mut stopped = unread(0.97, 1, 10);
    stopped.tcp.as_mut().unwrap().counters = [("TcpExt.TCPZeroWindowDrop".to_owned(), 50)].into();
    assert_eq!(stage(&stopped), Stage::TcpReader);
    let backlog = diagnose(&with(&[("TcpExt.TCPBacklogDrop", 50)]));
    assert!(backlog.sentence.contains("socket backlogs had no room"), "{}", backlog.sentence);
    assert!(backlog.remedies[0].contains("holds the socket"), "{:?}", backlog.remedies);
}

#[test]
fn segments_that_are_lost_on_the_network_are_named_with_their_direction_from_one_in_a_hundred() {
    for (name, least, direction) in [
        ("TcpExt.TCPOFOQueue", 100, "on the way to this host"),
        ("TcpExt.TCPDSACKOldSent", 100, "far ends send again what had arrived"),
        // Of 9,000 and those again.
        ("Tcp.RetransSegs", 100, "on the way from this host"),
    ] {
        let verdict = diagnose(&with(&[(name, least)]));
        assert_eq!(
            (verdict.stage, verdict.confidence),
            (Stage::TcpRetransmit, Confidence::Fair),
            "{name}"
        );
        assert!(verdict.sentence.contains(direction), "{name}: {}", verdict.sentence);
        assert_eq!(stage(&with(&[(name, least - 1)])), Stage::Nothing, "{name}");
    }
    // As many, and too few of all.
    let mut many = with(&[("TcpExt.TCPOFOQueue", 999)]);
    many.tcp.as_mut().unwrap().received_segments = 100_000;
    assert_eq!(stage(&many), Stage::Nothing);
    many.tcp.as_mut().unwrap().received_segments = 99_900;
    assert_eq!(stage(&many), Stage::TcpRetransmit);
    // Whose they are.
    many.tcp.as_mut().unwrap().services[0].out_of_order_segments = 500;
    assert!(diagnose(&many).sentence.contains("most of them at 0.0.0.0:8080 of httpd (99)"));
    // What this host lost itself makes gaps too.
    many.any_protocol = vec![any(lost(Place::Ring, "eth0 rx_missed_errors", 50), 1_000_000)];
    assert_eq!(diagnose(&many).confidence, Confidence::Weak);
    many.any_protocol = vec![any(lost(Place::Ring, "eth0 rx_missed_errors", 5_000), 100_000)];
    assert_eq!(stage(&many), Stage::Ring);
}

/// CPU 1 is this busy, with most of it in softirqs.
pub fn softirq_bound(busy: f64, segments: u64) -> WindowEvidence {
    let mut e = web();
    e.cpus[1] = cpu(1, 0.8 * busy, 1.0 - busy);
    e.softirq = rxpath_record::evidence::SoftirqPlace::Napi { cpus: vec![1] };
    e.tcp.as_mut().expect("TCP").received_segments = segments;
    e
}

#[test]
fn a_cpu_that_softirqs_of_tcp_fill_limits_without_a_loss() {
    let verdict = diagnose(&softirq_bound(0.96, 9_990));
    assert_eq!(
        (verdict.stage, verdict.confidence, verdict.cpu),
        (Stage::Softirq, Confidence::Fair, Some(1))
    );
    assert!(
        verdict.sentence.starts_with("TCP: receive softirq processing on CPU 1"),
        "{}",
        verdict.sentence
    );
    assert_eq!(stage(&softirq_bound(0.94, 9_990)), Stage::Nothing);
    // Half of the packets, and less: others'.
    assert_eq!(stage(&softirq_bound(0.96, 5_000)), Stage::Softirq);
    assert_eq!(stage(&softirq_bound(0.96, 4_999)), Stage::Nothing);
}

#[test]
fn drops_of_rings_and_backlogs_are_named_where_only_tcp_runs() {
    let mut e = softirq_bound(1.0, 9_990);
    e.any_protocol = vec![any(lost(Place::Backlog, "softnet dropped", 5_000), 15_000)];
    let verdict = diagnose(&e);
    // The other CPU has time.
    assert_eq!((verdict.stage, verdict.cpu), (Stage::OneCpu, Some(1)));
    assert!(said(&verdict).contains("9.99k TCP segments/s arrived"), "{}", said(&verdict));
}

#[test]
fn a_task_that_pays_for_tcp_is_a_victim() {
    let mut e = web();
    e.probed = crate::made::victim(0.4).probed;
    assert_eq!(stage(&e), Stage::Victim);
}

#[test]
fn no_traffic_at_all_says_what_was_seen_and_where() {
    let mut e = web();
    (e.tcp, e.namespace) = (None, "blue".into());
    let quiet = diagnose(&e);
    assert_eq!((quiet.stage, quiet.confidence), (Stage::Unknown, Confidence::Weak));
    assert_eq!(
        quiet.sentence,
        "no traffic: no UDP datagram and no TCP segment arrived in 1.00 s in this network namespace (blue)"
            .replace("1.00 s", &rxpath_core::Nanos::from_secs(1).to_string())
    );
    assert!(quiet.remedies[0].contains("while the traffic runs"), "{:?}", quiet.remedies);
    assert!(!said(&quiet).contains("other network namespaces"), "{}", said(&quiet));
    e.elsewhere_pps = Some(225_000.0);
    let told = diagnose(&e);
    assert!(
        said(&told).contains("225k packets/s went to other network namespaces"),
        "{}",
        said(&told)
    );
    assert!(told.remedies[0].contains("--netns NAME"), "{:?}", told.remedies);
    // One segment in two seconds is a stray.
    let mut stray = web();
    stray.window_s = 2.0;
    stray.tcp = Some(TcpUse { received_segments: 1, ..TcpUse::default() });
    let verdict = diagnose(&stray);
    assert_eq!(verdict.stage, Stage::Unknown);
    assert!(verdict.sentence.contains("and 1 TCP segment arrived"), "{}", verdict.sentence);
    stray.tcp.as_mut().unwrap().received_segments = 2;
    assert_eq!(stage(&stray), Stage::Nothing);
    // Beside a verdict too.
    let mut web = web();
    web.elsewhere_pps = Some(225_000.0);
    assert!(
        said(&diagnose(&web)).contains("225k packets/s went to other"),
        "{}",
        said(&diagnose(&web))
    );
}

#[test]
fn segments_without_memory_for_their_socket_are_told_by_the_kernels_reason_alone() {
    let mut e = web();
    assert_eq!(diagnose(&e).stage, Stage::Nothing);
    let reason = |place: &str| DropReason {
        side: "machine".into(),
        reason: "PROTO_MEM".into(),
        place: place.into(),
        device: String::new(),
        port: 8080,
        packets: 120,
    };
    e.ledger.reasons = vec![reason("tcp_rcv_established+0x2fe")];
    let verdict = diagnose(&e);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::TcpReceive, Confidence::Fair));
    assert!(verdict.sentence.contains("120 segments were dropped"), "{}", verdict.sentence);
    assert!(verdict.remedies.join(" ").contains("memory.max"), "{:?}", verdict.remedies);
    // UDP's own are UDP's.
    e.ledger.reasons = vec![reason("__udp_enqueue_schedule_skb+0x1")];
    assert_eq!(diagnose(&e).stage, Stage::Nothing);
}
