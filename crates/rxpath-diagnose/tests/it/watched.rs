//! Evidence of a watched host: nobody says what was sent, counters count more than UDP, and threads more than readers.

use rxpath_diagnose::{diagnose, judge};
use rxpath_record::evidence::{
    AnyProtocol, CpuDistribution, CpuPackets, CpuUse, Listener, Probed, ProbedCpu, ProbedTask,
    SocketOwner, SocketUse, SoftirqPlace, TcpUse, ThreadUse, WindowEvidence,
};
use rxpath_record::ledger::{Drop, Place};
use rxpath_record::verdict::{Confidence, DiagnosisVerdict, Stage};

use crate::made::{cpu, lost, socket, thread, victim};

/// A host that was watched for a second: what reached UDP is what was offered.
pub fn host(offered: u64, drops: Vec<Drop>) -> WindowEvidence {
    let mut e = crate::made::trial(offered, drops);
    e.watched = true;
    e.sender_threads.clear();
    e.target_pps = Some(e.offered_pps);
    e.softirq = SoftirqPlace::Napi { cpus: vec![0] };
    e.cpus[0] = cpu(0, 0.3, 0.7);
    e.receiver_threads[0].pid = Some(812);
    e.sockets = vec![of("0.0.0.0:53", 812, "named", socket(0, 0, 0))];
    e.spread = Some(CpuDistribution {
        packets: vec![packets(0, offered, 0)],
        ..CpuDistribution::default()
    });
    e
}

pub fn packets(cpu: u32, packets: u64, dropped_packets: u64) -> CpuPackets {
    CpuPackets { cpu, packets, dropped_packets, ..CpuPackets::default() }
}

pub fn of(local: &str, pid: i32, name: &str, mut socket: SocketUse) -> SocketUse {
    socket.local = local.into();
    socket.owners.push(SocketOwner { pid, name: name.into() });
    socket
}

pub fn reader(pid: i32, tid: i32, cpu: u32, running: f64) -> ThreadUse {
    ThreadUse { pid: Some(pid), tid, ..thread("worker", cpu, running, 0.0, 0) }
}

pub fn any(drop: Drop, of_packets: u64) -> AnyProtocol {
    AnyProtocol { drop, of_packets }
}

/// All of it as one text.
fn text(verdict: &DiagnosisVerdict) -> String {
    crate::made::text(verdict)
}

#[test]
fn one_stray_datagram_is_no_limit_and_is_named() {
    let counter = "Udp.NoPorts + Udp6.NoPorts";
    let verdict = diagnose(&host(1, vec![lost(Place::NoListener, counter, 1)]));
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Nothing, Confidence::Fair));
    assert!(verdict.sentence.starts_with("UDP: nothing limits"), "{}", verdict.sentence);
    assert!(!verdict.sentence.contains("were delivered"), "{}", verdict.sentence);
    let stray = &verdict.evidence[0];
    assert!(stray.text.contains("1 of 1 offered at a port without a listener"), "{}", stray.text);
    assert_eq!(stray.source, counter);
    // Enough of them for the window, and for a longer one too few a second.
    let mut e = host(1_000, vec![lost(Place::NoListener, counter, 100)]);
    assert_eq!(diagnose(&e).stage, Stage::NoListener);
    (e.window_s, e.offered_pps, e.delivered_pps, e.target_pps) = (10.5, 95.2, 85.7, Some(95.2));
    assert_eq!(diagnose(&e).stage, Stage::Nothing);
    assert_eq!(
        diagnose(&host(1_000, vec![lost(Place::NoListener, counter, 99)])).stage,
        Stage::Nothing
    );
    // A trial's ledger knows every datagram: there two of two are a limit.
    let trial = crate::made::trial(2, vec![lost(Place::NoListener, counter, 2)]);
    assert_eq!(diagnose(&trial).stage, Stage::NoListener);
}

