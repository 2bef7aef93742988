//! ethtool over generic netlink: features, channels and rings of a device.
//!
//! Numbers are those of `linux/ethtool_netlink.h`, held against the installed header by a test: a wrong
//! number is a wrong order to hardware (26 and 27 start cable tests, which take the link down).

use std::collections::BTreeMap;

use super::socket::Netlink;
use super::wire::{Attrs, Body};
use crate::HostError;

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const GENL_HEADER: usize = 4;

/// The commands that are sent. There is no way to send another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Command {
    FeaturesGet = 11,
    FeaturesSet = 12,
    RingsGet = 15,
    ChannelsGet = 17,
}

const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;
const FEATURES_HW: u16 = 2;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const FEATURES_NOCHANGE: u16 = 5;
const BITSET_NOMASK: u16 = 1;
const BITSET_BITS: u16 = 3;
const BITSET_BITS_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// One offload feature of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// A pair of how many there are and how many there can be; `None` where the driver gives none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Now.
    pub now: Option<u32>,
    /// At most.
    pub max: Option<u32>,
}

/// Queues of a device, by what they serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// Receive only.
    pub rx: Amount,
    /// Transmit only.
    pub tx: Amount,
    /// Both.
    pub combined: Amount,
}

/// Descriptors of each ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    /// Receive.
    pub rx: Amount,
    /// Transmit.
    pub tx: Amount,
}

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

impl Netlink {
    fn ethtool_family(&mut self) -> Result<u16, HostError> {
        let body = Body::new(&[CTRL_CMD_GETFAMILY, 1, 0, 0]).text(CTRL_ATTR_FAMILY_NAME, "ethtool");
        let op = "find the ethtool netlink family";
        let absent = || HostError::Unsupported {
            what: op.into(),
            needs: "Linux 5.6 with CONFIG_ETHTOOL_NETLINK".into(),
        };
        let replies = match self.get(op, GENL_ID_CTRL, body.bytes()) {
            Err(HostError::Kernel { errno: libc::ENOENT, .. }) => return Err(absent()),
            other => other?,
        };
        let reply = replies.first().ok_or_else(absent)?;
        Attrs::after(&reply.payload, GENL_HEADER)?.u16(CTRL_ATTR_FAMILY_ID).ok_or_else(absent)
    }

    fn ethtool_get(
        &mut self,
        what: &str,
        command: Command,
        dev: &str,
    ) -> Result<Vec<u8>, HostError> {
        let family = self.ethtool_family()?;
        let body = device(command, dev);
        let op = format!("read {what} of {dev}");
        let replies = self.get(&op, family, body.bytes())?;
        let reply = replies.into_iter().find(|reply| reply.kind == family);
        reply.map(|reply| reply.payload).ok_or_else(|| HostError::kernel(op, libc::ENODATA))
    }

    /// The features of a device. On a [`Netlink::generic`] socket.
    pub fn features(&mut self, dev: &str) -> Result<Features, HostError> {
        parse_features(&self.ethtool_get("features", Command::FeaturesGet, dev)?)
    }

    /// Asks for features by the kernel's names; read them back to see what came of it.
    ///
    /// **Caveat** success is not a change: a feature that another one needs stays off.
    pub fn want_features(&mut self, dev: &str, wanted: &[(&str, bool)]) -> Result<(), HostError> {
        let mut bits = Body::default();
        for (name, on) in wanted {
            let bit = Body::default().text(BIT_NAME, name);
            let bit = if *on { bit.raw(BIT_VALUE, &[]) } else { bit };
            bits = bits.nest(BITSET_BITS_BIT, &bit);
        }
        let set = Body::default().nest(BITSET_BITS, &bits);
        let body = device(Command::FeaturesSet, dev).nest(FEATURES_WANTED, &set);
        let family = self.ethtool_family()?;
        let names: Vec<String> =
            wanted.iter().map(|(name, on)| format!("{name}={}", u8::from(*on))).collect();
        let op = format!("set features {} of {dev}", names.join(" "));
        self.change(&op, family, 0, body.bytes()).map(drop)
    }

