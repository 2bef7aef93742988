//! Against the published figures, as far as the model can have them.

use rxpath_model::sim::outcome::Figures;
use rxpath_model::sim::{Parameters, Values, bundled, simulate};

use crate::stage;

fn bundle(name: &str, sets: &[&str]) -> Figures {
    let mut values = Values::from_toml(bundled::find(name).unwrap()).unwrap();
    for set in sets {
        values.set(set).unwrap();
    }
    simulate(&Parameters::new(&values).unwrap(), None).unwrap().figures
}

#[test]
fn the_published_livelock_comes_out() {
    let got = bundle("livelock-400", &[]);
    // 670,612 of 862,066; the costs were chosen on the line of the published figures, the loss follows.
    assert!((got.loss_ratio - 0.777_912_6).abs() < 0.002, "{}", got.loss_ratio);
    assert_eq!(stage(&got, "ring").dropped_packets, 0);
    assert!(
        (got.delivered_pps * 1470.0 * 8.0 / 88.1e6 - 1.0).abs() < 0.03,
        "{}",
        got.delivered_pps
    );
    let quiet = bundle("livelock-200", &[]);
    assert!(quiet.loss_ratio <= 0.0, "{}", quiet.loss_ratio);
    assert!(stage(&quiet, "socket").mean_packets < 1.0);
    // Ten compile jobs: the sleeper's bonus carries it, a fair share does not.
    let loaded = bundle("livelock-200-load", &[]);
    assert!(loaded.loss_ratio <= 0.0, "{}", loaded.loss_ratio);
    let fair = bundle("livelock-200-load", &["scheduler.kind=eevdf"]);
    assert!(fair.loss_ratio > 0.3, "{}", fair.loss_ratio);
}

#[test]
fn the_published_ring_runs_out_and_tcp_never_loses_at_the_socket() {
    let got = bundle("tcp-ring", &[]);
    let (ring, socket) = (stage(&got, "ring"), stage(&got, "socket"));
    assert_eq!(ring.most_packets, 384);
    assert!(ring.dropped_packets > 0 && got.resent_packets > 0);
    assert_eq!(socket.dropped_packets, 0);
    let wide = bundle("tcp-ring", &["nic.ring=16384"]);
    assert_eq!(stage(&wide, "ring").dropped_packets, 0);
}

#[test]
fn load_takes_throughput_and_nice_wins_it_back() {
    let goodput = |load: u32, nice: i32| {
        bundle("tcp-nice", &[&format!("background.threads={load}"), &format!("reader.nice={nice}")])
            .delivered_pps
    };
    let table = [0, -10, -15].map(|nice| [0, 1, 4, 10].map(|load| goodput(load, nice)));
    for row in &table {
        assert!(row.windows(2).all(|pair| pair[0] >= pair[1] * 0.999), "{table:?}");
    }
    for load in 0..4 {
        assert!((1..3).all(|nice| table[nice][load] >= table[nice - 1][load] * 0.999), "{table:?}");
    }
    assert!(table[0][3] < table[0][0] * 0.5, "{table:?}");
}