#[test]
fn a_loss_counts_as_one_from_the_thresholds_of_the_rules_on() {
    let loses = |evidence: &WindowEvidence| judge(evidence).1;
    for (packets, is_loss) in [(0, false), (99, false), (100, true)] {
        let e = host(1_000, vec![lost(Place::SocketBuffer, "Udp.RcvbufErrors", packets)]);
        assert_eq!(loses(&e), is_loss, "{packets}");
    }
    // Packets of any protocol, and what TCP drops, are in no ledger.
    let mut e = host(100_000, vec![]);
    e.any_protocol = vec![any(lost(Place::Ring, "eth0 rx_missed_errors", 5_000), 105_000)];
    assert!(loses(&e));
    for (drops, is_loss) in [(9, false), (10, true)] {
        let mut e = host(30, vec![]);
        e.tcp = Some(tcp(&[("TcpExt.ListenDrops", drops), ("TcpExt.ListenOverflows", drops)]));
        assert_eq!(loses(&e), is_loss, "{drops}");
    }
}

#[test]
fn what_a_filter_drops_is_a_share_of_all_packets_and_not_of_the_datagrams() {
    let mut drop = lost(Place::Netfilter, "Ip.InReceives - Ip.InDelivers - ...", 11_250);
    drop.cross_checks.clear();
    let mut e = host(3_750, vec![]);
    e.any_protocol = vec![any(drop, 15_000)];
    let verdict = diagnose(&e);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Filter, Confidence::Fair));
    assert!(
        verdict.sentence.contains("75 % of the packets of any protocol"),
        "{}",
        verdict.sentence
    );
    assert!(!verdict.sentence.starts_with("UDP"), "{}", verdict.sentence);
    assert!(text(&verdict).contains("(derived)"), "{}", text(&verdict));
    // The kernel's own drop reasons say the same.
    e.any_protocol[0].drop = lost(Place::Netfilter, "Ip.InReceives - Ip.InDelivers - ...", 11_250);
    assert_eq!(diagnose(&e).confidence, Confidence::Strong);
    // Nothing of it is UDP's share, and all of it may be.
    e.ledger.offered_packets = 0;
    (e.offered_pps, e.delivered_pps, e.target_pps) = (0.0, 0.0, None);
    assert_eq!(diagnose(&e).stage, Stage::Filter);
    // A host with much other traffic.
    e.any_protocol[0].of_packets = 20_000_000;
    assert_ne!(diagnose(&e).stage, Stage::Filter);
}

#[test]
fn the_ring_of_a_nic_is_a_place_of_loss() {
    let mut e = host(100_000, vec![]);
    e.any_protocol = vec![any(lost(Place::Ring, "eth0 rx_missed_errors", 5_000), 105_000)];
    let verdict = diagnose(&e);
    assert_eq!((verdict.stage, verdict.cpu), (Stage::Ring, Some(0)));
    assert!(verdict.check_rules.iter().any(|id| id == "ring-rx"));
}

#[test]
fn a_napi_thread_fills_its_cpu_with_system_time_of_which_it_may_not_have_all() {
    let mut e = host(100_000, vec![]);
    e.any_protocol = vec![any(lost(Place::Ring, "missed", 40_000), 140_000)];
    e.softirq = SoftirqPlace::NapiThread { cpus: vec![1] };
    e.cpus = vec![cpu(0, 0.0, 1.0), CpuUse { system_ratio: 1.0, ..cpu(1, 0.0, 0.0) }];
    let verdict = diagnose(&e);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Softirq, Confidence::Fair));
    assert!(text(&verdict).contains("missing: the NAPI thread's part"), "{}", text(&verdict));
    // Their own time is known: theirs is nearly all, or something else's.
    let mut measured = |napi_threads_ratio: f64| {
        let row = CpuPackets { napi_threads_ratio: Some(napi_threads_ratio), ..packets(1, 100, 0) };
        e.spread.as_mut().unwrap().packets = vec![packets(0, 100, 0), row];
        diagnose(&e)
    };
    let verdict = measured(0.95);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Softirq, Confidence::Strong));
    assert!(text(&verdict).contains("measured: NAPI threads 95 %"), "{}", text(&verdict));
    assert_eq!(measured(0.1).stage, Stage::Ring);
    e.softirq = SoftirqPlace::Napi { cpus: vec![1] };
    assert_eq!(diagnose(&e).stage, Stage::Ring, "something else fills that CPU");
}

