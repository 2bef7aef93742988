//! Evidence made by hand, with round numbers, one scene each.

mod spread_and_probed;

use rxpath_core::PathSide;
use rxpath_record::evidence::{CpuUse, SocketUse, SoftirqPlace, ThreadUse, WindowEvidence};
use rxpath_record::ledger::{CrossCheck, Drop, Ledger, LedgerUnit, Place};
use rxpath_record::verdict::DiagnosisVerdict;

use spread_and_probed::scenes_of_spreading_and_probes;
pub use spread_and_probed::{conntrack, hashed, packed, socket_lock, ticks_err, victim};

/// A thread on one CPU.
pub fn thread(name: &str, cpu: u32, running: f64, waiting: f64, packets: u64) -> ThreadUse {
    ThreadUse {
        tid: 100 + cpu as i32,
        name: name.into(),
        asked_cpu: Some(cpu),
        seen_cpus: vec![cpu],
        running_ratio: running,
        waiting_ratio: waiting,
        packets,
        ..ThreadUse::default()
    }
}

/// A CPU by its softirq and idle share; the rest is system time.
pub fn cpu(cpu: u32, softirq: f64, idle: f64) -> CpuUse {
    CpuUse {
        cpu,
        user_ratio: 0.0,
        system_ratio: (1.0 - softirq - idle).max(0.0),
        softirq_ratio: softirq,
        idle_ratio: idle,
        foreign_ratio: Some(0.0),
        ..CpuUse::default()
    }
}

/// A socket of 212,992 bytes that holds 277 small datagrams.
pub fn socket(index: u32, delivered: u64, drops: u64) -> SocketUse {
    SocketUse {
        index,
        rcvbuf_bytes: 212_992,
        capacity_packets: Some(277),
        queue_mean_bytes: 20_000.0,
        queue_max_bytes: 212_992,
        samples: 10,
        drops_packets: drops,
        delivered_packets: delivered,
        ..SocketUse::default()
    }
}

/// A drop with its owner and one agreeing cross-check.
pub fn lost(place: Place, counter: &str, packets: u64) -> Drop {
    Drop {
        place,
        counter: counter.into(),
        packets,
        derived: matches!(place, Place::Netfilter | Place::IngressHook),
        exact: true,
        bounds: None,
        cross_checks: vec![CrossCheck { counter: "second".into(), packets, agrees: true }],
    }
}

/// A trial of one second each way: sender on CPU 0, reader on CPU 1 with half of its time left.
pub fn trial(offered: u64, drops: Vec<Drop>) -> WindowEvidence {
    let dropped: u64 = drops.iter().map(|drop| drop.packets).sum();
    let at_socket: u64 =
        drops.iter().filter(|d| d.place == Place::SocketBuffer).map(|d| d.packets).sum();
    let delivered = offered - dropped;
    WindowEvidence {
        window_s: 1.0,
        target_pps: None,
        offered_pps: offered as f64,
        delivered_pps: delivered as f64,
        sender_blocked_s: 0.0,
        sender_threads: vec![thread("load", 0, 0.99, 0.005, offered)],
        receiver_threads: vec![thread("serve", 1, 0.5, 0.01, delivered)],
        cpus: vec![cpu(0, 0.4, 0.0), cpu(1, 0.0, 0.48)],
        sockets: vec![socket(0, delivered, at_socket)],
        softirq: SoftirqPlace::SenderCall,
        backlog_limit_packets: Some(1000),
        ledger: Ledger {
            offered_packets: offered,
            sent_packets: offered,
            delivered_packets: delivered,
            drops,
            ..Ledger::default()
        },
        ..WindowEvidence::default()
    }
}

/// The same with the receive softirq on `cpu` by RPS.
pub fn rps(mut evidence: WindowEvidence, cpu: u32) -> WindowEvidence {
    evidence.softirq = SoftirqPlace::Rps { cpus: vec![cpu] };
    evidence
}

/// Drops at the socket and a reader that ran and waited this much, its CPU filled accordingly.
pub fn slow_reader(running: f64, waiting: f64) -> WindowEvidence {
    let mut e = trial(300_000, vec![lost(Place::SocketBuffer, "rx/Udp.RcvbufErrors", 100_000)]);
    e.receiver_threads = vec![thread("serve", 1, running, waiting, 200_000)];
    e.cpus[1] = cpu(1, 0.0, (1.0 - running - waiting).max(0.0));
    e
}

