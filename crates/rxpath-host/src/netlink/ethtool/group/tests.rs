//! Tests of this module.

use super::*;
use proptest::prelude::*;

#[test]
fn what_is_asked_for_is_what_would_be_read() {
    for (group, text) in [
        (Group::Rings, "rx=4096 tx=512 tcp-data-split=on tx-push=off"),
        (Group::Channels, "combined=4"),
        (Group::Coalesce, "rx-usecs=50 adaptive-rx=off"),
        (Group::Pause, "autoneg=off rx=on"),
        (Group::Eee, "enabled=off"),
    ] {
        let asked: Pairs = text.parse().unwrap();
        let body = wish(group, Body::new(&[1, 1, 0, 0]), &asked).unwrap();
        assert_eq!(parse(group, body.bytes()).unwrap(), asked);
    }
}

#[test]
fn wrong_names_and_values_are_refused_before_they_are_sent() {
    for (text, words) in [
        ("rx=many", "a number"),
        ("rx=-1", "a number"),
        ("rx=4294967296", "4294967295"),
        ("ry=1", "no value is called ry; there are rx, rx-mini"),
        ("tcp-data-split=maybe", "unknown or off or on"),
        ("tx-push=1", "on or off"),
    ] {
        let asked: Pairs = text.parse().unwrap();
        let error = wish(Group::Rings, Body::default(), &asked).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn limits_stand_in_the_same_answer() {
    let body = Body::new(&[1, 1, 0, 0]).u32(2, 4096).u32(6, 256);
    assert_eq!(parse_limits(Group::Rings, body.bytes()).unwrap().to_string(), "rx=4096");
    assert_eq!(parse(Group::Rings, body.bytes()).unwrap().to_string(), "rx=256");
}

#[test]
fn a_feature_that_waits_is_wanted() {
    assert_eq!(wanted_word(feature_word(false, true)), "on");
    assert_eq!(wanted_word(feature_word(true, false)), "off");
    assert_eq!(wanted_word("on"), "on");
}

/// Positions of the names in the header's enumerations are the numbers on the wire.
#[test]
fn numbers_are_those_of_the_installed_header() {
    let header = std::fs::read_to_string("/usr/include/linux/ethtool_netlink.h").unwrap();
    let rename = |set: &str, name: &str| {
        let long = match name {
            "combined" | "other" => format!("{name}-count"),
            "rx" | "tx" if set == "CHANNELS" => format!("{name}-count"),
            "enabled" | "tx-lpi-timer" => name.to_owned(),
            "tx-lpi" => "tx-lpi-enabled".to_owned(),
            "sample-interval" => "rate-sample-interval".to_owned(),
            "adaptive-rx" | "adaptive-tx" => format!("use-{name}"),
            "cqe-mode-rx" | "cqe-mode-tx" => format!("use-{name}"),
            name if name.contains("-frames") && set == "COALESCE" && !name.contains("aggr") => {
                name.replace("-frames", "-max-frames")
            }
            name => name.to_owned(),
        };
        format!("ETHTOOL_A_{set}_{}", long.replace('-', "_").to_uppercase())
    };
    let mut held = 0;
    for (set, group) in [
        ("RINGS", Group::Rings),
        ("CHANNELS", Group::Channels),
        ("COALESCE", Group::Coalesce),
        ("PAUSE", Group::Pause),
        ("EEE", Group::Eee),
    ] {
        let body = header.split_once(&format!("ETHTOOL_A_{set}_UNSPEC,")).unwrap().1;
        let body = body.split_once('}').unwrap().0;
        let items: Vec<&str> = body
            .split(',')
            .map(|item| item.rsplit("*/").next().unwrap().trim())
            .filter(|item| !item.is_empty())
            .collect();
        for value in table(group).unwrap().2 {
            let name = rename(set, value.name);
            // Headers of an older kernel lack the youngest; those that they have must agree.
            let Some(at) = items.iter().position(|item| *item == name) else {
                assert!(value.attribute > 13, "{name} is not in the header");
                continue;
            };
            assert_eq!(at + 1, usize::from(value.attribute), "{name}");
            held += 1;
        }
    }
    assert!(held >= 40, "{held} numbers held");
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for group in Group::all() {
            let _ = parse(group, &bytes);
            let _ = parse_limits(group, &bytes);
        }
    }
}