#[test]
fn a_place_that_was_not_read_makes_nothing_less_sure_and_is_named() {
    let mut e = host(100_000, vec![]);
    assert_eq!((diagnose(&e).stage, diagnose(&e).confidence), (Stage::Nothing, Confidence::Strong));
    e.unread = vec!["what XDP program 7 on eth0 drops".into()];
    let verdict = diagnose(&e);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Nothing, Confidence::Fair));
    assert!(text(&verdict).contains("missing: what XDP program 7 on eth0 drops"));
    // A loss that was seen is no less sure for it.
    let mut lossy = host(1_000, vec![lost(Place::NoListener, "Udp.NoPorts", 500)]);
    lossy.unread = e.unread;
    assert_eq!(diagnose(&lossy).confidence, Confidence::Strong);
}

pub fn tcp(counters: &[(&str, u64)]) -> TcpUse {
    let counters = counters.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    TcpUse { counters, ..TcpUse::default() }
}

#[test]
fn connections_that_nobody_accepts_are_not_nothing() {
    let mut e = host(30, vec![]);
    assert_eq!(diagnose(&e).stage, Stage::Nothing);
    e.tcp = Some(tcp(&[("TcpExt.ListenDrops", 396), ("TcpExt.ListenOverflows", 396)]));
    let verdict = diagnose(&e);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::AcceptQueue, Confidence::Strong));
    assert!(verdict.check_rules.iter().any(|id| id == "somaxconn"));
    assert!(text(&verdict).contains("ListenDrops by 396"), "{}", text(&verdict));
    e.tcp.as_mut().unwrap().listeners = vec![Listener {
        local: "0.0.0.0:8080".into(),
        owners: vec![SocketOwner { pid: 99, name: "httpd".into() }],
        waiting_count: 2,
        waiting_max_count: 2,
        backlog_count: 1,
        drops_count: 396,
    }];
    let verdict = diagnose(&e);
    assert!(verdict.sentence.contains("0.0.0.0:8080 of httpd (99)"), "{}", verdict.sentence);
    // Without any UDP too; and UDP's own larger loss comes first.
    e.ledger = host(0, vec![]).ledger;
    (e.offered_pps, e.delivered_pps, e.target_pps) = (0.0, 0.0, None);
    assert_eq!(diagnose(&e).stage, Stage::AcceptQueue);
    let mut both = host(10_000, vec![lost(Place::NoListener, "Udp.NoPorts", 5_000)]);
    both.tcp = e.tcp;
    let verdict = diagnose(&both);
    assert_eq!(verdict.stage, Stage::NoListener);
    assert!(verdict.next.iter().any(|next| next.starts_with("TCP: 396")), "{:?}", verdict.next);
}

#[test]
fn full_receive_buffers_of_tcp_are_not_nothing() {
    for (name, confidence) in [
        ("TcpExt.TCPRcvQDrop", Confidence::Fair),
        ("TcpExt.TCPBacklogDrop", Confidence::Fair),
        ("TcpExt.PruneCalled", Confidence::Weak),
    ] {
        let mut e = host(30, vec![]);
        e.tcp = Some(tcp(&[(name, 50)]));
        let verdict = diagnose(&e);
        assert_eq!((verdict.stage, verdict.confidence), (Stage::TcpReceive, confidence), "{name}");
        assert!(verdict.check_rules.iter().any(|id| id == "tcp-rmem"), "{name}");
    }
    // A segment that two counters tell of is one.
    let mut e = host(30, vec![]);
    e.tcp = Some(tcp(&[("TcpExt.TCPRcvQDrop", 50), ("TcpExt.RcvPruned", 50)]));
    assert!(diagnose(&e).sentence.contains(" 50 segments"), "{}", diagnose(&e).sentence);
    // Cookies are no drops.
    e.tcp = Some(tcp(&[("TcpExt.TCPReqQFullDoCookies", 50)]));
    let cookies = diagnose(&e);
    assert_eq!((cookies.stage, cookies.confidence), (Stage::AcceptQueue, Confidence::Weak));
    assert!(cookies.sentence.contains("none was dropped"), "{}", cookies.sentence);
    // What tells of no shortage is no limit.
    let mut e = host(30, vec![]);
    e.tcp = Some(tcp(&[("TcpExt.TCPOrigDataSent", 50)]));
    assert_eq!(diagnose(&e).stage, Stage::Nothing);
}

