//! How many series a host can make at most: everything that can have one has it.

use std::collections::BTreeSet;

use rxpath_core::{Fact, Log2};
use rxpath_record::verdict::{Confidence, DiagnosisVerdict, Stage};
use rxpath_record::watch::{
    CpuRow, DropRow, LatencyRow, LossRow, PathStage, PollSizes, ProbeDutyCycle, ProbeShare,
    StageLatency, StageRow, TakenTime, TaskRow, WatchFrame, WindowTotals,
};

use crate::deep::DeepLooks;
use crate::families::{Families, METRICS, MOST_SERIES, MOST_TOP, MetricKind, TOP};
use crate::findings::ExportedCheck;
use crate::governor::Governor;

/// Things of each kind in a window, others in each.
const MANY: u32 = 1000;
/// Gaps of a frame: more than a host was seen with.
const GAPS: u32 = 40;

const LATENCIES: [&str; 2] = ["receive-to-socket", "socket-to-read"];

/// Of the socket's queue.
pub fn verdict(confidence: Confidence) -> DiagnosisVerdict {
    DiagnosisVerdict {
        stage: Stage::SocketQueue,
        cpu: None,
        confidence,
        sentence: String::new(),
        evidence: Vec::new(),
        remedies: Vec::new(),
        check_rules: Vec::new(),
        next: Vec::new(),
        paired_trial: None,
    }
}

fn stage(stage: PathStage) -> StageRow {
    StageRow {
        stage,
        rate_per_s: Fact::ok(1.0),
        unit: "packets".into(),
        rate_source: String::new(),
        drops_pps: Fact::ok(1.0),
        drops_source: String::new(),
        cpu_ratio: Fact::ok(1.0),
        note: String::new(),
    }
}

fn frame(round: u32) -> WatchFrame {
    let task = |n: u32| TaskRow {
        process: round * 7 + n,
        taken_ratio: Fact::ok(0.2),
        taken_net_ratio: Fact::ok(0.1),
        irq_entry_ratio: Fact::ok(0.05),
        ..TaskRow::default()
    };
    let dropped = |n: u32| DropRow {
        reason: format!("R{}", round * 7 + n),
        packets_pps: 1.0,
        ..DropRow::default()
    };
    let latency = |stage: &str| LatencyRow { stage: stage.into(), count: 1, p50_ns: 1, p99_ns: 1 };
    let sampled = |what: &str| ProbeDutyCycle { what: what.into(), ..ProbeDutyCycle::default() };
    WatchFrame {
        window_s: 1.0,
        stages: PathStage::ALL.map(stage).into(),
        verdict: Some(verdict(Confidence::Strong)),
        cpus: vec![CpuRow { net_softirq_ratio: Fact::ok(0.5), ..CpuRow::default() }],
        tasks: (0..MANY).map(task).collect(),
        drops: (0..MANY).map(dropped).collect(),
        losses: LossRow::PLACES.map(|place| LossRow { place, packets_pps: 1.0 }).into(),
        latency: LATENCIES.map(latency).into(),
        gaps: (0..GAPS).map(|n| (format!("gap {n}"), String::new())).collect(),
        sampled: ProbeDutyCycle::PROBES.map(sampled).into(),
        probe_cost: Some(ProbeShare::default()),
        ..WatchFrame::default()
    }
}

/// Names as long as they can be made of what a quote and a line's end would break.
fn totals(round: u32) -> WindowTotals {
    let name = |kind: &str, n: u32| format!("{kind}{}\"\n", round * 7 + n);
    let one = TakenTime { network_s: 0.1, ..TakenTime::default() };
    let sizes = PollSizes { packets_per_poll: Log2::of(&[0, 1]), packets: 1 };
    let latency = StageLatency { histogram_ns: Log2::of(&[0, 1]), sum_s: 1.0 };
    WindowTotals {
        victims: (0..MANY).map(|n| (("group", name("g", n)), one)).collect(),
        devices_s: (0..MANY).map(|n| (name("d", n), 0.1)).collect(),
        flows_s: (0..MANY).map(|n| (("udp", (round * 7 + n) as u16), 0.01)).collect(),
        softirqs_s: [("net_rx", 0.5), ("net_tx", 0.1)].into(),
        deferred_s: [("napi", 0.1), ("ksoftirqd", 0.1)].into(),
        irq_entry: Some(("packets", 5e-6)),
        latencies: LATENCIES.map(|stage| (stage.to_owned(), latency.clone())).into(),
        polls: (0..MANY).map(|n| (name("d", n), sizes.clone())).collect(),
        lost_count: ["account", "polls", "stages", "drops"].map(|probe| (probe, 1)).into(),
    }
}

