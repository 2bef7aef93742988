//! Writes the made-up run directories under `testdata/runs`: `cargo run -p rxpath-report --example made_up_runs`.
//!
//! The numbers are invented in the shape of real ones; they exercise the report and are no measurement.
//! The generator is here so that a change of the record's types is a compile error and one command away.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rxpath_core::{Fact, Side, Warning};
use rxpath_record::counters::Moved;
use rxpath_record::environment::Environment;
use rxpath_record::event::{Event, What};
use rxpath_record::evidence::{CpuUse, Evidence, SocketUse, SoftirqPlace, ThreadUse};
use rxpath_record::ledger::{CrossCheck, Drop, Ledger, Place};
use rxpath_record::manifest::{
    Comparison, Grade, LoopKind, Manifest, Metric, NoiseFloor, Outcome, Status, Trial,
    VariantSummary,
};
use rxpath_record::verdict::{Confidence, EvidenceLine, Stage, Verdict};
use serde_json::json;
use sha2::{Digest, Sha256};

type Done = Result<(), Box<dyn Error>>;

fn main() -> Done {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs");
    let story = story();
    write(&root.join("million-pps"), &run("million-pps", &story, 6))?;
    write(&root.join("one-variant"), &run("one-variant", &story[5..], 1))?;
    let mut partial = run("partial", &story[..3], 2);
    // The manifest is replaced after each trial: it knows the first four.
    let known = partial.0.trials[..4].to_vec();
    partial.0 = manifest("partial", "million-pps", &story[..3], known);
    partial.0.status = Status::Running;
    partial.0.ended = None;
    partial.0.headline.clear();
    partial.1.retain(|event| !matches!(event.what, What::RunEnded { .. }));
    write(&root.join("partial"), &partial)?;
    let events = root.join("partial/events.jsonl");
    let text = fs::read_to_string(&events)?;
    // Killed in the middle of a line.
    fs::write(&events, &text[..text.len() * 2 / 3])?;
    Ok(())
}

/// What one variant of the story is like.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    what: &'static str,
    setting: (&'static str, &'static str),
    offered: f64,
    delivered: f64,
    spread: f64,
    place: Place,
    counter: &'static str,
    stage: Stage,
    cpu: Option<u32>,
    sentence: &'static str,
    sockets: u32,
}

fn story() -> [Kind; 6] {
    let naive = Kind {
        name: "naive",
        what: "one sendmmsg sender, one recv per datagram, no CPU chosen",
        setting: ("serve.batch", "1"),
        offered: 512e3,
        delivered: 318e3,
        spread: 0.09,
        place: Place::SocketBuffer,
        counter: "rx/Udp.RcvbufErrors",
        stage: Stage::Application,
        cpu: Some(1),
        sentence: "the receiving application is the limit: CPU 1 is 99 % busy and its queue is full",
        sockets: 1,
    };
    let step = |name, what, setting, offered, delivered| Kind {
        name,
        what,
        setting,
        offered,
        delivered,
        spread: 0.02,
        ..naive
    };
    [
        naive,
        step("pinned", "sender on CPU 0, receiver on CPU 1", ("serve.cpu", "1"), 548e3, 361e3),
        step("batched", "recvmmsg of up to 1024", ("serve.batch", "1024"), 561e3, 498e3),
        Kind {
            place: Place::Backlog,
            counter: "rx/link.veth.rx.dropped",
            stage: Stage::Softirq,
            sentence: "softirq on CPU 1 is the limit: the RPS backlog overflows while the application sleeps 38 % of the time",
            ..step("rps", "receive softirq moved to CPU 1 by RPS", ("rx.rps", "2"), 905e3, 742e3)
        },
        Kind {
            sockets: 4,
            stage: Stage::SocketQueue,
            sentence: "the socket queue is the limit: two of four REUSEPORT sockets get every datagram",
            ..step(
                "reuseport",
                "four SO_REUSEPORT sockets",
                ("serve.sockets", "reuseport"),
                912e3,
                811e3,
            )
        },
        Kind {
            place: Place::SocketBuffer,
            stage: Stage::SenderOrSoftirq,
            cpu: Some(0),
            sentence: "CPU 0 is full: sender and receive softirq run in one system call and ticks do not separate them",
            ..step(
                "gso",
                "sender with UDP_SEGMENT, 64 datagrams a send",
                ("load.gso", "64"),
                1.184e6,
                1.1472e6,
            )
        },
    ]
}

