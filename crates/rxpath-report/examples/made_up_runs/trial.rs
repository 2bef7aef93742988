//! A trial of a variant: its counters, its ledger, its evidence, its verdict.

use std::collections::BTreeMap;

use rxpath_record::counters::Moved;
use rxpath_record::evidence::{CpuUse, SocketUse, SoftirqPlace, ThreadUse, WindowEvidence};
use rxpath_record::ledger::{CrossCheck, Drop, Ledger, Place};
use rxpath_record::manifest::{Grade, LoopKind, Trial};
use rxpath_record::verdict::{Confidence, DiagnosisVerdict, EvidenceLine, Stage};

use crate::Scatter;
use crate::story::Kind;

pub fn trial_of(
    kind: &Kind,
    (trial, block): (u32, u32),
    start: i64,
    scatter: &mut Scatter,
) -> Trial {
    let delivered_pps = kind.delivered * (1.0 + kind.spread * scatter.next());
    let offered_pps = (kind.offered * (1.0 + 0.01 * scatter.next())).max(delivered_pps);
    let offered = (offered_pps * 1.42) as u64;
    let delivered = (delivered_pps * 1.42) as u64;
    let ledger = ledger_of(kind, offered, delivered);
    let evidence = evidence_of(kind, (offered_pps, delivered_pps), &ledger, scatter);
    let loss = 1.0 - delivered_pps / offered_pps;
    let metrics = [
        ("delivered_pps", delivered_pps),
        ("offered_pps", offered_pps),
        ("loss_ratio", loss),
        ("receiver_cpu_ns_per_packet", 0.97e9 / delivered_pps),
    ];
    let begin = start + 400_000_000;
    Trial {
        trial,
        block,
        variant: kind.name.into(),
        void: None,
        loop_kind: LoopKind::Open,
        grade: if kind.spread > 0.05 { Grade::B } else { Grade::A },
        noise: vec!["CPU 1: 1.2 % of the window went to threads of other programs".into()],
        window_ns: [begin, begin + 1_000_000_000],
        moved: moved_of(kind, &ledger),
        ledger,
        evidence,
        verdict: Some(verdict_of(kind)),
        metrics: metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        workloads: BTreeMap::new(),
        flow_cpus: vec![],
        stolen: None,
        traced: None,
        hosts: BTreeMap::new(),
        pairs: vec![],
        pair_rates: vec![],
        warnings: vec![],
    }
}

fn ledger_of(kind: &Kind, offered: u64, delivered: u64) -> Ledger {
    let lost = offered - delivered;
    let at_socket = if kind.place == Place::SocketBuffer { lost } else { lost / 9 };
    let mut drops = vec![];
    if kind.place != Place::SocketBuffer {
        drops.push(Drop {
            place: kind.place,
            counter: kind.counter.into(),
            packets: lost - at_socket,
            derived: false,
            exact: true,
            bounds: None,
            cross_checks: vec![CrossCheck {
                counter: "tx/Udp.SndbufErrors".into(),
                packets: lost - at_socket,
                agrees: true,
            }],
        });
    }
    drops.push(Drop {
        place: Place::SocketBuffer,
        counter: "rx/Udp.RcvbufErrors".into(),
        packets: at_socket,
        derived: false,
        exact: true,
        bounds: None,
        cross_checks: vec![CrossCheck {
            counter: "rx/sock.drops".into(),
            packets: at_socket,
            agrees: true,
        }],
    });
    Ledger {
        offered_packets: offered,
        sent_packets: offered,
        delivered_packets: delivered,
        drops,
        ..Ledger::default()
    }
}

fn moved_of(kind: &Kind, ledger: &Ledger) -> Moved {
    let lost = ledger.offered_packets - ledger.delivered_packets;
    let values = [
        ("machine/softnet.cpu0.processed", ledger.offered_packets),
        ("rx/Ip.InReceives", ledger.offered_packets),
        ("rx/Udp.InDatagrams", ledger.delivered_packets),
        ("rx/Udp.InErrors", lost),
        (kind.counter, lost),
        ("tx/Udp.OutDatagrams", ledger.sent_packets),
    ];
    let gaps = [("rx/qdisc.root.drops", "the device has no qdisc (noqueue)")];
    Moved {
        values: values.into_iter().map(|(name, by)| (name.to_owned(), by as i64)).collect(),
        gaps: gaps.into_iter().map(|(name, why)| (name.to_owned(), why.to_owned())).collect(),
    }
}

