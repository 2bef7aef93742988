//! A small run that has one of everything.

use std::collections::BTreeMap;

use rxpath_core::{CpuList, Fact, PathSide, Warning};
use rxpath_record::capacity::{
    Capacity, CapacityGoal, FreshTrials, LoadClass, SearchEnd, TriedLoad,
};
use rxpath_record::comparison::{
    Comparison, Expectation, JudgedBy, MeasuredEffect, MetricDifference, NoiseFloor, Outcome,
    Published, Reason,
};
use rxpath_record::environment::{Environment, RecordedFacts};
use rxpath_record::event::{RunEvent, What};
use rxpath_record::evidence::{CpuUse, SocketUse, SoftirqPlace, ThreadUse, WindowEvidence};
use rxpath_record::hosts::{ControlCost, HostStart, HostTrial, PairPackets, PairRate};
use rxpath_record::ledger::{CrossCheck, Drop, Ledger, LedgerUnit, Place};
use rxpath_record::manifest::{Grade, LoopKind, Manifest, Metric, Status, Trial, VariantSummary};
use rxpath_record::prediction::{Predicted, Prediction};
use rxpath_record::run::{ENVIRONMENT_SCHEMA, MANIFEST_SCHEMA};
use rxpath_record::verdict::{Confidence, DiagnosisVerdict, EvidenceLine, PairedTrial, Stage};
use serde_json::json;

pub const RUN_ID: &str = "20261121T003507Z-udp-pinning-00c0fe";

fn ledger() -> Ledger {
    Ledger {
        unit: LedgerUnit::Datagram,
        offered_packets: 1000,
        sent_packets: 1000,
        delivered_packets: 900,
        drops: vec![Drop {
            place: Place::SocketBuffer,
            counter: "rx/Udp.RcvbufErrors".into(),
            packets: 100,
            derived: false,
            exact: true,
            bounds: None,
            cross_checks: vec![CrossCheck {
                counter: "rx/Udp.InErrors".into(),
                packets: 100,
                agrees: true,
            }],
        }],
        ..Ledger::default()
    }
}

fn verdict() -> DiagnosisVerdict {
    DiagnosisVerdict {
        stage: Stage::Application,
        cpu: Some(1),
        confidence: Confidence::Strong,
        sentence: "the receiving application is the limit: CPU 1 is 100 % busy".into(),
        evidence: vec![EvidenceLine {
            text: "100 of 1000 offered datagrams were dropped at the socket".into(),
            source: "rx/Udp.RcvbufErrors".into(),
        }],
        remedies: vec!["serve udp --batch 1024".into()],
        check_rules: vec!["udp-gro-socket".into()],
        next: vec!["the receive softirq on CPU 0".into()],
        paired_trial: Some(PairedTrial::Rps),
    }
}

fn evidence() -> WindowEvidence {
    WindowEvidence {
        window_s: 1.0,
        target_pps: Some(1000.0),
        offered_pps: 1000.0,
        delivered_pps: 900.0,
        receiver_threads: vec![ThreadUse { tid: 7, name: "rx".into(), ..ThreadUse::default() }],
        cpus: vec![CpuUse { cpu: 1, user_ratio: 0.5, ..CpuUse::default() }],
        sockets: vec![SocketUse { capacity_packets: Some(9), ..SocketUse::default() }],
        softirq: SoftirqPlace::Rps { cpus: vec![1] },
        ledger: ledger(),
        ..WindowEvidence::default()
    }
}

pub fn trial(number: u32) -> Trial {
    Trial {
        trial: number,
        block: number,
        variant: "pinned".into(),
        void: None,
        loop_kind: LoopKind::Open,
        grade: Grade::A,
        noise: vec!["CPU 1 was 0.2 % foreign".into()],
        window_ns: [1_000, 2_000],
        ledger: ledger(),
        moved: rxpath_record::counters::Moved {
            values: BTreeMap::from([("rx/Udp.RcvbufErrors".into(), 100)]),
            gaps: BTreeMap::from([("rx/nft".into(), "no nf_tables".into())]),
        },
        evidence: evidence(),
        verdict: Some(verdict()),
        metrics: BTreeMap::from([("delivered_pps".into(), 900.0)]),
        workloads: BTreeMap::from([("serve".into(), json!({"delivered_packets": 900}))]),
        flow_cpus: Vec::new(),
        stolen: None,
        traced: None,
        hosts: BTreeMap::from([(
            "sut".into(),
            HostTrial {
                side: PathSide::Rx,
                grade: Grade::B,
                noise: vec!["other programs took 1.2 % of CPU 1".into()],
                endpoint_cost: Some(ControlCost {
                    span_ns: 1_000,
                    cpu_ns: 4,
                    control_bytes: 210,
                    cpus: CpuList(vec![2, 3]),
                }),
                start: Some(HostStart { at_ns: 5_000, error_ns: 40, late_ns: 7 }),
                delivered_pps: Some(900.0),
                ledger: Some(ledger()),
                metrics: BTreeMap::from([("achieved_rps".into(), 900.0)]),
            },
        )]),
        pairs: vec![PairPackets {
            sender: "gen1".into(),
            receiver: "sut".into(),
            offered_packets: 1000,
            delivered_packets: Some(900),
        }],
        pair_rates: vec![PairRate {
            sender: "gen1".into(),
            receiver: "sut".into(),
            metric: "achieved_rps".into(),
            value: 900.0,
            done_total: Some(1800),
            errors_count: 1,
            timed_count: 1800,
            p99_us: Some(310.0),
        }],
        warnings: vec![Warning::new("closed-loop", "the sender blocked").because("small buffer")],
    }
}

