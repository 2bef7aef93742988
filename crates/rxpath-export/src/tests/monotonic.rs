//! No counter falls from one page to the next, whatever comes and goes: programs, devices, drop reasons, windows of any length.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rxpath_core::{Fact, Log2};
use rxpath_record::ledger::Place;
use rxpath_record::watch::{
    DropRow, LossRow, PathStage, PollSizes, ProbeShare, StageLatency, StageRow, TakenTime, TaskRow,
    WatchFrame, WindowTotals,
};

use crate::families::{Families, METRICS, MetricKind};

/// What a window has of each kind, by number: so much of this one.
type Amounts = BTreeMap<u32, f64>;

/// A window in which anything may have happened.
#[derive(Clone, Debug)]
struct Made {
    window_s: f64,
    is_late: bool,
    victims: Amounts,
    devices: Amounts,
    reasons: Amounts,
    /// What passed, was lost, and was read of the probes' own cost: also what no source should say.
    rates: [f64; 3],
    lost_count: u64,
}

fn amounts(most: u32) -> impl Strategy<Value = Amounts> {
    prop::collection::btree_map(0..most, 0.0f64..3.0, 0..most as usize)
}

fn rate() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 0.0f64..1e7,
        1 => -10.0f64..0.0,
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
    ]
}

fn made() -> impl Strategy<Value = Made> {
    let windows = (0.0f64..20.0, prop::bool::weighted(0.1), 0u64..5);
    let rates = [rate(), rate(), rate()];
    (windows, amounts(40), amounts(20), amounts(80), rates).prop_map(
        |((window_s, is_late, lost_count), victims, devices, reasons, rates)| Made {
            window_s,
            is_late,
            victims,
            devices,
            reasons,
            rates,
            lost_count,
        },
    )
}

fn frame(made: &Made) -> WatchFrame {
    let [passed, lost, cost] = made.rates;
    let stage = StageRow {
        stage: PathStage::Nic,
        rate_per_s: Fact::ok(passed),
        unit: "packets".into(),
        rate_source: String::new(),
        drops_pps: Fact::ok(lost),
        drops_source: String::new(),
        cpu_ratio: Fact::ok(cost),
        note: String::new(),
    };
    let task = |(process, taken): (&u32, &f64)| TaskRow {
        process: *process,
        taken_ratio: Fact::ok(*taken),
        taken_net_ratio: Fact::ok(taken / 2.0),
        irq_entry_ratio: Fact::ok(taken / 4.0),
        ..TaskRow::default()
    };
    let dropped = |(reason, pps): (&u32, &f64)| DropRow {
        reason: format!("R{reason}"),
        packets_pps: *pps,
        ..DropRow::default()
    };
    WatchFrame {
        window_s: made.window_s,
        stages: vec![stage],
        losses: vec![LossRow { place: Place::Ring, packets_pps: lost }],
        tasks: made.victims.iter().map(task).collect(),
        drops: made.reasons.iter().map(dropped).collect(),
        probe_cost: Some(ProbeShare {
            cpu_ratio: cost,
            measured_s: made.window_s,
            lost_count: made.lost_count,
            ..ProbeShare::default()
        }),
        ..WatchFrame::default()
    }
}

fn totals(made: &Made) -> WindowTotals {
    let victim = |(number, seconds): (&u32, &f64)| {
        let taken = TakenTime {
            network_s: *seconds,
            hardirq_s: seconds / 3.0,
            irq_entry_s: seconds / 4.0,
            ..TakenTime::default()
        };
        (("unit", format!("v{number}.service")), taken)
    };
    let mut counts = [0u64; 40];
    for number in made.reasons.keys() {
        counts[*number as usize % 40] += 1;
    }
    let latency = StageLatency { histogram_ns: Log2::of(&counts), sum_s: made.rates[2] };
    let polls = |number: &u32| {
        let packets_per_poll = Log2::of(&[0, u64::from(*number), 0, 0, 0, 0, 0, 1]);
        (format!("d{number}"), PollSizes { packets_per_poll, packets: 64 })
    };
    WindowTotals {
        victims: made.victims.iter().map(victim).collect(),
        devices_s: made.devices.iter().map(|(n, seconds)| (format!("d{n}"), *seconds)).collect(),
        flows_s: made.devices.iter().map(|(n, s)| (("tcp", *n as u16), *s)).collect(),
        softirqs_s: [("net_rx", made.rates[1]), ("net_tx", made.rates[2])].into(),
        deferred_s: [("napi", made.rates[1])].into(),
        irq_entry: Some(("given", made.rates[1])),
        latencies: [("socket-to-read".to_owned(), latency)].into(),
        polls: made.devices.keys().map(polls).collect(),
        lost_count: [("drops", made.lost_count)].into(),
    }
}

/// The counters of a page, those of histograms included.
fn counters(page: &str) -> BTreeMap<String, f64> {
    let is_counter = |series: &str| {
        METRICS.iter().filter(|metric| metric.kind != MetricKind::Gauge).any(|metric| {
            let rest = series.strip_prefix(metric.name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['{', '_']))
        })
    };
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.rsplit_once(' '));
    pairs
        .filter(|(series, _)| is_counter(series))
        .map(|(series, value)| (series.to_owned(), value.parse().unwrap()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_counter_falls(
        kinds in prop::collection::vec(made(), 1..6),
        order in prop::collection::vec((0usize..6, 1usize..60), 1..8),
    ) {
        let mut families = Families::new("1", 4).unwrap();
        let mut before = BTreeMap::new();
        // Each kind of window some times running: places are given away only after many.
        for (kind, times) in order {
            let made = &kinds[kind % kinds.len()];
            for _ in 0..times {
                if made.is_late {
                    families.late(&frame(made));
                } else {
                    families.frame(&frame(made), Some(&totals(made)), |process| Some(format!("p{process}")));
                }
                families.collect_errors(made.lost_count, made.lost_count);
                let now = counters(&families.text().unwrap());
                for (series, then) in &before {
                    // A series that is gone went to another one; it begins at 0 if it comes back.
                    if let Some(value) = now.get(series) {
                        prop_assert!(value >= then, "{series}: {then} to {value}");
                        prop_assert!(value.is_finite(), "{series}: {value}");
                    }
                }
                prop_assert!(now.len() <= 600, "{} series", now.len());
                before = now;
            }
        }
        prop_assert!(!before.is_empty());
    }
}
