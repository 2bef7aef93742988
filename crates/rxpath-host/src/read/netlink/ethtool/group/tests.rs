//! Tests of this module.

use super::*;
use crate::netlink::wire::Body;
use proptest::prelude::*;

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
        for group in Group::ALL {
            let _ = parse(group, &bytes);
            let _ = parse_limits(group, &bytes);
        }
    }
}
