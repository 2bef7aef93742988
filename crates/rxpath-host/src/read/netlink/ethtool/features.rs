//! Offload features: what is in force, what was asked for, what can be switched.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bitset;
use super::command::{Command, EthtoolQuestion};
use crate::HostError;
use crate::netlink::genl;
use crate::netlink::wire::Attrs;

pub(super) const HW: u16 = 2;
pub(crate) const WANTED: u16 = 3;
pub(super) const ACTIVE: u16 = 4;
pub(super) const NOCHANGE: u16 = 5;

/// One offload feature of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Feature {
    /// In force.
    pub active: bool,
    /// Asked for, and possibly waiting for another feature.
    pub wanted: bool,
    /// The device lets it be switched.
    pub changeable: bool,
}

/// Features by the kernel's names (`rx-gro`, `tx-udp-segmentation`).
pub type Features = BTreeMap<String, Feature>;

/// The kernel's names behind the short names of the `ethtool` program; a name of the kernel's is itself.
///
/// **Source** ethtool 6.1 `netlink/features.c`, `off_flag_def`.
pub fn feature_names(name: &str) -> Vec<&str> {
    match name {
        "gro" => vec!["rx-gro"],
        "gso" => vec!["tx-generic-segmentation"],
        "tso" => vec![
            "tx-tcp-segmentation",
            "tx-tcp-ecn-segmentation",
            "tx-tcp-mangleid-segmentation",
            "tx-tcp6-segmentation",
            "tx-tcp-accecn-segmentation",
        ],
        "lro" => vec!["rx-lro"],
        "rx" => vec!["rx-checksum"],
        "rxhash" => vec!["rx-hashing"],
        "ntuple" => vec!["rx-ntuple-filter"],
        "sg" => vec!["tx-scatter-gather"],
        other => vec![other],
    }
}

/// The features of a device.
pub const FEATURES: EthtoolQuestion<Features> =
    EthtoolQuestion::new("features", Command::FeaturesGet, parse_features);

/// Reads an answer to the features question.
///
/// **Source** net/ethtool/features.c `features_fill_reply`, net/ethtool/bitset.c.
pub fn parse_features(payload: &[u8]) -> Result<Features, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    let mut features = Features::new();
    for (name, on) in bitset::read(&attrs, HW)? {
        features.insert(name, Feature { changeable: on, ..Feature::default() });
    }
    for (name, on) in bitset::read(&attrs, WANTED)? {
        features.entry(name).or_default().wanted = on;
    }
    for (name, on) in bitset::read(&attrs, ACTIVE)? {
        features.entry(name).or_default().active = on;
    }
    for (name, fixed) in bitset::read(&attrs, NOCHANGE)? {
        if fixed {
            features.entry(name).or_default().changeable = false;
        }
    }
    Ok(features)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::takes_a_cut_answer;
    use crate::netlink::wire::Body;

    fn bits(names: &[(&str, bool)], no_mask: bool) -> Body {
        let set = if no_mask { Body::default().raw(bitset::NOMASK, &[]) } else { Body::default() };
        let list = names.iter().fold(Body::default(), |list, (name, on)| {
            let bit = Body::default().text(bitset::BIT_NAME, name);
            list.nest(bitset::BITS_BIT, &if *on { bit.raw(bitset::BIT_VALUE, &[]) } else { bit })
        });
        set.nest(bitset::BITS, &list)
    }

    fn sample() -> Vec<u8> {
        Body::new(&genl::header(Command::FeaturesGet as u8))
            .nest(HW, &bits(&[("rx-gro", true), ("loopback", false)], false))
            .nest(WANTED, &bits(&[("rx-gro", true)], true))
            .nest(ACTIVE, &bits(&[("rx-gro", false)], true))
            .nest(NOCHANGE, &bits(&[("rx-gro", false), ("loopback", true)], false))
            .bytes()
            .to_vec()
    }

    #[test]
    fn features_are_read_from_both_forms_of_bitset() {
        let features = parse_features(&sample()).unwrap();
        let gro = Feature { active: true, wanted: true, changeable: true };
        assert_eq!(features["rx-gro"], gro, "a listed bit without mask is set");
        assert_eq!(features["loopback"], Feature::default());
    }

    #[test]
    fn short_names_are_those_of_the_ethtool_program() {
        assert_eq!(feature_names("gro"), ["rx-gro"]);
        assert!(feature_names("tso").contains(&"tx-tcp6-segmentation"));
        assert_eq!(feature_names("rx-udp-gro-forwarding"), ["rx-udp-gro-forwarding"]);
    }

    takes_a_cut_answer!(sample(), cut => parse_features(cut));
}