fn evidence_of(
    kind: &Kind,
    (offered_pps, delivered_pps): (f64, f64),
    ledger: &Ledger,
    scatter: &mut Scatter,
) -> WindowEvidence {
    let full = |cpu: u32| kind.cpu.is_none_or(|limit| limit == cpu);
    let cpus = (0..2).map(|cpu| {
        let idle = if full(cpu) { 0.006 } else { 0.14 + 0.03 * scatter.next() };
        let softirq = if kind.stage == Stage::Softirq && cpu == 1 { 0.52 } else { 0.16 };
        CpuUse {
            cpu,
            user_ratio: 0.07,
            system_ratio: 1.0 - idle - softirq - 0.07 - 0.012,
            irq_ratio: 0.004,
            softirq_ratio: softirq,
            steal_ratio: 0.008,
            idle_ratio: idle,
            foreign_ratio: (cpu == 1).then_some(0.012),
        }
    });
    let dropped = ledger
        .drops
        .iter()
        .filter(|d| d.place == Place::SocketBuffer)
        .map(|d| d.packets)
        .sum::<u64>();
    let sockets = (0..kind.sockets).map(|index| {
        let share = if kind.sockets == 1 { 1.0 } else { [0.57, 0.0, 0.43, 0.0][index as usize] };
        SocketUse {
            index,
            rcvbuf_bytes: 425_984,
            capacity_packets: Some(554),
            queue_mean_bytes: 390_000.0 * share,
            queue_max_bytes: (425_000.0 * share.min(1.0)) as u64,
            samples: 10,
            drops_packets: (dropped as f64 * share) as u64,
            delivered_packets: (ledger.delivered_packets as f64 * share) as u64,
            ..SocketUse::default()
        }
    });
    let thread = |name: &str, cpu: u32, packets: u64| ThreadUse {
        tid: 4000 + cpu as i32,
        name: name.into(),
        asked_cpu: Some(cpu),
        seen_cpus: vec![cpu],
        running_ratio: 0.98,
        waiting_ratio: 0.01,
        packets,
        ..ThreadUse::default()
    };
    WindowEvidence {
        window_s: 1.0,
        target_pps: None,
        offered_pps,
        delivered_pps,
        sender_threads: vec![thread("rx-load", 0, ledger.offered_packets)],
        receiver_threads: vec![thread("rx-serve", 1, ledger.delivered_packets)],
        cpus: cpus.collect(),
        sockets: sockets.collect(),
        softirq: SoftirqPlace::SenderCall,
        backlog_limit_packets: Some(1000),
        ledger: ledger.clone(),
        ..WindowEvidence::default()
    }
}

pub fn verdict_of(kind: &Kind) -> DiagnosisVerdict {
    let line = |text: &str, source: &str| EvidenceLine { text: text.into(), source: source.into() };
    DiagnosisVerdict {
        stage: kind.stage,
        cpu: kind.cpu,
        confidence: if kind.stage == Stage::SenderOrSoftirq {
            Confidence::Weak
        } else {
            Confidence::Strong
        },
        sentence: kind.sentence.into(),
        evidence: vec![
            line("CPU 1 was idle for 0.6 % of the window", "/proc/stat cpu1"),
            line(
                "the socket's queue held 91 % of its 425984 bytes on average",
                "SO_MEMINFO rmem_alloc",
            ),
        ],
        remedies: vec![
            "read with recvmmsg instead of recv".into(),
            "give the reader a CPU of its own".into(),
        ],
        check_rules: Vec::new(),
        next: Vec::new(),
        paired_trial: (kind.stage == Stage::SenderOrSoftirq)
            .then_some(rxpath_record::verdict::PairedTrial::Rps),
    }
}
