//! Evidence of any kind, broken evidence too, for properties.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use rxpath_core::PathSide;
use rxpath_record::evidence::{
    AnyProtocol, ConntrackUse, ContendedLock, CpuDistribution, CpuPackets, CpuUse, Halt, Listener,
    LockWaiter, Probed, ProbedCpu, ProbedTask, SocketOwner, SocketUse, SoftirqPlace, TcpConnection,
    TcpService, TcpUse, ThreadUse, Throttled, UdpCounting, WindowEvidence,
};
use rxpath_record::ledger::{CrossCheck, Drop, Ledger, Place};

use crate::made::{scenes, scenes_of_segments};
use crate::two_machines;

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..1.0,
        2 => 0.0..2e6,
        1 => prop::num::f64::ANY,
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(0.0)],
    ]
}

fn packets() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0u64..2_000_000, 1 => Just(0), 1 => any::<u64>()]
}

/// What keeps a thread from running, if anything.
fn held() -> impl Strategy<Value = (Option<Halt>, Option<Throttled>)> {
    let halts = vec![None, None, Some(Halt::Signal), Some(Halt::Tracer), Some(Halt::Freezer)];
    let quota = number().prop_map(|ratio| Throttled {
        group: "/app".into(),
        ratio,
        used_up_ratio: 1.0 - ratio,
    });
    (prop::sample::select(halts), option::of(quota))
}

fn threads() -> impl Strategy<Value = Vec<ThreadUse>> {
    let one = (
        any::<i32>(),
        ".{0,6}",
        option::of(0u32..4),
        vec(0u32..4, 0..3),
        number(),
        number(),
        packets(),
        option::of(1i32..3),
        held(),
    )
        .prop_map(
            |(
                tid,
                name,
                asked_cpu,
                seen_cpus,
                running_ratio,
                waiting_ratio,
                packets,
                pid,
                held,
            )| {
                ThreadUse {
                    tid,
                    name,
                    asked_cpu,
                    seen_cpus,
                    running_ratio,
                    waiting_ratio,
                    packets,
                    pid,
                    halted: held.0,
                    throttled: held.1,
                    host: String::new(),
                }
            },
        );
    vec(one, 0..4)
}

fn cpus() -> impl Strategy<Value = Vec<CpuUse>> {
    let one = (0u32..4, vec(number(), 6), option::of(number())).prop_map(
        |(cpu, share, foreign_ratio)| CpuUse {
            cpu,
            user_ratio: share[0],
            system_ratio: share[1],
            irq_ratio: share[2],
            softirq_ratio: share[3],
            steal_ratio: share[4],
            idle_ratio: share[5],
            foreign_ratio,
        },
    );
    // One entry per CPU, as /proc/stat has it.
    vec(one, 0..5).prop_map(|mut cpus| {
        cpus.sort_by_key(|c| c.cpu);
        cpus.dedup_by_key(|c| c.cpu);
        cpus
    })
}

fn sockets() -> impl Strategy<Value = Vec<SocketUse>> {
    let one =
        (packets(), option::of(packets()), number(), packets(), 0u64..50, packets(), packets())
            .prop_map(
                |(
                    rcvbuf_bytes,
                    capacity_packets,
                    queue_mean_bytes,
                    queue_max_bytes,
                    samples,
                    drops_packets,
                    delivered_packets,
                )| SocketUse {
                    index: 0,
                    rcvbuf_bytes,
                    capacity_packets,
                    queue_mean_bytes,
                    queue_max_bytes,
                    samples,
                    drops_packets,
                    delivered_packets,
                    local: ["", "0.0.0.0:53", "[::]:53"][rcvbuf_bytes as usize % 3].into(),
                    owners: vec![SocketOwner { pid: (samples % 3) as i32, name: "named".into() }],
                    connected: queue_max_bytes % 2 == 1,
                    readers: [None, Some(vec![]), Some(vec![1, 2])][drops_packets as usize % 3]
                        .clone(),
                    waiters: [None, Some(vec![]), Some(vec![2, 3])][delivered_packets as usize % 3]
                        .clone(),
                },
            );
    vec(one, 0..4).prop_map(|mut sockets| {
        (0..).zip(&mut sockets).for_each(|(i, socket)| socket.index = i);
        sockets
    })
}

/// Places at which a packet can be lost.
pub const LOSSES: [Place; 23] = [
    Place::SendCall,
    Place::Qdisc,
    Place::SendingDevice,
    Place::Network,
    Place::Ring,
    Place::Backlog,
    Place::IngressHook,
    Place::Ip,
    Place::ReversePath,
    Place::Netfilter,
    Place::NoListener,
    Place::Checksum,
    Place::SocketBuffer,
    Place::UdpMemory,
    Place::UdpMemoryUncounted,
    Place::UdpOther,
    Place::DeviceRefused,
    Place::Routing,
    Place::Fragments,
    Place::IpsecPolicy,
    Place::SocketFilter,
    Place::ReasonOnly,
    Place::XdpSocket,
];

