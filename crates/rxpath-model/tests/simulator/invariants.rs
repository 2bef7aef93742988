//! What holds for any machine: packets, time and queues are conserved, and more room never loses more.

use proptest::prelude::*;
use rxpath_model::sim::simulate;

use crate::{parameters, run};

/// Any machine: small enough to run often, odd enough to reach the corners.
#[expect(clippy::too_many_lines, reason = "one line per parameter")]
fn machine() -> impl Strategy<Value = Vec<String>> {
    let of = |key: &'static str, values: &'static [&'static str]| {
        prop::sample::select(values).prop_map(move |value| format!("{key}={value}"))
    };
    let load = (
        of("arrivals.kind", &["poisson", "cbr", "onoff", "mmpp"]),
        of("arrivals.rate", &["20k", "200k", "900k"]),
        of("arrivals.flows", &["1", "7", "300"]),
        of("nic.queues", &["1", "3"]),
        of("nic.cpus", &["0", "0,1", "1"]),
        of("nic.ring", &["1", "16", "256"]),
        of("nic.rx_usecs", &["0", "30"]),
        of("nic.rx_frames", &["0", "1", "12"]),
    );
    let softirq = (
        of("nic.irq_ns", &["0", "3us"]),
        of("nic.refill", &["packet", "poll"]),
        of("softirq.poll_ns", &["0", "1us"]),
        of("softirq.packet_ns", &["0", "700", "3us"]),
        of("softirq.poll", &["gated", "exhaustive"]),
        of("softirq.tick_ns", &["0", "5us"]),
        of("softirq.ksoftirqd", &["alongside", "instead"]),
        of("softirq.threaded", &["true", "false"]),
        of("rps.cpus", &["[]", "1", "0,2"]),
    );
    let rest = (
        of("rps.backlog", &["3", "1000"]),
        of("rps.packet_ns", &["0", "900"]),
        of("socket.rcvbuf", &["1000", "60000", "212992"]),
        of("socket.admission", &["new", "old"]),
        of("socket.release", &["lazy", "read", "done"]),
        of("reader.cpus", &["0", "1", "0,2"]),
        of("reader.packet_ns", &["0", "1us", "20us"]),
        of("reader.stall", &["0", "3ms"]),
        of("background.threads", &["0", "2"]),
    );
    let reader = (
        of("reader.threads", &["2", "3"]),
        of("socket.count", &["1", "2"]),
        of("reader.batch", &["1", "8"]),
        of("reader.wakeup_ns", &["0", "10us"]),
        of("reader.share", &["1", "0.4"]),
        of("reader.realtime", &["true", "false"]),
        of("scheduler.kind", &["eevdf", "o1"]),
        0_u32..1000,
    );
    (load, softirq, rest, reader).prop_map(|(a, b, c, d)| {
        let mut sets = vec![
            a.0, a.1, a.2, a.3, a.4, a.5, a.6, a.7, b.0, b.1, b.2, b.3, b.4, b.5, b.6, b.7, b.8,
            c.0, c.1, c.2, c.3, c.4, c.5, c.6, c.7, c.8, d.0, d.1, d.2, d.3, d.4, d.5, d.6,
        ];
        sets.push(format!("seed={}", d.7));
        sets.push("reader.period=10ms".into());
        sets.push("arrivals.on=1ms".into());
        sets.push("arrivals.off=2ms".into());
        sets.push(
            "arrivals.states=[{rate=\"10k\",mean=\"1ms\"},{rate=\"800k\",mean=\"300us\"}]".into(),
        );
        sets.push("duration=30ms".into());
        sets.push("warmup=5ms".into());
        sets.push("drain=20ms".into());
        // Only rings that a frame count can reach.
        if sets.contains(&"nic.ring=1".to_owned()) {
            sets.push("nic.rx_frames=1".into());
        }
        sets
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn packets_time_and_queues_are_conserved(sets in machine()) {
        let sets: Vec<String> = sets.into_iter().filter(|set| set != "nic.rx_frames=12").collect();
        let p = parameters(&sets);
        let got = simulate(&p, None).unwrap();
        // Every packet, by the ledger that real counters close.
        prop_assert_eq!(got.ledger.unaccounted_packets, Some(0), "{:?}", got.ledger);
        prop_assert!(got.ledger.notes.is_empty(), "{:?}", got.ledger.notes);
        // Every nanosecond of every CPU.
        let window = p.duration - p.warmup;
        for cpu in &got.figures.cpus {
            let sum = cpu.irq_ns + cpu.softirq_ns + cpu.ksoftirqd_ns + cpu.napi_ns + cpu.reader_ns + cpu.background_ns + cpu.idle_ns;
            prop_assert_eq!(sum, window, "{:?}", cpu);
        }
        // Little's law at every stage that has emptied: the area under the queue is the time spent in it.
        if got.ledger.in_flight_packets == 0 {
            for stage in &got.figures.stages {
                let area = stage.mean_packets * got.figures.simulated_ns as f64;
                let spent = stage.mean_ns * stage.left_packets as f64;
                prop_assert!((area - spent).abs() <= 1e-9 * area + 1.0, "{:?}", stage);
            }
        }
        prop_assert!(got.figures.stages[0].most_packets <= p.ring);
        let delivered: u64 = got.ledger.delivered_packets;
        prop_assert!(delivered > 0 || got.ledger.offered_packets < 50 || got.ledger.in_flight_packets > 0 || got.figures.loss_ratio > 0.9, "{:?}", got.ledger);
        // The same seed gives the same bytes.
        let again = simulate(&p, None).unwrap();
        prop_assert_eq!(serde_json::to_string(&got.figures).unwrap(), serde_json::to_string(&again.figures).unwrap());
        prop_assert_eq!(got.samples, again.samples);
    }

    #[test]
    fn a_larger_socket_never_loses_more(
        rate in 50_000_u32..300_000, service in 2_000_u32..12_000, places in 1_u64..200, more in 1_u64..200, seed in 0_u32..100,
        stall in 0_u32..4,
    ) {
        let lost = |places: u64| {
            let got = run(&[
                &format!("arrivals.rate={rate}"), &format!("reader.packet_ns={service}"), &format!("seed={seed}"),
                "socket.truesize=1000", &format!("socket.rcvbuf={}", places * 1000), "socket.release=done",
                "duration=50ms", &format!("reader.stall={stall}ms"), "reader.period=10ms",
            ]);
            got.figures.stages.last().unwrap().dropped_packets
        };
        prop_assert!(lost(places + more) <= lost(places));
    }
}

#[test]
fn interrupts_that_vary_come_together() {
    // Each packet's interrupt ends just before the next packet comes; when it takes longer, both are one pass.
    let base = [
        "duration=1s",
        "arrivals.kind=cbr",
        "arrivals.rate=100k",
        "nic.irq_ns=0",
        "softirq.packet_ns=0",
        "nic.cpus=[0]",
        "rps.cpus=[1]",
        "rps.ipi_ns=8us",
        "rps.packet_ns=1us",
        "reader.packet_ns=1us",
        "reader.cpus=[2]",
    ];
    let ipis = |spread: &str| run(&[&base[..], &[spread]].concat()).figures.ipis_total;
    let (steady, varied) = (ipis("rps.ipi_spread=0.0"), ipis("rps.ipi_spread=0.5"));
    assert!(steady > 99_000, "{steady}");
    assert!(varied < steady * 9 / 10, "{varied} of {steady}");
}
