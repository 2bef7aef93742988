//! Scenes that need more than counters and CPU times: how packets spread, and what probes saw.

use rxpath_record::evidence::{
    ConntrackUse, ContendedLock, CpuDistribution, CpuPackets, LockWaiter, Probed, ProbedCpu,
    ProbedTask, WindowEvidence,
};
use rxpath_record::ledger::Place;

use super::{cpu, lost, nothing, rps, shared_socket, slow_reader, thread, trial};

pub(super) fn scenes_of_spreading_and_probes() -> Vec<(&'static str, WindowEvidence)> {
    vec![
        ("xdp_socket_full_reader", at_xdp_socket(0.99)),
        ("xdp_socket_bursts", at_xdp_socket(0.4)),
        ("socket_lock", socket_lock(0.3)),
        ("one_cpu", packed(Some(16), 1, vec![1])),
        ("rps_missing", packed(Some(16), 1, vec![])),
        ("rps_pointless", packed(Some(1), 1, vec![0, 1])),
        ("rps_pointless_by_hash", hashed(0.98, vec![0, 1])),
        ("conntrack", conntrack(5_000)),
        ("conntrack_and_filter", conntrack(4_000)),
        ("victim", victim(0.4)),
        ("tick_artefact", ticks_err(0.0, 0.4)),
        ("tick_artefact_too_much", ticks_err(0.9, 0.4)),
    ]
}

/// Drops at the AF_XDP socket of a reader that ran this much.
fn at_xdp_socket(running: f64) -> WindowEvidence {
    let mut e = slow_reader(running, 0.005);
    e.ledger.drops =
        vec![lost(Place::XdpSocket, "XDP_STATISTICS rx_dropped + rx_ring_full", 100_000)];
    e.sockets.clear();
    e
}

/// Two full readers of one socket that wait for its lock this much.
pub fn socket_lock(waited: f64) -> WindowEvidence {
    let lock = ContendedLock {
        lock: "reader_queue.lock".into(),
        port: 4321,
        waits_count: 60_000,
        waited_ratio: 2.0 * waited,
        readers: vec![
            LockWaiter { tid: 101, waited_ratio: waited },
            LockWaiter { tid: 102, waited_ratio: waited },
        ],
    };
    let probed = Probed { locks: Some(vec![lock]), ..Probed::default() };
    WindowEvidence { probed: Some(probed), ..shared_socket() }
}

/// A full CPU 1 with all packets while CPU 0 has time.
pub fn packed(flows: Option<u64>, queues: u32, rps_cpus: Vec<u32>) -> WindowEvidence {
    let mut e =
        rps(trial(40_000, vec![lost(Place::Backlog, "rx/link.veth.rx.dropped", 15_000)]), 1);
    e.target_pps = Some(40_000.0);
    e.sender_threads = vec![thread("load", 0, 0.2, 0.0, 40_000)];
    e.receiver_threads = vec![thread("serve", 0, 0.1, 0.0, 25_000)];
    e.cpus = vec![cpu(0, 0.0, 0.7), cpu(1, 1.0, 0.0)];
    let packets = [(0, 100), (1, 25_000)].map(|(cpu, packets)| CpuPackets {
        cpu,
        packets,
        ..CpuPackets::default()
    });
    let (queues, rps_cpus) = (Some(queues), Some(rps_cpus));
    e.spread = Some(CpuDistribution { queues, rps_cpus, flows, packets: packets.to_vec() });
    e
}

/// The same, of flows that nobody counted: the largest has this share of the packets on CPU 1.
pub fn hashed(one_flow_ratio: f64, rps_cpus: Vec<u32>) -> WindowEvidence {
    let mut e = packed(None, 1, rps_cpus);
    for row in e.spread.iter_mut().flat_map(|spread| &mut spread.packets) {
        row.one_flow_ratio = Some(one_flow_ratio).filter(|_| row.cpu == 1);
    }
    e
}

/// 5,000 lost in netfilter, of them this many in a full connection table.
pub fn conntrack(drops_packets: u64) -> WindowEvidence {
    let counter = "rx/Ip.InReceives - rx/Ip.InDelivers";
    let mut e = trial(20_000, vec![lost(Place::Netfilter, counter, 5_000)]);
    e.conntrack = Some(ConntrackUse {
        drops_packets,
        early_drops_count: 3,
        entries_count: 262_144,
        entries_max: Some(262_144),
    });
    e
}

fn probed(net_softirq_ratio: f64, tasks: Vec<ProbedTask>) -> Probed {
    let cpu = |cpu, net_softirq_ratio| ProbedCpu {
        cpu,
        net_softirq_ratio,
        interrupts_per_s: 10_000.0,
        ..ProbedCpu::default()
    };
    Probed {
        cpus: vec![cpu(0, 0.2), cpu(1, net_softirq_ratio)],
        tasks,
        locks: Some(vec![]),
        gaps: vec![],
    }
}

/// Nothing is lost, and softirqs take this much of a task on CPU 1.
pub fn victim(taken: f64) -> WindowEvidence {
    let task = ProbedTask {
        tid: 777,
        name: "compile".into(),
        cpu: 1,
        part_of_path: false,
        on_cpu_ratio: 0.99,
        taken_ratio: taken,
        waiting_ratio: 0.01,
    };
    let mut e = rps(nothing(), 1);
    e.cpus[1] = cpu(1, taken, 0.0);
    e.probed = Some(probed(taken, vec![task]));
    e
}

/// Nothing is lost, and CPU 1 is in softirqs this much by ticks and that much by measurement.
pub fn ticks_err(ticks: f64, measured: f64) -> WindowEvidence {
    let mut e = rps(nothing(), 1);
    e.cpus[1] = cpu(1, ticks, 1.0 - ticks);
    e.probed = Some(probed(measured, vec![]));
    e
}