fn place() -> impl Strategy<Value = Place> {
    prop::sample::select(LOSSES.to_vec())
}

fn ledger() -> impl Strategy<Value = Ledger> {
    let one = (place(), ".{0,6}", packets(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(place, counter, packets, derived, exact, agrees)| Drop {
            place,
            counter,
            packets,
            derived,
            exact,
            bounds: None,
            cross_checks: vec![CrossCheck { counter: "check".into(), packets, agrees }],
        },
    );
    let unaccounted = prop_oneof![4 => Just(0i64), 1 => any::<i64>()];
    (packets(), packets(), vec(one, 0..4), unaccounted).prop_map(
        |(offered_packets, delivered_packets, drops, unaccounted_packets)| Ledger {
            offered_packets,
            sent_packets: offered_packets,
            delivered_packets,
            drops,
            unaccounted_packets: Some(unaccounted_packets),
            ..Ledger::default()
        },
    )
}

fn spread() -> impl Strategy<Value = CpuDistribution> {
    let row = (packets(), option::of(number()));
    let packets = vec((0u32..4, row), 0..4).prop_map(|all| {
        // One entry per CPU, as softnet_stat has it.
        let by_cpu: std::collections::BTreeMap<u32, _> = all.into_iter().collect();
        by_cpu
            .into_iter()
            .map(|(cpu, (packets, one_flow_ratio))| CpuPackets {
                cpu,
                packets,
                dropped_packets: packets % 7,
                squeezed_count: packets % 5,
                one_flow_ratio,
                napi_threads_ratio: one_flow_ratio,
            })
            .collect()
    });
    (option::of(0u32..9), option::of(vec(0u32..4, 0..3)), option::of(packets_of_few()), packets)
        .prop_map(|(queues, rps_cpus, flows, packets)| CpuDistribution {
            queues,
            rps_cpus,
            flows,
            packets,
        })
}

fn packets_of_few() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0u64), Just(1), Just(2), any::<u64>()]
}

fn conntrack() -> impl Strategy<Value = ConntrackUse> {
    (packets(), packets(), packets(), option::of(packets())).prop_map(
        |(drops_packets, early_drops_count, entries_count, entries_max)| ConntrackUse {
            drops_packets,
            early_drops_count,
            entries_count,
            entries_max,
        },
    )
}

fn probed() -> impl Strategy<Value = Probed> {
    let cpus = vec(vec(number(), 4), 0..4).prop_map(|all| {
        let one = |(cpu, n): (u32, Vec<f64>)| ProbedCpu {
            cpu,
            net_softirq_ratio: n[0],
            other_softirq_ratio: n[1],
            irq_ratio: n[2],
            interrupts_per_s: n[3],
        };
        (0..).zip(all).map(one).collect::<Vec<_>>()
    });
    let tasks = vec((0u32..4, any::<bool>(), vec(number(), 3)), 0..3).prop_map(|all| {
        let one = |(tid, (cpu, part_of_path, n)): (i32, (u32, bool, Vec<f64>))| ProbedTask {
            tid,
            name: "task".into(),
            cpu,
            part_of_path,
            on_cpu_ratio: n[0],
            taken_ratio: n[1],
            waiting_ratio: n[2],
        };
        (0..).zip(all).map(one).collect::<Vec<_>>()
    });
    let locks = vec((packets(), number(), number()), 0..3).prop_map(|all| {
        let one = |(at, (waits_count, waited_ratio, own)): (u16, (u64, f64, f64))| ContendedLock {
            lock: format!("lock{at}"),
            port: at,
            waits_count,
            waited_ratio,
            readers: vec![LockWaiter { tid: 1, waited_ratio: own }],
        };
        (0..).zip(all).map(one).collect::<Vec<_>>()
    });
    (cpus, tasks, option::of(locks)).prop_map(|(cpus, tasks, locks)| Probed {
        cpus,
        tasks,
        locks,
        gaps: vec![],
    })
}

fn tcp() -> impl Strategy<Value = TcpUse> {
    let names = [
        "TcpExt.ListenDrops",
        "TcpExt.ListenOverflows",
        "TcpExt.PruneCalled",
        "TcpExt.TCPRcvQDrop",
        "TcpExt.TCPToZeroWindowAdv",
        "TcpExt.TCPOFOQueue",
        "Tcp.RetransSegs",
    ];
    let counters = vec((prop::sample::select(names.to_vec()), packets()), 0..3)
        .prop_map(|all| all.into_iter().map(|(name, count)| (name.to_owned(), count)).collect());
    let listeners = vec((any::<u32>(), any::<u32>(), packets()), 0..3).prop_map(|all| {
        let one =
            |(at, (waiting_count, backlog_count, drops_count)): (u16, (u32, u32, u64))| Listener {
                local: format!("0.0.0.0:{at}"),
                owners: vec![],
                waiting_count,
                waiting_max_count: waiting_count,
                backlog_count,
                drops_count,
            };
        (0..).zip(all).map(one).collect()
    });
    let all = (packets(), packets(), vec(service(), 0..3));
    (counters, listeners, all).prop_map(|(counters, listeners, (received, sent, services))| {
        TcpUse {
            counters,
            listeners,
            received_segments: received,
            sent_segments: sent,
            services,
            ..TcpUse::default()
        }
    })
}

