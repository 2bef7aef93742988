use proptest::prelude::*;

use super::*;
use crate::sim::values::ParameterError;

/// What must be there.
const BASE: &str = "[arrivals]\nrate = \"100k\"\n[reader]\npacket_ns = \"2us\"\n";

fn with(sets: &[&str]) -> Result<Parameters, ParameterError> {
    let mut values = Values::from_toml(BASE)?;
    for set in sets {
        values.set(set)?;
    }
    Parameters::new(&values)
}

#[test]
fn what_is_missing_is_named_with_its_unit() {
    for (text, words) in [
        ("", "`arrivals.rate` is missing: Mean rate"),
        ("[arrivals]\nrate = 5", "`reader.packet_ns` is missing: CPU time per packet"),
        ("[arrivals]\nkind = \"onoff\"\nrate = 5", "`arrivals.on` is missing"),
        ("[arrivals]\nkind = \"mmpp\"", "`arrivals.states` is missing"),
        ("[arrivals]\nkind = \"trace\"", "`arrivals.file` is missing"),
    ] {
        let error = Parameters::from_toml(text).unwrap_err().to_string();
        assert!(error.contains(words) && error.ends_with(')'), "{text}: {error}");
    }
    let error = with(&["reader.stall=1ms"]).unwrap_err().to_string();
    assert!(error.contains("`reader.period` is missing") && error.contains("time"), "{error}");
}

#[test]
fn what_is_out_of_range_or_against_another_is_told_in_one_line() {
    for (set, words) in [
        ("arrivals.rate=0", "`arrivals.rate` is 0, and must be 1 to 1000000000 (packets/s)"),
        ("arrivals.rate=5G", "must be 1 to 1000000000 (packets/s)"),
        ("duration=-1s", "`duration` cannot be read"),
        ("duration=-1", "it is negative"),
        ("duration=100001s", "`duration` is 100001000000000, and must be 1ns to 100000s"),
        ("nic.ring=0", "`nic.ring` is 0, and must be 1 to 1048576 (descriptors)"),
        ("reader.share=0", "`reader.share` is 0, and must be 0.001 to 1 (ratio)"),
        ("reader.nice=-21", "from -20 to 19"),
        ("nic.refill=often", "one of packet, poll"),
        ("softirq.threaded=1", "true or false"),
        ("nic.cpus=99", "CPU numbers from 0 to 63"),
        ("nic.cpus=[]", "must name at least one CPU"),
        ("warmup=1s", "`warmup` must be shorter than `duration`"),
        ("socket.count=3", "`reader.threads` must be at least `socket.count` (3)"),
        ("socket.truesize=1", "must be at least `arrivals.size`"),
        ("nic.rx_frames=300", "at most `nic.ring` (256)"),
        ("sample=1us", "more than 20000 samples"),
        ("nic.rings=3", "`nic.rings` is not a parameter"),
        ("ring=3", "did you mean `nic.ring`?"),
        ("nic.ring", "has no value; write key=value"),
    ] {
        let error = with(&[set]).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{set}: {error}");
    }
    let error = with(&["reader.stall=2ms", "reader.period=2ms"]).unwrap_err().to_string();
    assert!(error.contains("must be longer than `reader.stall`"), "{error}");
    let window = ["arrivals.kind=tcp", "arrivals.window=1MiB"];
    let error = with(&window).unwrap_err().to_string();
    assert!(error.contains("TCP never sends more than fits"), "{error}");
}

#[test]
fn values_are_read_as_people_type_them() {
    let p =
        with(&["duration=2s", "nic.cpus=2-3", "reader.stall=1ms", "reader.period=0.02s"]).unwrap();
    assert_eq!((p.duration, p.stall, p.period), (2_000_000_000, 1_000_000, 20_000_000));
    assert_eq!((p.nic_cpus.as_slice(), p.cpus()), ([2, 3].as_slice(), 4));
    assert_eq!(p.places(), 256);
    let told = p.values.to_json();
    assert_eq!(told["duration_ns"], 2_000_000_000_u64);
    assert_eq!(told["arrivals.rate_pps"], 100_000);
    assert_eq!(told["reader.packet_ns"], 2000);
}

#[test]
fn a_day_of_simulated_time_takes_no_more_memory_than_a_second() {
    let p = with(&["duration=99999s", "arrivals.rate=1"]).unwrap();
    assert!(p.duration / p.sample <= 1000, "{} ns from sample to sample", p.sample);
    let error = with(&["duration=99999s", "sample=1s"]).unwrap_err().to_string();
    assert!(error.contains("more than 20000 samples"), "{error}");
}

#[test]
fn every_default_is_in_its_own_range() {
    let values = Values::default();
    for key in KEYS {
        assert_eq!(
            values.value::<serde_json::Value>(key.name).is_some(),
            key.default.is_some(),
            "{}",
            key.name
        );
    }
}

#[test]
fn bundled_sets_are_whole() {
    for (name, text) in crate::sim::bundled::ALL {
        let p = Parameters::from_toml(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(p.name, *name);
        assert!(p.question.ends_with('?'), "{name}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "[a-z.\\[\\]=\" 0-9\n{}-]{0,80}", set in "\\PC{0,40}") {
        drop(Parameters::from_toml(&text));
        drop(with(&[&set]));
    }

    #[test]
    fn any_value_of_any_key_is_taken_or_refused(key in 0..KEYS.len(), value in "(-?[0-9]{1,20}|\"[a-z0-9]{0,8}\"|true|\\[[0-9, ]{0,8}\\])(k|ms|us|KiB)?") {
        let set = format!("{}={value}", KEYS[key].name);
        if let Err(error) = with(&[&set]) {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }
}
