use super::*;
use proptest::prelude::*;
use rxpath_core::{Bytes, ItemCount, Nanos, Rate};

fn full() -> Parameters {
    Parameters {
        arrival_rate: Some(Rate(400_000)),
        size: Some(Bytes(32)),
        service_ns: Some(Nanos(2000)),
        stall: Some(Nanos::from_millis(10)),
        period: Some(Nanos::from_millis(100)),
        ring: Some(ItemCount(256)),
        poll_ns: Some(Nanos(2000)),
        packet_ns: Some(Nanos(1000)),
        irq_ns: Some(Nanos(5000)),
        napis: Some(ItemCount(1)),
        rx_usecs: Some(50),
        starvation: Some(Nanos::from_millis(2)),
        burst: Some(ItemCount(1000)),
        backlog_packet_ns: Some(Nanos(500)),
        flows: Some(ItemCount(8)),
        queues: Some(ItemCount(8)),
        window: Some(Bytes(65_536)),
        rtt: Some(Nanos::from_millis(1)),
        ..Parameters::default()
    }
}

fn value(parameters: &Parameters, path: &str) -> f64 {
    let all = bounds(parameters).unwrap();
    let (bound, key) = path.split_once('.').unwrap();
    all.value(bound, key).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {all:?}"))
}

fn sentence(parameters: &Parameters, bound: &str) -> String {
    let all = bounds(parameters).unwrap().bounds;
    all.into_iter().find(|(name, _)| *name == bound).unwrap().1.sentence
}

#[track_caller]
fn near(got: f64, wanted: f64) {
    assert!((got - wanted).abs() <= 1e-9 * wanted.abs(), "{got} is not {wanted}");
}

#[test]
fn every_bound_is_computed_by_hand_too() {
    let p = full();
    assert_eq!(bounds(&p).unwrap().not_computed, []);
    near(value(&p, "ring_capacity.capacity_pps"), 64.0 / 66e-6);
    near(value(&p, "ring_size.min_ring_packets"), 820.0);
    near(value(&p, "ring_size.lost_packets"), 820.0 - 256.0);
    near(value(&p, "softirq_passes.packets_per_pass_packets"), 64.0);
    near(value(&p, "softirq_passes.before_ksoftirqd_packets"), 640.0);
    near(value(&p, "rps_backlog.drop_ratio"), 0.0);
    near(value(&p, "rss.efficiency_ratio"), 0.385_025_167_107_537_8);
    near(value(&p, "socket_capacity.capacity_packets"), 256.0);
    near(value(&p, "socket_capacity.certain_packets"), 192.0);
    near(value(&p, "socket.load_ratio"), 0.8);
    near(value(&p, "stall.overflow_s"), 256.0 / 400e3);
    near(value(&p, "stall.min_queue_packets"), 4000.0);
    near(value(&p, "stall.min_rcvbuf_bytes"), (4000.0_f64 * 832.0 * 4.0 / 3.0).ceil());
    // The queue empties between stalls: 4000 arrive, 256 fit, of 40,000 per period.
    near(value(&p, "stall.drop_ratio"), 3744.0 / 40_000.0);
    near(value(&p, "livelock.softirq_cost_ns"), 8000.0);
    near(value(&p, "livelock.knee_pps"), 1e5);
    near(value(&p, "livelock.goodput_held_back_pps"), 250_000.0);
    near(value(&p, "total.goodput_pps"), 400e3);
    near(value(&p, "tcp_window.window_rate_bps"), 65_536.0 * 8.0 * 1e3);
    let lam_t = 20.0;
    near(value(&p, "coalescing.interrupts_per_s"), 400e3 * 0.6 / (1.0 + lam_t));
}

#[test]
fn overload_is_split_by_stage() {
    let p = Parameters {
        arrival_rate: Some(Rate(2_000_000)),
        duration: Some(Nanos::from_secs(1)),
        ..full()
    };
    let ring = 64.0 / 66e-6;
    near(value(&p, "ring_capacity.drop_ratio"), 1.0 - ring / 2e6);
    near(value(&p, "ring_burst.min_ring_packets"), (1000.0 * (1.0 - ring / 2e6)).ceil());
    near(value(&p, "socket.drop_ratio"), 1.0 - 5e5 / ring);
    near(value(&p, "socket.lost_packets"), ring - 5e5 - 256.0);
    near(value(&p, "total.goodput_pps"), 5e5);
    let text = sentence(&p, "total");
    assert!(text.contains("reach the application") && text.contains("the ring limits"), "{text}");
}

#[test]
fn near_the_knee_chance_is_told() {
    let p =
        Parameters { arrival_rate: Some(Rate(475_000)), rcvbuf: Some(Bytes(832 * 64)), ..full() };
    let block = crate::queue::fixed_service::limited(0.95, 64).block;
    near(value(&p, "socket.random_arrivals_drop_ratio"), block);
    let text = sentence(&p, "socket");
    assert!(text.contains("random arrivals at a load of 0.95"), "{text}");
}