/// A small generator of reproducible scatter (xorshift64*), uniform in -1..1.
struct Scatter(u64);

impl Scatter {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

type Whole = (Manifest, Vec<Event>, Environment);

fn run(id: &str, kinds: &[Kind], blocks: u32) -> Whole {
    let mut scatter = Scatter(0x9E37_79B9_7F4A_7C15);
    let mut trials = Vec::new();
    let mut events = Vec::new();
    let mut now = 812_000_000_000_i64;
    let scenario = if kinds.len() > 1 { "million-pps" } else { "udp-batching" };
    events.push(Event {
        t_ns: now,
        what: What::RunStarted { run_id: id.into(), scenario: scenario.into() },
    });
    for block in 0..=blocks {
        for (at, kind) in order(kinds, block) {
            let trial = trials.len() as u32;
            let mut made = trial_of(&kind, (trial, block), now, &mut scatter);
            if trial == 9 {
                made.void =
                    Some("CPU 1: 6.1 % of the window went to a thread of another program".into());
                made.grade = Grade::D;
            }
            note(&mut events, &made, &kind, at);
            now = made.window_ns[1] + 900_000_000;
            trials.push(made);
        }
    }
    let how = "complete".into();
    events.push(Event { t_ns: now, what: What::RunEnded { how } });
    (manifest(id, scenario, kinds, trials), events, environment())
}

/// Block 0 is the A/A block; later blocks rotate the variants.
fn order(kinds: &[Kind], block: u32) -> Vec<(usize, Kind)> {
    if block == 0 {
        return vec![(0, kinds[0]), (0, kinds[0])];
    }
    let mut all: Vec<(usize, Kind)> = kinds.iter().copied().enumerate().collect();
    all.rotate_left((block as usize * 5 + 2) % kinds.len());
    if block.is_multiple_of(2) {
        all.reverse();
    }
    all
}

fn trial_of(kind: &Kind, (trial, block): (u32, u32), start: i64, scatter: &mut Scatter) -> Trial {
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
) -> Evidence {
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
    };
    Evidence {
        window_s: 1.0,
        asked_pps: None,
        offered_pps,
        delivered_pps,
        sender_threads: vec![thread("rx-load", 0, ledger.offered_packets)],
        receiver_threads: vec![thread("rx-serve", 1, ledger.delivered_packets)],
        cpus: cpus.collect(),
        sockets: sockets.collect(),
        softirq: SoftirqPlace::SenderCall,
        backlog_limit_packets: Some(1000),
        ledger: ledger.clone(),
        ..Evidence::default()
    }
}