    /// Queue counts of a device.
    ///
    /// **Errors** `Kernel` with `EOPNOTSUPP` for drivers without them.
    pub fn channels(&mut self, dev: &str) -> Result<Channels, HostError> {
        parse_channels(&self.ethtool_get("channels", Command::ChannelsGet, dev)?)
    }

    /// Ring sizes of a device.
    ///
    /// **Errors** `Kernel` with `EOPNOTSUPP` for drivers without them (veth).
    pub fn rings(&mut self, dev: &str) -> Result<Rings, HostError> {
        parse_rings(&self.ethtool_get("rings", Command::RingsGet, dev)?)
    }
}

fn device(command: Command, dev: &str) -> Body {
    let name = Body::default().text(HEADER_DEV_NAME, dev);
    Body::new(&[command as u8, 1, 0, 0]).nest(HEADER, &name)
}

/// Reads an answer to the features question.
///
/// **Source** net/ethtool/features.c `features_fill_reply`, net/ethtool/bitset.c.
pub fn parse_features(payload: &[u8]) -> Result<Features, HostError> {
    let attrs = Attrs::after(payload, GENL_HEADER)?;
    let mut features = Features::new();
    for (name, on) in bitset(&attrs, FEATURES_HW)? {
        features.insert(name, Feature { changeable: on, ..Feature::default() });
    }
    for (name, on) in bitset(&attrs, FEATURES_WANTED)? {
        features.entry(name).or_default().wanted = on;
    }
    for (name, on) in bitset(&attrs, FEATURES_ACTIVE)? {
        features.entry(name).or_default().active = on;
    }
    for (name, fixed) in bitset(&attrs, FEATURES_NOCHANGE)? {
        if fixed {
            features.entry(name).or_default().changeable = false;
        }
    }
    Ok(features)
}

/// A verbose bitset: with a mask each bit says its value, without one the listed bits are set.
fn bitset(attrs: &Attrs<'_>, kind: u16) -> Result<Vec<(String, bool)>, HostError> {
    let set = attrs.nest(kind)?;
    let no_mask = set.get(BITSET_NOMASK).is_some();
    let mut bits = Vec::new();
    for (_, bytes) in set.nest(BITSET_BITS)?.iter().filter(|(kind, _)| *kind == BITSET_BITS_BIT) {
        let bit = Attrs::parse(bytes)?;
        // Bits that this kernel reserves have an empty name.
        if let Some(name) = bit.text(BIT_NAME).filter(|name| !name.is_empty()) {
            bits.push((name, no_mask || bit.get(BIT_VALUE).is_some()));
        }
    }
    Ok(bits)
}

fn amount(attrs: &Attrs<'_>, max: u16, now: u16) -> Amount {
    Amount { now: attrs.u32(now), max: attrs.u32(max) }
}

/// Reads an answer to the channels question (`ETHTOOL_A_CHANNELS_*`).
pub fn parse_channels(payload: &[u8]) -> Result<Channels, HostError> {
    let attrs = Attrs::after(payload, GENL_HEADER)?;
    Ok(Channels {
        rx: amount(&attrs, 2, 6),
        tx: amount(&attrs, 3, 7),
        combined: amount(&attrs, 5, 9),
    })
}

