use super::fit::{Stolen, alike, interrupts, mean, rough_mean, softirq};
use super::*;
use proptest::prelude::*;

fn loads(packet_ns: f64, interrupt_ns: f64, noise: f64) -> Vec<Stolen> {
    let each = |(i, (pps, per_packet)): (usize, (f64, f64))| {
        let interrupts = pps * per_packet;
        let wave = [1.0, -1.0, 0.5, -0.5, 0.8, -0.8][i % 6] * noise;
        let stolen_ratio = 0.001 + (pps * packet_ns + interrupts * interrupt_ns) / 1e9 + wave;
        Stolen { stolen_ratio, packets_pps: pps, interrupts_per_s: interrupts }
    };
    [(0.0, 0.0), (10e3, 1.0), (20e3, 0.95), (40e3, 0.8), (60e3, 0.6), (80e3, 0.4)]
        .into_iter()
        .enumerate()
        .map(each)
        .collect()
}

#[test]
fn costs_are_found_again() {
    let got = softirq(&loads(864.0, 7980.0, 0.0)).unwrap();
    assert!((got.packet.value - 864.0).abs() < 1e-3, "{got:?}");
    assert!((got.interrupt.value - 7980.0).abs() < 1e-3, "{got:?}");
    // What is gone without any load is no part of the costs, and explained.
    assert!(got.unexplained_ratio < 1e-6, "{got:?}");
}

#[test]
fn a_known_packet_leaves_the_rest_to_the_interrupts() {
    let packet = Estimate::exact(864.0, "ns", "tracepoints");
    let got = interrupts(&loads(864.0, 7980.0, 0.0), packet.clone()).unwrap();
    assert!((got.interrupt.value - 7980.0).abs() < 1e-3, "{got:?}");
    // Even where packets and interrupts moved together.
    let mut together = loads(864.0, 7980.0, 0.0);
    for load in &mut together {
        let more = load.packets_pps - load.interrupts_per_s;
        load.stolen_ratio += more * 7980.0 / 1e9;
        load.interrupts_per_s = load.packets_pps;
    }
    let got = interrupts(&together, packet.clone()).unwrap();
    assert!((got.interrupt.value - 7980.0).abs() < 1e-3, "{got:?}");
    assert!(interrupts(&loads(100.0, 50.0, 0.0), packet).is_err(), "a negative interrupt");
}

#[test]
fn noise_and_missing_variety_are_refused_with_the_reason() {
    let error = softirq(&loads(864.0, 7980.0, 0.05)).unwrap_err().to_string();
    assert!(error.contains("is unexplained"), "{error}");
    let mut together = loads(864.0, 7980.0, 0.0);
    for load in &mut together {
        load.interrupts_per_s = load.packets_pps;
    }
    assert!(softirq(&together).unwrap_err().to_string().contains("changed together"));
    assert!(softirq(&together[..4]).unwrap_err().to_string().contains("5 are needed"));
    assert!(mean(&[1.0, 9.0], "ns", "x").unwrap_err().to_string().contains("an uncertainty of"));
    assert!(mean(&[], "ns", "x").is_err());
}

#[test]
fn an_interval_holds_the_mean_and_narrows_with_repetition() {
    let few = mean(&[99.0, 101.0, 100.0], "ns", "x").unwrap();
    let many = mean(&[99.0, 101.0, 100.0, 99.0, 101.0, 100.0], "ns", "x").unwrap();
    let [low, high] = few.interval.unwrap();
    assert!(low < 100.0 && high > 100.0 && many.half_width() < few.half_width());
    // Twelve values, eleven degrees of freedom: Student's quantile is 2.201 there, not that of a normal distribution.
    let twelve = mean(
        &[99.0, 101.0, 99.0, 101.0, 99.0, 101.0, 99.0, 101.0, 99.0, 101.0, 99.0, 101.0],
        "ns",
        "x",
    );
    let deviation = (12.0_f64 / 11.0).sqrt();
    assert!((twelve.unwrap().half_width() - 2.201 * deviation / 12.0_f64.sqrt()).abs() < 1e-3);
}

#[test]
fn one_measurement_has_no_interval_and_is_not_enough_where_one_is_needed() {
    assert_eq!(rough_mean(&[100.0], "ns", "x").unwrap().interval, None);
    let told = mean(&[100.0], "ns", "x").unwrap_err().to_string();
    assert!(told.contains("one measurement (100 ns) shows no uncertainty"), "{told}");
}

#[test]
fn what_scatters_alike_is_known_better_together() {
    let (one, other) = ([90.0, 110.0, 100.0], [1800.0, 2200.0, 2000.0]);
    let [alone, beside] = alike([(&one, "x"), (&other, "y")], "ns").unwrap();
    let half = |estimate: &Estimate| estimate.half_width() / estimate.value;
    // Ten of a hundred, three times each, four degrees of freedom: 2.776 * 0.1 / sqrt(3).
    assert!((half(&alone) - 0.1603).abs() < 1e-3 && (half(&beside) - 0.1603).abs() < 1e-3);
    assert!(half(&alone) < half(&mean(&one, "ns", "x").unwrap()));
    assert!(alike([(&[1.0, 9.0], "x"), (&[1.0, 9.0], "y")], "ns").is_err());
    assert!(alike([(&one, "x"), (&[], "y")], "ns").is_err());
}

fn made() -> Calibration {
    Calibration {
        schema: SCHEMA.into(),
        made: "2026-11-21T00:00:00Z".into(),
        host: CalibratedHost {
            kernel: "6.18.0".into(),
            cpu_model: "x".into(),
            cpus_count: 2,
            hypervisor: None,
        },
        conditions: Conditions::default(),
        parameters: BTreeMap::from([
            ("reader.packet_ns".to_owned(), Estimate::exact(612.4, "ns", "x")),
            ("clock_ns".to_owned(), Estimate::exact(25.0, "ns", "x")),
        ]),
        caveats: Vec::new(),
    }
}

#[test]
fn a_file_is_read_back_and_applied() {
    let calibration = made();
    let text = serde_json::to_string(&calibration).unwrap();
    assert_eq!(Calibration::from_json(&text).unwrap(), calibration);
    let mut values = Values::default();
    calibration.apply(&mut values).unwrap();
    assert_eq!(values.to_json()["reader.packet_ns"], 612);
    assert_eq!(calibration.differs_from(&calibration.host), None);
    let other =
        CalibratedHost { kernel: "6.19.0".into(), cpus_count: 4, ..calibration.host.clone() };
    let told = calibration.differs_from(&other).unwrap();
    assert!(told.contains("kernel is 6.18.0") && told.contains("2 CPUs, this 4"), "{told}");
}

#[test]
fn values_that_cannot_be_are_refused() {
    for (from, to, words) in [
        ("612.4", "-1.0", "must be a number of 0 or more"),
        ("612.4", "1e300", "must be"),
        ("calibration/1.0", "calibration/2.0", "its schema is"),
        ("\"made\"", "\"mode\"", "not a calibration file"),
    ] {
        let text = serde_json::to_string(&made()).unwrap().replace(from, to);
        let error = Calibration::from_json(&text).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{to}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,80}") {
        drop(Calibration::from_json(&text));
    }
}