/// Drops at the socket although the reader has time left: it paused.
fn stalled_reader() -> WindowEvidence {
    WindowEvidence { reader_stall_s: Some(0.34), ..slow_reader(0.4, 0.01) }
}

/// Losses in front of the receiver.
fn on_the_way() -> Vec<(&'static str, WindowEvidence)> {
    vec![
        ("qdisc", trial(20_000, vec![lost(Place::Qdisc, "tx/qdisc.veth.tbf.1:drops", 11_258)])),
        (
            "sending_device",
            trial(20_000, vec![lost(Place::SendingDevice, "tx/link.eth0.tx.dropped", 5_000)]),
        ),
        (
            "network",
            trial(
                20_000,
                vec![lost(
                    Place::Network,
                    "tx/ethtool.eth0.tx_packets - rx/ethtool.eth1.rx_packets",
                    5_000,
                )],
            ),
        ),
        ("send_call", trial(20_000, vec![lost(Place::SendCall, "sendmmsg EPERM", 5_000)])),
    ]
}

/// Every scene that some rule answers.
pub fn scenes() -> Vec<(&'static str, WindowEvidence)> {
    vec![
        ("nothing", nothing()),
        ("sender", rps(trial(300_000, vec![]), 1)),
        ("sender_or_softirq", trial(270_000, vec![])),
        ("sender_or_softirq_one_cpu", one_cpu()),
        ("sender_waits", sender_spare(0.6, 0.39)),
        ("sender_pauses", sender_spare(0.3, 0.0)),
        (
            "sender_asked_too_much",
            WindowEvidence { target_pps: Some(1e6), ..rps(trial(300_000, vec![]), 1) },
        ),
        ("blocked_by_softirq", blocked(0.97)),
        ("blocked_by_something", blocked(0.3)),
        ("softirq_backlog", backlog(0.0)),
        ("backlog", backlog(0.5)),
        ("ring", ring(0.5)),
        ("softirq_ring", ring(0.0)),
        (
            "netfilter",
            trial(
                20_000,
                vec![lost(Place::Netfilter, "rx/Ip.InReceives - rx/Ip.InDelivers", 5_000)],
            ),
        ),
        (
            "ingress",
            trial(
                20_000,
                vec![lost(Place::IngressHook, "rx/link.veth.rx.packets - rx/Ip.InReceives", 5_000)],
            ),
        ),
        (
            "reverse_path",
            trial(20_000, vec![lost(Place::ReversePath, "rx/TcpExt.IPReversePathFilter", 20_000)]),
        ),
        ("ip", trial(20_000, vec![lost(Place::Ip, "rx/Ip.InHdrErrors", 400)])),
        ("no_listener", trial(20_000, vec![lost(Place::NoListener, "rx/Udp.NoPorts", 20_000)])),
        ("checksum", trial(10_000, vec![lost(Place::Checksum, "rx/Udp.InCsumErrors", 2_500)])),
        ("udp_memory", trial(10_000, vec![lost(Place::UdpMemory, "rx/Udp.MemErrors", 2_500)])),
        ("application", slow_reader(0.99, 0.005)),
        ("application_beside_softirq", beside_softirq()),
        ("socket_queue", slow_reader(0.4, 0.01)),
        ("socket_queue_stall", stalled_reader()),
        ("descheduled", descheduled()),
        ("descheduled_by_sender", reader_on_sender()),
        ("livelock", livelock()),
        ("uneven", uneven()),
        ("shared_socket", shared_socket()),
        ("several_limits", several()),
        ("no_reader_times", WindowEvidence { receiver_threads: vec![], ..slow_reader(0.99, 0.0) }),
        ("short_window", WindowEvidence { window_s: 0.05, ..slow_reader(0.99, 0.0) }),
        ("unaccounted", unaccounted()),
        ("no_traffic", WindowEvidence { sender_threads: vec![], ..trial(0, vec![]) }),
        ("empty", WindowEvidence::default()),
    ]
    .into_iter()
    .chain(on_the_way())
    .chain(scenes_of_spreading_and_probes())
    .collect()
}

