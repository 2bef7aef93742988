//! Against the closed forms: what a simulation of the same queue says.

use rxpath_model::sim::outcome::Figures;
use rxpath_model::sim::simulate;
use serde_json::{Value, json};

use crate::formula::outputs as formula;
use crate::{parameters, run, stage};

/// Twenty runs of other seeds, and what `of` says about each.
fn repeated(sets: &[&str], of: impl Fn(&Figures) -> f64) -> Vec<f64> {
    let one = |seed: u32| {
        let seed = format!("seed={seed}");
        let sets: Vec<&str> = sets.iter().copied().chain([seed.as_str()]).collect();
        of(&run(&sets).figures)
    };
    (1..=20).map(one).collect()
}

/// Whether `expected` is within five standard errors of the mean; `grain` is what the machine's own steps add.
#[track_caller]
fn agrees(name: &str, expected: f64, got: &[f64], grain: f64) {
    let n = got.len() as f64;
    let mean = got.iter().sum::<f64>() / n;
    let variance = got.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let tolerance = 5.0 * (variance / n).sqrt() + grain;
    assert!(
        (mean - expected).abs() <= tolerance,
        "{name}: formula {expected}, simulated {mean} +- {tolerance}"
    );
}

fn sojourn_ns(figures: &Figures) -> f64 {
    figures.times.iter().find(|times| times.span.starts_with("from the socket")).unwrap().mean_ns
}

fn number(outputs: &Value, name: &str) -> f64 {
    outputs[name].as_f64().unwrap_or_else(|| panic!("{name}: {outputs}"))
}

/// A textbook queue: places count the packet in service, nothing else costs time.
fn textbook(rho: f64, places: u64, service: &str) -> Vec<String> {
    let rate = (rho * 100_000.0).round() as u64;
    [
        format!("arrivals.rate={rate}"),
        "reader.packet_ns=10us".into(),
        format!("reader.service={service}"),
        "socket.truesize=1000".into(),
        format!("socket.rcvbuf={}", places * 1000),
        "socket.release=done".into(),
        "duration=500ms".into(),
        "warmup=100ms".into(),
    ]
    .to_vec()
}

fn as_str(sets: &[String]) -> Vec<&str> {
    sets.iter().map(String::as_str).collect()
}

#[test]
fn bounded_queues_block_as_the_formulas_say() {
    for (kind, service) in [("M/M/1/K", "exponential"), ("M/D/1/K", "fixed")] {
        for (rho, places) in [(0.8, 16), (1.0, 8), (1.2, 16), (0.95, 12)] {
            let sets = textbook(rho, places, service);
            let wanted = formula(kind, &json!({ "rho": rho, "K": places }));
            let name = format!("{kind} {rho} {places}");
            agrees(
                &name,
                number(&wanted, "block"),
                &repeated(&as_str(&sets), |f| f.loss_ratio),
                0.0,
            );
            let idle = |f: &Figures| f.cpus[1].idle_ns as f64 / 0.4e9;
            agrees(&name, number(&wanted, "idle"), &repeated(&as_str(&sets), idle), 0.0);
            if kind == "M/M/1/K" {
                let wanted = number(&wanted, "mean_sojourn_over_service");
                agrees(&name, wanted, &repeated(&as_str(&sets), |f| sojourn_ns(f) / 1e4), 1e-3);
            }
        }
    }
}

#[test]
fn unlimited_queues_wait_as_the_formulas_say() {
    let sets = textbook(0.8, 1_000_000, "fixed");
    let wanted = formula("M/D/1", &json!({ "service_us": 10.0, "rho": 0.8 }));
    let wait = |f: &Figures| (sojourn_ns(f) - 1e4) / 1e3;
    // Histograms keep three digits of a sojourn of 30 us.
    agrees("M/D/1", number(&wanted, "mean_wait_us"), &repeated(&as_str(&sets), wait), 0.03);
    let mut two = textbook(1.6, 1_000_000, "exponential");
    two.push("reader.threads=2".into());
    two.push("reader.cpus=1,2".into());
    let wanted = formula("M/M/c", &json!({ "c": 2, "a": 1.6 }));
    let wait = |f: &Figures| sojourn_ns(f) / 1e4 - 1.0;
    agrees(
        "M/M/2",
        number(&wanted, "mean_wait_over_service"),
        &repeated(&as_str(&two), wait),
        0.003,
    );
}