/// Reads an answer to the rings question (`ETHTOOL_A_RINGS_*`).
pub fn parse_rings(payload: &[u8]) -> Result<Rings, HostError> {
    let attrs = Attrs::after(payload, GENL_HEADER)?;
    Ok(Rings { rx: amount(&attrs, 2, 6), tx: amount(&attrs, 5, 9) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits(names: &[(&str, bool)], no_mask: bool) -> Body {
        let mut list = Body::default();
        for (name, on) in names {
            let bit = Body::default().text(BIT_NAME, name);
            let bit = if *on { bit.raw(BIT_VALUE, &[]) } else { bit };
            list = list.nest(BITSET_BITS_BIT, &bit);
        }
        let set = if no_mask { Body::default().raw(BITSET_NOMASK, &[]) } else { Body::default() };
        set.nest(BITSET_BITS, &list)
    }

    fn sample() -> Vec<u8> {
        Body::new(&[Command::FeaturesGet as u8, 1, 0, 0])
            .nest(FEATURES_HW, &bits(&[("rx-gro", true), ("loopback", false)], false))
            .nest(FEATURES_WANTED, &bits(&[("rx-gro", true)], true))
            .nest(FEATURES_ACTIVE, &bits(&[("rx-gro", false)], true))
            .nest(FEATURES_NOCHANGE, &bits(&[("rx-gro", false), ("loopback", true)], false))
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

    /// Positions of the names in the header's enumerations are the numbers on the wire.
    #[test]
    fn numbers_are_those_of_the_installed_header() {
        let path = "/usr/include/linux/ethtool_netlink.h";
        let header = std::fs::read_to_string(path).unwrap_or_else(|e| {
            panic!(
                "{path}: {e}: install the kernel's headers for programs \
                (Debian and Ubuntu: linux-libc-dev, which libc6-dev brings)"
            )
        });
        let number = |name: &str, first: &str| {
            let body = header.split_once(first).unwrap().1;
            let body = body.split_once('}').unwrap().0;
            let names = body.split(',').map(|item| item.rsplit("*/").next().unwrap().trim());
            let names = names.filter(|item| !item.is_empty());
            names.enumerate().find(|(_, item)| *item == name).unwrap().0 + 1
        };
        let command = |name: &str| number(name, "ETHTOOL_MSG_USER_NONE,");
        assert_eq!(command("ETHTOOL_MSG_FEATURES_GET"), Command::FeaturesGet as usize);
        assert_eq!(command("ETHTOOL_MSG_FEATURES_SET"), Command::FeaturesSet as usize);
        assert_eq!(command("ETHTOOL_MSG_RINGS_GET"), Command::RingsGet as usize);
        assert_eq!(command("ETHTOOL_MSG_CHANNELS_GET"), Command::ChannelsGet as usize);
        assert_eq!(command("ETHTOOL_MSG_CABLE_TEST_ACT"), 26);
        assert_eq!(command("ETHTOOL_MSG_CABLE_TEST_TDR_ACT"), 27);
        let attr = |name: &str, set: &str| number(name, &format!("ETHTOOL_A_{set}_UNSPEC,"));
        assert_eq!(attr("ETHTOOL_A_CHANNELS_COMBINED_MAX", "CHANNELS"), 5);
        assert_eq!(attr("ETHTOOL_A_CHANNELS_COMBINED_COUNT", "CHANNELS"), 9);
        assert_eq!(attr("ETHTOOL_A_RINGS_TX_MAX", "RINGS"), 5);
        assert_eq!(attr("ETHTOOL_A_RINGS_TX", "RINGS"), 9);
        assert_eq!(attr("ETHTOOL_A_FEATURES_NOCHANGE", "FEATURES"), usize::from(FEATURES_NOCHANGE));
        assert_eq!(attr("ETHTOOL_A_BITSET_BITS", "BITSET"), usize::from(BITSET_BITS));
        assert_eq!(attr("ETHTOOL_A_BITSET_BIT_VALUE", "BITSET_BIT"), usize::from(BIT_VALUE));
    }

    proptest! {
        #[test]
        fn a_cut_answer_never_panics(cut in 0usize..400) {
            let whole = sample();
            let _ = parse_features(&whole[..cut.min(whole.len())]);
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_features(&bytes);
            let _ = parse_channels(&bytes);
            let _ = parse_rings(&bytes);
        }
    }
}