#[test]
fn softirqs_that_work_for_others_are_not_charged_to_udp() {
    let mut e = host(300, vec![]);
    e.spread.as_mut().unwrap().packets = vec![packets(0, 300_000, 0)];
    e.receiver_threads.clear();
    let measured = ProbedCpu { cpu: 0, net_softirq_ratio: 0.3, ..ProbedCpu::default() };
    e.probed = Some(Probed { cpus: vec![measured], ..Probed::default() });
    assert!(!text(&diagnose(&e)).contains("receive softirq on CPU 0"), "{}", text(&diagnose(&e)));
    e.spread.as_mut().unwrap().packets = vec![packets(0, 500, 0)];
    assert!(text(&diagnose(&e)).contains("receive softirq on CPU 0"), "{}", text(&diagnose(&e)));
    // Ticks are no measure of it.
    e.probed = None;
    assert!(!text(&diagnose(&e)).contains("receive softirq on CPU 0"), "{}", text(&diagnose(&e)));
}

#[test]
fn a_victim_of_a_watched_host_is_one_that_holds_no_socket_of_the_traffic() {
    let task =
        |part_of_path| ProbedTask { part_of_path, ..victim(0.4).probed.unwrap().tasks[0].clone() };
    let mut e = host(100_000, vec![]);
    e.probed = Some(Probed { tasks: vec![task(false)], ..Probed::default() });
    assert_eq!(diagnose(&e).stage, Stage::Victim);
    e.probed = Some(Probed { tasks: vec![task(true)], ..Probed::default() });
    assert_eq!(diagnose(&e).stage, Stage::Nothing);
}

/// Half of 10,000 dropped at one socket of a process whose threads ran so much.
pub fn dropping(threads: Vec<ThreadUse>, sockets: u32) -> WindowEvidence {
    let mut e = host(10_000, vec![lost(Place::SocketBuffer, "Udp.RcvbufErrors", 5_000)]);
    e.receiver_threads = threads;
    e.cpus = (0..4).map(|n| cpu(n, 0.0, 0.0)).collect();
    let one = |n| of("0.0.0.0:53", 812, "named", socket(n, 0, if n == 0 { 5_000 } else { 0 }));
    e.sockets = (0..sockets).map(one).collect();
    e
}

#[test]
fn a_thread_that_computes_does_not_make_its_neighbour_a_slow_reader() {
    // Who reads is known: the one thread.
    assert_eq!(diagnose(&dropping(vec![reader(812, 1, 1, 0.1)], 1)).stage, Stage::SocketQueue);
    let both = diagnose(&dropping(vec![reader(812, 1, 1, 0.1), reader(812, 2, 2, 1.0)], 1));
    assert_eq!((both.stage, both.confidence), (Stage::Unknown, Confidence::Weak));
    let told = text(&both);
    assert!(told.contains("worker (1) 10 %") && told.contains("worker (2) 100 %"), "{told}");
    assert!(both.sentence.starts_with("UDP, 0.0.0.0:53 of named (812): "), "{}", both.sentence);
    assert!(!told.contains("receiver's thread on CPU 2"), "{told}");
    // All full: whichever of them reads is too slow, which is not sure; that they share a socket is not said.
    let full = diagnose(&dropping(vec![reader(812, 1, 1, 1.0), reader(812, 2, 2, 1.0)], 1));
    assert_eq!((full.stage, full.confidence), (Stage::Application, Confidence::Weak));
    assert!(!full.sentence.contains("share"), "{}", full.sentence);
    // As many sockets as threads.
    let mut each = dropping(vec![reader(812, 1, 1, 1.0), reader(812, 2, 2, 1.0)], 2);
    each.sockets.iter_mut().for_each(|socket| socket.drops_packets = 2_500);
    let each = diagnose(&each);
    assert_eq!((each.stage, each.confidence), (Stage::Application, Confidence::Strong));
}

