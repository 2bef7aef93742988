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
        let body = request(group, Body::new(&[1, 1, 0, 0]), &asked).unwrap();
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
        let error = request(Group::Rings, Body::default(), &asked).unwrap_err().to_string();
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

proptest! {
    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for group in Group::all() {
            let _ = parse(group, &bytes);
            let _ = parse_limits(group, &bytes);
        }
    }
}