fn verdict_of(kind: &Kind) -> Verdict {
    let line = |text: &str, source: &str| EvidenceLine { text: text.into(), source: source.into() };
    Verdict {
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

/// The events of one trial: cumulative counters and queue gauges every 100 ms.
fn note(events: &mut Vec<Event>, trial: &Trial, kind: &Kind, at: usize) {
    let id = trial.trial;
    let start = trial.window_ns[0] - 400_000_000;
    let mut push = |t_ns: i64, what| events.push(Event { t_ns, what });
    push(
        start - 3_000_000,
        What::SettingChanged {
            side: Side::Rx,
            setting: kind.setting.0.into(),
            old: "default".into(),
            new: kind.setting.1.into(),
        },
    );
    let variant = kind.name.to_owned();
    push(start - 2_000_000, What::TrialStarted { trial: id, block: trial.block, variant });
    let mut scatter = Scatter(0xABCD_EF01 + u64::from(id) * 7919);
    let (mut offered, mut delivered) = (0.0, 0.0);
    for tick in 0..=16_i64 {
        let active = if tick < 2 {
            0.4
        } else if tick > 14 {
            0.0
        } else {
            1.0
        };
        if tick > 0 {
            offered += trial.evidence.offered_pps * 0.1 * active * (1.0 + 0.01 * scatter.next());
            delivered +=
                trial.evidence.delivered_pps * 0.1 * active * (1.0 + 0.03 * scatter.next());
        }
        let t = start + tick * 100_000_000;
        push(t, sample(id, Side::Tx, [("offered_packets/thread0".into(), offered.round())]));
        let mut values = vec![("delivered_packets/thread0".to_owned(), delivered.round())];
        for socket in &trial.evidence.sockets {
            let swing = 0.06 * (1.0 + scatter.next()) + 0.01 * at as f64;
            let queue = socket.queue_max_bytes as f64 * active * (1.0 - swing);
            values.push((format!("rmem_bytes/socket{}", socket.index), queue.round()));
        }
        push(t, sample(id, Side::Rx, values));
    }
    push(
        trial.window_ns[1] + 300_000_000,
        What::TrialEnded { trial: id, void: trial.void.clone() },
    );
}

fn sample(trial: u32, side: Side, values: impl IntoIterator<Item = (String, f64)>) -> What {
    What::Sample { trial, side, values: values.into_iter().collect() }
}

fn metric(trials: &[&Trial], name: &str) -> Metric {
    let values: Vec<f64> = trials.iter().filter_map(|t| t.metrics.get(name).copied()).collect();
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let at =
        |n: usize| sorted.get(n.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN);
    let interval = (sorted.len() >= 5).then(|| [at(1), at(sorted.len() - 2)]);
    Metric { median: at(sorted.len() / 2), min: at(0), max: at(sorted.len()), interval, values }
}

fn manifest(id: &str, scenario: &str, kinds: &[Kind], trials: Vec<Trial>) -> Manifest {
    let variants: Vec<VariantSummary> = kinds
        .iter()
        .map(|kind| {
            let mine: Vec<&Trial> =
                trials.iter().filter(|t| t.variant == kind.name && t.void.is_none()).collect();
            let names =
                ["delivered_pps", "offered_pps", "loss_ratio", "receiver_cpu_ns_per_packet"];
            VariantSummary {
                name: kind.name.into(),
                what: kind.what.into(),
                settings: [(kind.setting.0.to_owned(), json!(kind.setting.1))].into(),
                not_available: None,
                trials_count: mine.len() as u32,
                metrics: names
                    .iter()
                    .filter(|_| !mine.is_empty())
                    .map(|n| ((*n).to_owned(), metric(&mine, n)))
                    .collect(),
                verdict: Some(verdict_of(kind)),
            }
        })
        .collect();
    let both = |pair: &&[VariantSummary]| pair.iter().all(|v| v.trials_count > 0);
    let pairs = variants.windows(2).filter(both);
    let comparisons = pairs.map(|pair| compare(&pair[0], &pair[1])).collect();
    let words = ["rxpath", "run", scenario, "--set", "serve.size=32", "--trials", "6"];
    Manifest {
        schema: "rxpath/run/1.0".into(),
        run_id: id.into(),
        status: Status::Complete,
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        version: "0.1.0".into(),
        scenario: scenario.into(),
        question: "How many datagrams a second can one process receive, and what does each step of tuning add?".into(),
        expected: (kinds.len() > 1).then(|| "each step delivers more than the one before".into()),
        resolved: json!({"name": scenario, "load": {"size": 32, "threads": 1}, "serve": {"batch": 1}, "trials": {"seed": 4711}}),
        seed: 4711,
        started: "2026-11-21T00:12:07Z".into(),
        ended: Some("2026-11-21T00:13:31Z".into()),
        epoch_offset_ns: 1_795_219_115_000_000_000,
        noise_floor: (kinds.len() > 1).then(|| NoiseFloor {
            metric: "delivered_pps".into(),
            variant: kinds[0].name.into(),
            ratio: 1.0274,
        }),
        predictions: Vec::new(),
        headline: headline(&variants),
        warnings: vec![Warning::new("two-cpus", "this host has 2 CPUs: placements on a third were left out")
            .because("the scenario asks for up to 4")
            .cure("run it on a host with more CPUs")],
        files: BTreeMap::new(),
        main_metric: "delivered_pps".into(),
        variants,
        trials,
        comparisons,
    }
}

fn headline(variants: &[VariantSummary]) -> String {
    let rate = |v: &VariantSummary| v.metrics.get("delivered_pps").map_or(f64::NAN, |m| m.median);
    match variants {
        [only] => format!(
            "{}: {:.3} million datagrams a second delivered; CPU 0 is full.",
            only.name,
            rate(only) / 1e6
        ),
        [first, .., last] => format!(
            "From {:.0} thousand to {:.2} million datagrams a second delivered to one process, {:.1} times as many. The \
             reader was the limit at first; at the end it is CPU 0, which sends and runs the receive softirq.",
            rate(first) / 1e3,
            rate(last) / 1e6,
            rate(last) / rate(first)
        ),
        [] => String::new(),
    }
}

fn compare(base: &VariantSummary, variant: &VariantSummary) -> Comparison {
    let of = |v: &VariantSummary| v.metrics["delivered_pps"].clone();
    let (base_rate, rate) = (of(base), of(variant));
    let ratio = rate.median / base_rate.median;
    let enough = rate.interval.is_some() && base_rate.interval.is_some();
    Comparison {
        metric: "delivered_pps".into(),
        base: base.name.clone(),
        variant: variant.name.clone(),
        ratio,
        interval: enough.then_some([ratio * 0.972, ratio * 1.031]),
        range: [ratio * 0.94, ratio * 1.07],
        pairs_count: variant.trials_count.min(base.trials_count),
        outcome: if enough { Outcome::Better } else { Outcome::Inconclusive },
        expected: Some("up".into()),
    }
}

fn environment() -> Environment {
    let ok = |value: serde_json::Value| Fact::ok(value);
    let facts = [
        ("kernel.release", ok(json!("6.18.5-made-up"))),
        ("kernel.config.irq_time_accounting", ok(json!(false))),
        ("kernel.cmdline", Fact::denied("CAP_SYSLOG")),
        ("cpu.model", ok(json!("Made-up CPU @ 2.50GHz"))),
        ("cpu.online", ok(json!("0-1"))),
        ("cpu.frequency_governor", Fact::absent("no cpufreq driver in this guest")),
        ("cpu.smt", ok(json!("off"))),
        ("memory.total_bytes", ok(json!(16_777_216_000_u64))),
        ("clock.source", ok(json!("kvm-clock"))),
        ("virtualization", ok(json!("kvm"))),
        ("sysctl.net.core.rmem_max", ok(json!(212_992))),
        ("sysctl.net.core.netdev_max_backlog", ok(json!(1000))),
        ("sysctl.net.ipv4.udp_mem", ok(json!("190491 253988 380982"))),
    ];
    let facts = facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect();
    Environment {
        schema: "rxpath/environment/1.0".into(),
        hosts: [("local".to_owned(), facts)].into(),
    }
}

fn write(dir: &Path, (manifest, events, environment): &Whole) -> Done {
    fs::create_dir_all(dir)?;
    let lines: Result<Vec<String>, _> = events.iter().map(serde_json::to_string).collect();
    let events = lines?.join("\n") + "\n";
    let environment = serde_json::to_string_pretty(environment)? + "\n";
    let mut manifest = manifest.clone();
    if manifest.status == Status::Complete {
        for (name, text) in [("events.jsonl", &events), ("environment.json", &environment)] {
            let sum = Sha256::digest(text.as_bytes());
            let mut hex = String::new();
            for byte in sum {
                write!(hex, "{byte:02x}")?;
            }
            manifest.files.insert(name.into(), hex);
        }
    }
    fs::write(dir.join("events.jsonl"), events)?;
    fs::write(dir.join("environment.json"), environment)?;
    fs::write(dir.join("manifest.json"), serde_json::to_string(&manifest)? + "\n")?;
    Ok(())
}