/// Trials over TCP: what limits is a thread or a CPU, or segments are lost.
pub fn scenes_of_segments() -> Vec<(&'static str, WindowEvidence)> {
    let of = |server: [f64; 2], client: [f64; 2], drops: Vec<Drop>| {
        let mut e = trial(200_000, drops);
        e.ledger.unit = LedgerUnit::Segment;
        e.sockets.clear();
        e.sender_threads = vec![thread("load", 0, client[0], client[1], 0)];
        e.receiver_threads = vec![thread("serve", 1, server[0], server[1], 0)];
        let idle = |[running, waiting]: [f64; 2]| (1.0 - running - waiting).max(0.0);
        e.cpus = vec![cpu(0, 0.2, idle(client)), cpu(1, 0.0, idle(server))];
        e
    };
    let (half, full) = ([0.5, 0.01], [0.99, 0.005]);
    let refused = || vec![lost(Place::SocketBacklog, "rx/TcpExt.TCPBacklogDrop", 9_000)];
    let mut softirq = rps(of(half, half, vec![]), 2);
    softirq.cpus.push(cpu(2, 0.98, 0.0));
    vec![
        ("segments_server", of(full, half, vec![])),
        ("segments_client", of(half, full, vec![])),
        ("segments_both", of(full, full, vec![])),
        ("segments_polling", {
            let mut e = of(full, full, vec![]);
            e.polling_sides = vec![PathSide::Tx, PathSide::Rx];
            e
        }),
        ("segments_server_waits", {
            let mut e = of([0.5, 0.45], half, vec![]);
            e.cpus[1].foreign_ratio = Some(0.43);
            e
        }),
        ("segments_wake_ups", of([0.4, 0.15], half, vec![])),
        ("segments_softirq", softirq),
        ("segments_lost", of(half, half, refused())),
        ("segments_nobody", of(half, half, vec![])),
        ("segments_nothing_sent", {
            let mut e = of([0.0; 2], [0.0; 2], vec![]);
            e.ledger = Ledger { unit: LedgerUnit::Segment, ..Ledger::default() };
            (e.offered_pps, e.delivered_pps) = (0.0, 0.0);
            e
        }),
    ]
}

pub fn nothing() -> WindowEvidence {
    let mut e = trial(100_000, vec![]);
    e.target_pps = Some(100_000.0);
    e.sender_threads = vec![thread("load", 0, 0.45, 0.0, 100_000)];
    e.cpus[0] = cpu(0, 0.2, 0.55);
    e
}

fn one_cpu() -> WindowEvidence {
    let mut e = trial(150_000, vec![]);
    e.sender_threads = vec![thread("load", 0, 0.6, 0.38, 150_000)];
    e.sender_threads[0].waiting_ratio = 0.05;
    e.sender_threads[0].running_ratio = 0.96;
    e.receiver_threads = vec![thread("serve", 0, 0.04, 0.01, 150_000)];
    e.cpus = vec![cpu(0, 0.5, 0.0)];
    e
}

fn sender_spare(running: f64, waiting: f64) -> WindowEvidence {
    let mut e = trial(150_000, vec![]);
    e.sender_threads = vec![thread("load", 0, running, waiting, 150_000)];
    e.cpus[0] = CpuUse { foreign_ratio: Some(waiting), ..cpu(0, 0.1, 1.0 - running - waiting) };
    e
}

fn blocked(softirq: f64) -> WindowEvidence {
    let mut e = rps(trial(18_000, vec![]), 1);
    e.sender_blocked_s = 0.8;
    e.sender_threads = vec![thread("load", 0, 0.15, 0.0, 18_000)];
    e.cpus = vec![cpu(0, 0.0, 0.85), cpu(1, softirq, (0.97_f64 - softirq).max(0.0))];
    e
}

fn backlog(idle: f64) -> WindowEvidence {
    let mut e =
        rps(trial(100_000, vec![lost(Place::Backlog, "rx/link.veth.rx.dropped", 83_126)]), 1);
    e.receiver_threads = vec![thread("serve", 2, 0.3, 0.0, 16_874)];
    e.cpus = vec![cpu(0, 0.0, 0.0), cpu(1, 1.0 - idle, idle), cpu(2, 0.0, 0.7)];
    e
}