fn service() -> impl Strategy<Value = TcpService> {
    (vec(packets(), 6), vec(number(), 2), 0u64..5, threads(), any::<bool>()).prop_map(
        |(counts, of, samples, threads, outgoing)| TcpService {
            address: "0.0.0.0:80".into(),
            outgoing,
            owners: vec![SocketOwner { pid: 7, name: "httpd".into() }],
            connections_count: counts[0],
            full_count: counts[1],
            received_bytes: counts[2],
            out_of_order_segments: counts[3],
            retransmitted_segments: counts[4],
            drops_count: counts[5],
            fullest: (samples > 0).then(|| TcpConnection {
                filled_mean_ratio: of[0],
                unread_mean_bytes: of[1],
                samples,
                ..TcpConnection::default()
            }),
            threads,
        },
    )
}

fn softirq() -> impl Strategy<Value = SoftirqPlace> {
    (0..4, vec(0u32..4, 0..3)).prop_map(|(kind, cpus)| match kind {
        0 => SoftirqPlace::SenderCall,
        1 => SoftirqPlace::Rps { cpus },
        2 => SoftirqPlace::Napi { cpus },
        _ => SoftirqPlace::NapiThread { cpus },
    })
}

prop_compose! {
    fn any_evidence()(
        rates in (number(), option::of(number()), number(), number(), number()),
        sender_threads in threads(),
        receiver_threads in threads(),
        cpus in cpus(),
        sockets in sockets(),
        softirq in softirq(),
        ledger in ledger(),
        extra in (option::of(packets()), option::of(any::<u32>()), option::of(number()), any::<bool>()),
        probes in (option::of(spread()), option::of(conntrack()), option::of(probed())),
        watch in (vec((ledger(), packets()), 0..2), option::of(tcp()), 0usize..3),
    ) -> WindowEvidence {
        let (window_s, target_pps, offered_pps, delivered_pps, sender_blocked_s) = rates;
        let (backlog_limit_packets, segments_per_send, reader_stall_s, watched) = extra;
        WindowEvidence {
            narrowed: false,
            polling_sides: [vec![], vec![PathSide::Tx], vec![PathSide::Rx]][watch.2].clone(),
            watched, window_s, target_pps, offered_pps, delivered_pps, sender_blocked_s, sender_threads, receiver_threads,
            sender_hosts: Vec::new(),
            cpus, sockets, softirq, backlog_limit_packets, segments_per_send, reader_stall_s, ledger,
            spread: probes.0, conntrack: probes.1, probed: probes.2,
            any_protocol: watch.0.into_iter().filter_map(|(ledger, of_packets)| {
                Some(AnyProtocol { drop: ledger.drops.into_iter().next()?, of_packets })
            }).collect(),
            tcp: watch.1,
            unread: vec!["what a hook drops".into(); watch.2],
            namespace: ["", "blue"][watch.2 % 2].into(),
            elsewhere_pps: (watch.2 == 1).then_some(window_s),
            udp_counting: (watch.2 == 2).then_some(UdpCounting {
                taken_by_kernel_packets: u64::from(segments_per_send.unwrap_or(0)),
                segments_per_packet: Some(window_s),
            }),
        }
    }
}

/// Evidence near a scene: the broken kind alone would hardly ever reach the deeper rules.
pub fn near_a_scene() -> impl Strategy<Value = WindowEvidence> {
    let scale = || 0.5..1.6f64;
    let apart = two_machines::scenes().into_iter().map(|(_, e)| ("two machines", e));
    let all = scenes().into_iter().chain(scenes_of_segments()).chain(apart).collect::<Vec<_>>();
    (prop::sample::select(all), vec(scale(), 8)).prop_map(|((_, mut e), by)| {
        e.window_s *= by[0];
        e.offered_pps *= by[1];
        e.delivered_pps *= by[2];
        for thread in e.receiver_threads.iter_mut().chain(&mut e.sender_threads) {
            thread.running_ratio *= by[3];
            thread.waiting_ratio *= by[4] * 2.0;
        }
        for cpu in &mut e.cpus {
            cpu.softirq_ratio *= by[5];
            cpu.idle_ratio *= by[6];
        }
        e.sender_blocked_s += (by[7] - 1.0).max(0.0);
        e
    })
}

pub fn evidence() -> impl Strategy<Value = WindowEvidence> {
    let watched = near_a_scene().prop_map(|e| WindowEvidence { watched: true, ..e });
    prop_oneof![any_evidence(), near_a_scene(), watched]
}