#[test]
fn what_is_missing_is_named() {
    let p = Parameters { arrival_rate: Some(Rate(1)), ..Parameters::default() };
    let got = bounds(&p).unwrap();
    assert!(got.bounds.is_empty());
    let stall = got.not_computed.iter().find(|missing| missing.bound == "stall").unwrap();
    assert_eq!(stall.needs, ["stall", "truesize or size"]);
    let sized = Parameters { truesize: Some(Bytes(832)), stall: Some(Nanos(10_000_000)), ..p };
    assert!(!sentence(&sized, "stall").is_empty());
}

#[test]
fn a_file_gives_what_flags_give() {
    let text =
        "arrival_rate = \"400k\"\nrx_usecs = 50\nstall = \"10ms\"\nservice_ns = 2000\nsize = 32";
    let p = Parameters::from_toml(text).unwrap();
    let wanted = Parameters {
        arrival_rate: Some(Rate(400_000)),
        rx_usecs: Some(50),
        stall: Some(Nanos::from_millis(10)),
        service_ns: Some(Nanos(2000)),
        size: Some(Bytes(32)),
        ..Parameters::default()
    };
    assert_eq!(p, wanted);
    // What is told again carries its units.
    let told = serde_json::to_value(&p).unwrap();
    assert_eq!(
        (&told["arrival_rate_pps"], &told["stall_ns"]),
        (&400_000.into(), &10_000_000.into())
    );
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_has_the_rest() {
    let file = Parameters { same_cpu: true, share: Some(0.5), batch: Some(4.0), ..full() };
    assert_eq!(Parameters::default().over(file.clone()), file);
    let (size, share, ring) = (Some(Bytes(64)), Some(0.25), Some(ItemCount(512)));
    let flags = Parameters { size, share, ring, ..Parameters::default() };
    assert_eq!(flags.over(file.clone()), Parameters { size, share, ring, ..file });
    let flags = Parameters { same_cpu: true, ..Parameters::default() };
    assert!(flags.over(full()).same_cpu && !Parameters::default().over(full()).same_cpu);
}

#[test]
fn truesize_is_estimated_as_measured() {
    for (size, wanted) in [(32, 832), (512, 1280), (1472, 2304)] {
        let p = Parameters { size: Some(Bytes(size)), ..Parameters::default() };
        near(value(&p, "socket_capacity.truesize_bytes"), f64::from(wanted));
    }
}

#[test]
fn contradictions_and_nonsense_are_refused() {
    for (text, word) in [
        ("stall = \"2ms\"\nperiod = \"1ms\"", "`period` must be longer"),
        ("share = 0.0", "`share` must be above 0"),
        ("arrival_rate = 0", "`arrival_rate`"),
        ("size = 100\ntruesize = 50", "`truesize` must be at least"),
        ("batch = 0.5", "`batch`"),
    ] {
        let parameters = Parameters::from_toml(text).unwrap();
        let error = bounds(&parameters).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
    for (text, word) in
        [("sizee = 3", "sizee"), ("stall = -1", "negative"), ("stall = \"3\"", "unit")]
    {
        let error = Parameters::from_toml(text).unwrap_err().to_string();
        assert!(error.contains(word) && !error.contains('\n'), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn any_parameters_give_finite_numbers_in_order(
        rate in 1_u64..1_000_000_000_000, service in 1_u64..10_000_000_000, size in 0_u64..=65_507,
        rcvbuf in 0_u64..10_000_000_000, stall in 0_u64..1_000_000_000, more in 1_u64..1_000_000_000,
        packet in 1_u64..1_000_000, same in any::<bool>(),
    ) {
        let p = Parameters {
            arrival_rate: Some(Rate(rate)),
            service_ns: Some(Nanos(service)),
            size: Some(Bytes(size)),
            rcvbuf: Some(Bytes(rcvbuf)),
            stall: Some(Nanos(stall)),
            period: Some(Nanos(stall + more)),
            packet_ns: Some(Nanos(packet)),
            same_cpu: same,
            ..full()
        };
        let all = bounds(&p).unwrap();
        for (name, bound) in &all.bounds {
            for (key, value) in &bound.values {
                if key.ends_with("_ratio") && key != "load_ratio" && key != "interrupt_cpu_ratio" {
                    prop_assert!((0.0..=1.0).contains(&value.as_f64().unwrap()), "{} {} {}", name, key, value);
                }
                if let Some(value) = value.as_f64() {
                    prop_assert!(value >= 0.0, "{} {} {}", name, key, value);
                }
            }
        }
        let larger = Parameters { rcvbuf: Some(Bytes(rcvbuf * 2)), ..p.clone() };
        if all.bounds.iter().any(|(name, _)| *name == "stall") {
            let (with, without) = (value(&larger, "stall.drop_ratio"), value(&p, "stall.drop_ratio"));
            prop_assert!(with <= without + 1e-12);
        }
    }
}