fn checked() -> ExportedCheck {
    let finding = |n: u32| (format!("rule-{n}"), "warn", format!("eth{n}"));
    ExportedCheck {
        findings: (0..MANY).map(finding).collect(),
        unjudged: vec![("not-there", 1), ("not-told", 1), ("unreadable", 1), ("privilege", 1)],
        tuned: [
            "holds",
            "as-left",
            "ignored",
            "refused",
            "never-reached",
            "drifted",
            "gone",
            "unread",
        ]
        .map(|state| (state, 1))
        .into(),
        fingerprint: "0123456789abcdef".into(),
        at_unix_s: 1e9,
    }
}

/// The page of a host that has everything, with series for so many programs and victims.
fn worst(top: usize) -> String {
    let mut families = Families::new("1", 4).unwrap().with_top(top);
    families.started(1e9);
    for round in 0..20 {
        families.frame(&frame(round), Some(&totals(round)), |process| Some(format!("p{process}")));
    }
    families.late(&frame(0));
    families.check(&checked());
    families.own_process(1.0, 1);
    families.governed(&Governor::new(0.01));
    families.deep_looks(&mut DeepLooks::default());
    families.collect_errors(1, 1);
    for what in
        ["drops by reason", "latency of stages", "readers in deep looks", "waits in deep looks"]
    {
        families.not_loaded(what, "restart");
    }
    families.text().unwrap()
}

fn series(page: &str) -> Vec<&str> {
    page.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn so_many_programs_and_victims_have_series_and_the_page_stays_bounded() {
    for top in [1, TOP, TOP + 1, MOST_TOP - 1, MOST_TOP] {
        let page = worst(top);
        let count = series(&page).len();
        assert!(count <= MOST_SERIES, "{top}: {count} series");
        for (begin, by) in [
            ("rxpath_task_cpu_stolen_seconds_total{", "by=\"network\""),
            ("rxpath_cpu_stolen_seconds_total{", "by=\"hardirq\""),
        ] {
            let of = page.lines().filter(|line| line.starts_with(begin) && line.contains(by));
            assert_eq!(of.count(), top + 1, "{begin} with one for all others");
        }
    }
}

#[test]
fn the_number_of_series_is_bounded_whatever_a_host_has() {
    let page = worst(TOP);
    let lines = series(&page);
    assert!(lines.len() <= MOST_SERIES, "{} series", lines.len());
    // The worst case has all metrics: none is left out of the count.
    let name = |line: &&str| line.split(['{', ' ']).next().unwrap_or_default().to_owned();
    let there: BTreeSet<String> = lines.iter().map(name).collect();
    for metric in METRICS {
        let first = if metric.kind == MetricKind::Histogram { "_count" } else { "" };
        assert!(there.contains(&format!("{}{first}", metric.name)), "{} in {page}", metric.name);
    }
    let families = [
        "task_cpu_stolen_seconds_total",
        "cpu_stolen_seconds_total",
        "device_cpu_stolen_seconds_total",
        "flow_cpu_stolen_seconds_total",
        "dropped_packets_total",
        "poll_packets",
        "check_finding_info",
    ];
    for family in families {
        let series = format!("rxpath_series_limited_total{{family=\"rxpath_{family}\"}} ");
        let refused = page.lines().find_map(|line| line.strip_prefix(&series));
        assert!(
            refused.and_then(|count| count.parse::<f64>().ok()).is_some_and(|count| count > 0.0),
            "{series} in {page}"
        );
    }
}