#[expect(clippy::too_many_lines, reason = "every member of a manifest, once")]
pub fn manifest() -> Manifest {
    Manifest {
        schema: MANIFEST_SCHEMA.into(),
        run_id: RUN_ID.into(),
        status: Status::Running,
        command: vec!["rxpath".into(), "run".into(), "udp-pinning".into()],
        version: "0.1.0".into(),
        scenario: "udp-pinning".into(),
        question: "does pinning help?".into(),
        expected: Some("up".into()),
        resolved: json!({"serve": {"batch": 1024}}),
        seed: 42,
        started: "2026-11-21T00:35:07Z".into(),
        ended: None,
        epoch_offset_ns: 1_700_000_000_000_000_000,
        main_metric: "delivered_pps".into(),
        variants: vec![VariantSummary {
            name: "pinned".into(),
            what: "both sides on a CPU of their own".into(),
            settings: BTreeMap::from([("serve.cpu".into(), json!("1"))]),
            not_available: None,
            trials_count: 2,
            metrics: BTreeMap::from([(
                "delivered_pps".into(),
                Metric {
                    median: 900.0,
                    min: 900.0,
                    max: 900.0,
                    interval: Some([899.0, 901.0]),
                    values: vec![900.0, 900.0],
                },
            )]),
            verdict: Some(verdict()),
            agreement: None,
            pooled_quantiles: Vec::new(),
        }],
        trials: vec![trial(0), trial(1)],
        comparisons: vec![Comparison {
            metric: "delivered_pps".into(),
            base: "unpinned".into(),
            variant: "pinned".into(),
            effect: MeasuredEffect {
                ratio: Some(1.1),
                interval: None,
                range: Some([1.0, 1.2]),
                difference: Some(MetricDifference {
                    value: 90.0,
                    interval: None,
                    range: [0.0, 180.0],
                }),
                judged_by: JudgedBy::Ratio,
                outcome: Outcome::Inconclusive,
                inconclusive_because: Some(Reason::TooFew),
                same_within: Some(0.03),
                control: None,
            },
            pairs_count: 2,
            expected: Some("up".into()),
            expectation: Some(Expectation::Confirmed),
            published: Some(Published {
                ratio: Some(2.0),
                figures: "1 against 2".into(),
                source: "Someone 2020".into(),
                machine: "a host".into(),
                ..Published::default()
            }),
        }],
        noise_floor: Some(NoiseFloor {
            metric: "delivered_pps".into(),
            variant: "pinned".into(),
            ratio: Some(1.01),
            difference: Some(9.0),
            trial_noise_ratio: None,
        }),
        capacity: Some(Capacity {
            variant: "one-socket".into(),
            unit: "datagrams".into(),
            lower_per_s: Some(96_134.0),
            upper_per_s: Some(98_911.0),
            conditional_throughput_per_s: Some(96_134.0),
            regular: true,
            ended: SearchEnd::Found,
            goal: CapacityGoal { loss_ratio: 0.001, ..CapacityGoal::default() },
            fresh: Some(FreshTrials { good_count: 6, bad_count: 1 }),
            loads: vec![TriedLoad {
                rate_per_s: 96_134.0,
                good_s: 6.0,
                bad_s: 1.0,
                class: LoadClass::LowerBound,
                loss_ratios: vec![0.0, 0.002],
                latencies_us: vec![120.0],
            }],
            limited_by: Some(verdict()),
            trials_count: 31,
            void_count: 2,
            search_s: 52.5,
        }),
        hosts: BTreeMap::new(),
        predictions: vec![Prediction {
            variant: "pinned".into(),
            metrics: BTreeMap::from([(
                "delivered_pps".into(),
                Predicted { predicted: 910.0, measured: 900.0 },
            )]),
            not_predicted: None,
        }],
        headline: "pinning gives 10 %".into(),
        warnings: vec![Warning::new("few-cpus", "2 CPUs")],
        files: BTreeMap::new(),
    }
}

pub fn environment() -> Environment {
    let facts = RecordedFacts::from([
        ("kernel.release".to_owned(), Fact::ok(json!("6.18.0"))),
        ("cpu.smt".to_owned(), Fact::absent("no sibling file")),
        ("sysctl.net.core.rmem_max".to_owned(), Fact::denied("CAP_NET_ADMIN")),
    ]);
    Environment {
        schema: ENVIRONMENT_SCHEMA.into(),
        hosts: BTreeMap::from([("local".into(), facts)]),
    }
}

/// One event of each type.
pub fn events() -> Vec<RunEvent> {
    let all = [
        What::RunStarted { run_id: RUN_ID.into(), scenario: "udp-pinning".into() },
        What::SettingChanged {
            side: PathSide::Rx,
            setting: "rps_cpus".into(),
            old: "0".into(),
            new: "2".into(),
            since_trial: None,
        },
        What::TrialStarted { trial: 0, block: 0, variant: "pinned".into() },
        What::Phase { trial: 0, phase: "measure".into() },
        What::Sample {
            trial: 0,
            side: PathSide::Rx,
            values: BTreeMap::from([("delivered_packets/thread0".into(), 450.0)]),
        },
        What::TrialEnded { trial: 0, void: None },
        What::Warned(Warning::new("noise", "CPU 1 was disturbed").cure("stop it")),
        What::RunEnded { how: "complete".into() },
    ];
    let timed = |(at, what)| RunEvent { t_ns: 1_000_000_000 * at, what };
    (1i64..).zip(all).map(timed).collect()
}