#[test]
fn a_stalling_reader_drops_to_the_packet() {
    for (lam, mu, places, stall_ms, period_ms) in [
        (100_000, 200_000, 277, 4.0, 20.0),
        (100_000, 200_000, 277, 2.0, 20.0),
        (100_000, 125_000, 1000, 12.0, 50.0),
        (100_000, 125_000, 277, 10.0, 12.5),
    ] {
        let inputs = json!({ "lam": lam, "mu": mu, "N": places, "stall_s": stall_ms / 1e3, "period_s": period_ms / 1e3 });
        let wanted = formula("D/D/1/N", &inputs);
        let dropped = |periods: f64| {
            let sets = [
                "arrivals.kind=cbr".into(),
                "arrivals.phase=0.5".into(),
                format!("arrivals.rate={lam}"),
                format!("reader.packet_ns={}", 1_000_000_000 / mu),
                "socket.truesize=1000".into(),
                format!("socket.rcvbuf={}", places * 1000),
                "socket.release=done".into(),
                format!("reader.stall={stall_ms}ms"),
                format!("reader.period={period_ms}ms"),
                format!("duration={}us", period_ms * periods * 1e3),
            ];
            let got = simulate(&parameters(&sets), None).unwrap();
            (stage(&got.figures, "socket").dropped_packets, got.ledger.offered_packets)
        };
        let (before, all) = (dropped(10.0), dropped(50.0));
        let counted = |name: &str| wanted[name].as_u64().unwrap();
        assert_eq!(
            (all.0 - before.0, all.1 - before.1),
            (counted("drops_discrete"), counted("arrivals")),
            "{inputs}"
        );
    }
}

#[test]
fn coalescing_holds_packets_as_the_formulas_say() {
    for (lam, usecs) in [(10_000, 50), (100_000, 50), (100_000, 20)] {
        let rate = format!("arrivals.rate={lam}");
        let timer = format!("nic.rx_usecs={usecs}");
        let sets = [
            rate.as_str(),
            &timer,
            "softirq.packet_ns=2us",
            "reader.packet_ns=0",
            "duration=500ms",
            "nic.ring=65536",
        ];
        let wanted = formula(
            "M/D/1 with setup",
            &json!({ "lam": lam, "service_us": 2.0, "rx_usecs": usecs }),
        );
        let wait = |f: &Figures| (stage(f, "ring").mean_ns - 2e3) / 1e3;
        agrees("wait", number(&wanted, "mean_wait_us"), &repeated(&sets, wait), 0.0);
        let irqs = |f: &Figures| f.interrupts_total as f64 / 0.5;
        agrees("interrupts", number(&wanted, "interrupts_per_s"), &repeated(&sets, irqs), 1.0);
    }
    for (lam, frames) in [(100_000, 8), (1_000_000, 64), (20_000, 8)] {
        let rate = format!("arrivals.rate={lam}");
        let many = format!("nic.rx_frames={frames}");
        let sets = [
            rate.as_str(),
            &many,
            "nic.rx_usecs=50",
            // A full weight would be polled again, for nothing.
            "softirq.weight=4096",
            "reader.packet_ns=0",
            "duration=300ms",
            "nic.ring=65536",
        ];
        let wanted = formula(
            "interrupt coalescing usecs T or frames F",
            &json!({ "lam": lam, "rx_usecs": 50.0, "rx_frames": frames }),
        );
        agrees(
            "delay",
            number(&wanted, "mean_delay_us"),
            &repeated(&sets, |f| stage(f, "ring").mean_ns / 1e3),
            0.0,
        );
        agrees(
            "batch",
            number(&wanted, "mean_batch"),
            &repeated(&sets, |f| f.batch_mean_packets),
            1e-3,
        );
    }
}

#[test]
fn gated_polls_batch_as_the_chain_says() {
    for lam in [100_000, 600_000] {
        let inputs = json!({ "lam": lam, "c_poll_us": 1.0, "c_pkt_us": 1.0, "budget": 64 });
        let wanted = formula("gated limited poll loop", &inputs);
        let rate = format!("arrivals.rate={lam}");
        let sets = [
            rate.as_str(),
            "softirq.poll=gated",
            "softirq.poll_ns=1us",
            "softirq.packet_ns=1us",
            "reader.packet_ns=0",
            "duration=500ms",
            "nic.ring=65536",
            "softirq.restarts=1000000",
            "softirq.hz=24",
        ];
        agrees(
            "batch",
            number(&wanted, "mean_batch"),
            &repeated(&sets, |f| f.batch_mean_packets),
            1e-3,
        );
    }
}

#[test]
fn a_ring_without_refill_is_a_bucket_of_tokens() {
    // The interrupt never comes within the time: what does not fit is lost.
    let wanted = formula("Poisson arrivals (mean a=R tau)", &json!({ "mean": 300, "D": 256 }));
    let lost = |seed: u32| {
        let seed = format!("seed={seed}");
        run(&[
            "arrivals.rate=300k",
            "duration=1ms",
            "nic.rx_usecs=1000000",
            "nic.ring=256",
            "reader.packet_ns=0",
            "drain=2s",
            "sample=1ms",
            &seed,
        ])
        .figures
        .stages[0]
            .dropped_packets as f64
    };
    let got: Vec<f64> = (0..400).map(lost).collect();
    agrees("tokens", number(&wanted, "expected_lost"), &got, 0.0);
}