/// As above, and it was watched who reads.
#[test]
fn a_thread_that_is_known_not_to_read_is_no_reader() {
    let by = |tids: Vec<i32>| {
        let mut e = dropping(vec![reader(812, 1, 1, 0.1), reader(812, 2, 2, 1.0)], 1);
        e.sockets[0].readers = Some(tids);
        diagnose(&e)
    };
    let stalls = by(vec![1]);
    assert_eq!((stalls.stage, stalls.confidence), (Stage::SocketQueue, Confidence::Strong));
    let slow = by(vec![2]);
    assert_eq!((slow.stage, slow.confidence), (Stage::Application, Confidence::Strong));
    assert_eq!(slow.cpu, Some(2));
    // Nobody read: whatever the program did, it was not that.
    let none = by(vec![]);
    assert!(text(&none).contains("no thread read from 0.0.0.0:53"), "{}", text(&none));
    assert_ne!(none.stage, Stage::Unknown);
    // One that reads and was not measured may be the full one.
    let more = by(vec![1, 77]);
    assert_eq!(more.confidence, Confidence::Weak);
    assert!(text(&more).contains("CPU time of 1 of the 2 threads that read"), "{}", text(&more));
}

#[test]
fn a_group_of_a_watched_host_is_uneven_when_arrivals_are_counted() {
    let mut e = dropping(vec![reader(812, 1, 1, 1.0), reader(812, 2, 2, 0.1)], 2);
    for (socket, (tid, read)) in e.sockets.iter_mut().zip([(1, 4_500), (2, 500)]) {
        (socket.readers, socket.delivered_packets) = (Some(vec![tid]), read);
    }
    let verdict = diagnose(&e);
    assert_eq!((verdict.stage, verdict.cpu), (Stage::ReuseportImbalance, Some(1)));
    let told = text(&verdict);
    assert!(told.contains("sock:sock_recv_length") && !told.contains("not counted"), "{told}");
}

#[test]
fn a_group_whose_other_readers_wait_for_their_first_datagram_is_uneven() {
    // As the kernel gives it: who never read is no reader, and the thread that waits is found by its system call.
    let mut e = dropping(vec![reader(812, 1, 1, 1.0), reader(812, 2, 2, 0.0)], 2);
    (e.sockets[0].readers, e.sockets[0].delivered_packets) = (Some(vec![1]), 5_000);
    (e.sockets[1].readers, e.sockets[1].waiters) = (Some(vec![]), Some(vec![2]));
    let verdict = diagnose(&e);
    assert_eq!(
        (verdict.stage, verdict.confidence),
        (Stage::ReuseportImbalance, Confidence::Strong)
    );
    assert!(
        text(&verdict).contains("1: 0 read, 0 dropped, thread 2 waits for it"),
        "{}",
        text(&verdict)
    );
    // Each thread was asked, and nobody waits for it: it may be the same thread's.
    e.sockets[1].waiters = Some(vec![]);
    e.receiver_threads.truncate(1);
    let verdict = diagnose(&e);
    assert_eq!((verdict.stage, verdict.confidence), (Stage::Application, Confidence::Fair));
    assert!(
        text(&verdict).contains("who would read 1 of the 2 sockets, which got nothing"),
        "{}",
        text(&verdict)
    );
    // Without the probe it is not known that it got nothing.
    e.sockets.iter_mut().for_each(|socket| (socket.readers, socket.delivered_packets) = (None, 0));
    let verdict = diagnose(&e);
    assert_ne!(verdict.confidence, Confidence::Strong);
    assert!(
        text(&verdict).contains("whether the 1 of 2 sockets that dropped nothing"),
        "{}",
        text(&verdict)
    );
}

#[test]
fn a_softirq_on_the_cpu_of_another_thread_is_no_livelock() {
    let mut e = dropping(vec![reader(812, 1, 1, 1.0), reader(812, 2, 2, 0.9)], 2);
    e.softirq = SoftirqPlace::Napi { cpus: vec![2] };
    e.spread = None;
    e.cpus[2] = cpu(2, 0.9, 0.0);
    assert_eq!(diagnose(&e).stage, Stage::Application);
    e.softirq = SoftirqPlace::Napi { cpus: vec![1] };
    e.cpus[1] = cpu(1, 0.9, 0.0);
    assert_eq!(diagnose(&e).stage, Stage::Livelock);
}