fn ring(idle: f64) -> WindowEvidence {
    let mut e = trial(20_000, vec![lost(Place::Ring, "tx/link.veth.tx.dropped", 13_485)]);
    e.softirq = SoftirqPlace::NapiThread { cpus: vec![2] };
    e.cpus = vec![cpu(0, 0.0, 0.0), cpu(1, 0.0, 0.48), cpu(2, 1.0 - idle, idle)];
    e
}

fn beside_softirq() -> WindowEvidence {
    let mut e = rps(slow_reader(0.99, 0.005), 1);
    e.cpus[1] = cpu(1, 0.6, 0.0);
    e
}

fn descheduled() -> WindowEvidence {
    let mut e = slow_reader(0.5, 0.49);
    e.cpus[1] = CpuUse { user_ratio: 0.5, foreign_ratio: Some(0.5), ..cpu(1, 0.0, 0.0) };
    e
}

fn reader_on_sender() -> WindowEvidence {
    let mut e = slow_reader(0.5, 0.45);
    e.receiver_threads = vec![thread("serve", 0, 0.5, 0.45, 200_000)];
    e
}

pub fn livelock() -> WindowEvidence {
    let drops = vec![lost(Place::SocketBuffer, "rx/Udp.RcvbufErrors", 1_470_000)];
    let mut e = rps(trial(1_500_000, drops), 1);
    e.receiver_threads = vec![thread("serve", 1, 0.97, 0.03, 30_000)];
    e.cpus[1] = cpu(1, 0.93, 0.0);
    e.segments_per_send = Some(20);
    e
}

fn uneven() -> WindowEvidence {
    let drops = vec![lost(Place::SocketBuffer, "rx/Udp.RcvbufErrors", 200_000)];
    let mut e = trial(1_000_000, drops);
    e.receiver_threads = vec![
        thread("serve", 1, 0.99, 0.0, 600_000),
        thread("serve", 2, 0.3, 0.0, 200_000),
        thread("serve", 3, 0.0, 0.0, 0),
    ];
    e.sockets = vec![socket(0, 600_000, 200_000), socket(1, 200_000, 0), socket(2, 0, 0)];
    e.cpus = vec![cpu(0, 0.4, 0.0), cpu(1, 0.0, 0.0), cpu(2, 0.0, 0.7), cpu(3, 0.0, 1.0)];
    e
}

fn shared_socket() -> WindowEvidence {
    let mut e = slow_reader(0.99, 0.0);
    e.receiver_threads =
        vec![thread("serve", 1, 0.99, 0.0, 120_000), thread("serve", 2, 0.98, 0.0, 80_000)];
    e.cpus = vec![cpu(0, 0.4, 0.0), cpu(1, 0.0, 0.0), cpu(2, 0.0, 0.01)];
    e
}

fn several() -> WindowEvidence {
    let drops = vec![
        lost(Place::Netfilter, "rx/Ip.InReceives - rx/Ip.InDelivers", 20_000),
        lost(Place::SocketBuffer, "rx/Udp.RcvbufErrors", 100_000),
    ];
    let mut e = trial(300_000, drops);
    e.receiver_threads = vec![thread("serve", 1, 0.99, 0.0, 180_000)];
    e.cpus[1] = cpu(1, 0.0, 0.0);
    e
}

fn unaccounted() -> WindowEvidence {
    let mut e = trial(100_000, vec![]);
    e.ledger.delivered_packets = 60_000;
    e.ledger.unaccounted_packets = Some(40_000);
    e
}

/// A verdict as a person reads it.
pub fn text(verdict: &DiagnosisVerdict) -> String {
    let mut out = format!(
        "{}\nstage {:?}  cpu {}  confidence {:?}\n",
        verdict.sentence,
        verdict.stage,
        verdict.cpu.map_or("-".into(), |cpu| cpu.to_string()),
        verdict.confidence,
    );
    for line in &verdict.evidence {
        out += &format!("  because {}  [{}]\n", line.text, line.source);
    }
    for remedy in &verdict.remedies {
        out += &format!("  change  {remedy}\n");
    }
    for next in &verdict.next {
        out += &format!("  next    {next}\n");
    }
    out += &format!("  rules   {}\n", verdict.check_rules.join(" "));
    if let Some(trial) = verdict.paired_trial {
        out += &format!("  paired  {trial:?}\n");
    }
    out
}