#[test]
fn full_rings_are_polled_pass_by_pass() {
    // All packets are there when the interrupt comes.
    let sets = [
        "arrivals.kind=cbr",
        "arrivals.phase=0.5",
        "arrivals.rate=100M",
        "duration=10us",
        "nic.rx_usecs=1000",
        "nic.ring=1024",
        "softirq.poll_ns=1us",
        "softirq.packet_ns=100",
        "reader.packet_ns=0",
        "sample=1us",
    ];
    let wanted = formula(
        "NAPIs x queued packets",
        &json!({ "rings": [1000], "c_poll_us": 1.0, "c_pkt_us": 0.1 }),
    );
    let got = run(&sets).figures;
    let offered = got.stages[0].left_packets;
    assert_eq!(offered, 1000);
    assert_eq!(
        (got.passes_total, got.polls_total, got.time_squeeze_total),
        (
            wanted["passes"].as_u64().unwrap(),
            wanted["polls"].as_u64().unwrap(),
            wanted["time_squeeze"].as_u64().unwrap()
        )
    );
    assert_eq!(got.ksoftirqd_wakeups_total, 1);
}

#[test]
fn the_livelock_line_and_its_two_remedies() {
    let base = [
        "softirq.packet_ns=1us",
        "reader.packet_ns=4us",
        "reader.cpus=0",
        "duration=500ms",
        "warmup=100ms",
    ];
    let goodput = |more: &[&str]| {
        let sets: Vec<&str> = base.iter().copied().chain(more.iter().copied()).collect();
        repeated(&sets, |f| f.delivered_pps)
    };
    // The line knows no ksoftirqd: softirqs that never hand over.
    let line = ["softirq.restarts=1000000", "softirq.hz=24"];
    for (lam, wanted) in [("100k", 100e3), ("300k", 175e3), ("600k", 100e3)] {
        let rate = format!("arrivals.rate={lam}");
        agrees(lam, wanted, &goodput(&[&rate, line[0], line[1]]), 0.0);
    }
    // Beyond 1/c_s polling never ends: ksoftirqd gets its fair half, by a kernel that holds interrupts' softirqs back,
    // and by a NAPI thread.
    for remedy in ["softirq.ksoftirqd=instead", "softirq.threaded=true"] {
        // The buffer holds what comes in a slice of ksoftirqd. A slice of 4 ms more or less in 400 ms is the grain.
        agrees(
            remedy,
            125e3,
            &goodput(&["arrivals.rate=1500k", "socket.rcvbuf=64MiB", remedy]),
            2e3,
        );
    }
}

#[test]
fn shares_follow_weights_and_arrays() {
    for (n, nice) in [(1, 0), (4, -10), (10, -15)] {
        let wanted = formula("CPU share of the receiver", &json!({ "n": n, "nice": nice }));
        for (scheduler, name) in [("eevdf", "share_fair"), ("o1", "share_o1")] {
            let sets = [
                format!("background.threads={n}"),
                format!("reader.nice={nice}"),
                format!("scheduler.kind={scheduler}"),
                "scheduler.interactive=false".into(),
                "arrivals.rate=4k".into(),
                "reader.packet_ns=1ms".into(),
                "duration=60s".into(),
                "warmup=10s".into(),
                "drain=0".into(),
            ];
            let got = simulate(&parameters(&sets), None).unwrap().figures;
            let share = got.cpus[1].reader_ns as f64 / 50e9;
            // One cycle of the expired array more or less in 50 s.
            let grain = if scheduler == "o1" { 0.02 } else { 0.002 };
            agrees(
                &format!("{scheduler} {n} {nice}"),
                number(&wanted, name),
                &[share, share],
                grain,
            );
        }
    }
}

#[test]
fn an_unread_socket_holds_what_the_rules_say() {
    for (size, truesize) in [(32, 832), (512, 1280), (1472, 2304)] {
        let wanted = formula(
            "UDP socket queue capacity",
            &json!({ "sk_rcvbuf": 212_992, "payload": size, "truesize": truesize }),
        );
        for (rule, name) in [("new", "n_new"), ("old", "n_old")] {
            let got = run(&[
                &format!("arrivals.size={size}"),
                &format!("socket.admission={rule}"),
                "arrivals.rate=1M",
                "duration=10ms",
                "reader.packet_ns=1us",
                "reader.stall=1s",
                "reader.period=2s",
            ]);
            assert_eq!(
                stage(&got.figures, "socket").most_packets,
                wanted[name].as_u64().unwrap(),
                "{size} {rule}"
            );
        }
    }
}