#[test]
fn two_services_are_not_an_uneven_group_and_the_worse_one_is_named() {
    let mut e = dropping(vec![reader(812, 1, 1, 1.0), reader(900, 2, 2, 0.1)], 1);
    e.sockets.push(of("0.0.0.0:514", 900, "syslogd", socket(1, 0, 100)));
    let verdict = diagnose(&e);
    assert_eq!((verdict.stage, verdict.cpu), (Stage::Application, Some(1)));
    assert!(
        verdict.sentence.starts_with("UDP, 0.0.0.0:53 of named (812): "),
        "{}",
        verdict.sentence
    );
    let told = text(&verdict);
    assert!(told.contains("0.0.0.0:514 of syslogd (900): 100 (2.0 % of the drops)"), "{told}");
    // The other one is the worse.
    e.sockets[1].drops_packets = 50_000;
    let verdict = diagnose(&e);
    assert_eq!((verdict.stage, verdict.cpu), (Stage::SocketQueue, Some(2)));
    assert!(verdict.sentence.contains("0.0.0.0:514 of syslogd (900)"), "{}", verdict.sentence);
}

/// With one port looked at, what other ports lose is no fault of the service there.
#[test]
fn a_service_with_few_of_the_losses_is_not_blamed_for_them() {
    let mut e = dropping(vec![reader(812, 1, 1, 1.0)], 1);
    assert_eq!(diagnose(&e).confidence, Confidence::Strong);
    e.sockets[0].drops_packets = 2_499;
    let verdict = diagnose(&e);
    assert_eq!(verdict.confidence, Confidence::Weak);
    assert!(!verdict.sentence.contains("named"), "{}", verdict.sentence);
    let told = text(&verdict);
    assert!(told.contains("dropped 2,499 of the 5,000 datagrams lost at socket buffers"), "{told}");
    e.sockets[0].drops_packets = 2_500;
    assert!(diagnose(&e).sentence.starts_with("UDP, 0.0.0.0:53 of named (812): "));
}

#[test]
fn drops_alone_do_not_make_a_group_uneven() {
    let e = dropping(vec![reader(812, 1, 1, 1.0), reader(812, 2, 2, 0.1)], 2);
    let verdict = diagnose(&e);
    assert_ne!(verdict.stage, Stage::ReuseportImbalance);
    assert!(text(&verdict).contains("socket 0 of the 2 on 0.0.0.0:53 has 100 % of its drops"));
    let mut counted = e;
    counted.watched = false;
    (counted.sockets[0].delivered_packets, counted.sockets[1].delivered_packets) = (4_900, 100);
    counted.receiver_threads.iter_mut().for_each(|thread| thread.packets = 2_500);
    assert_eq!(diagnose(&counted).stage, Stage::ReuseportImbalance);
}

/// Two queues: CPU 0 takes few packets beside a compiler, CPU 1 drops.
fn backlogged(dropped: [u64; 2]) -> WindowEvidence {
    let mut e = host(100_000, vec![]);
    e.any_protocol = vec![any(lost(Place::Backlog, "softnet dropped", 5_000), 105_000)];
    e.softirq = SoftirqPlace::Napi { cpus: vec![0, 1] };
    e.cpus = vec![cpu(0, 0.05, 0.0), cpu(1, 0.5, 0.4)];
    let spread = vec![packets(0, 10_000, dropped[0]), packets(1, 90_000, dropped[1])];
    e.spread = Some(CpuDistribution { packets: spread, ..CpuDistribution::default() });
    e.receiver_threads.clear();
    e
}

#[test]
fn the_cpu_whose_backlog_dropped_is_judged_and_its_own_packets_fill_it() {
    let verdict = diagnose(&backlogged([0, 5_000]));
    assert_eq!((verdict.stage, verdict.cpu), (Stage::Backlog, Some(1)));
    let told = text(&verdict);
    // 1,000 packets at 95,000 a second.
    assert!(told.contains("at the 95,000 packets/s that reach CPU 1"), "{told}");
    assert!(told.contains("holds 1,000 packets") && told.contains("10.5ms"), "{told}");
    let verdict = diagnose(&backlogged([5_000, 0]));
    assert_eq!((verdict.stage, verdict.cpu), (Stage::Backlog, Some(0)));
    // Not known which: the one that softirqs take most of, not the one that a compiler keeps busiest.
    assert_eq!(diagnose(&backlogged([0, 0])).cpu, Some(1));
}
