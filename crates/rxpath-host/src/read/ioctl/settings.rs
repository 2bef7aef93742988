//! Settings of a device for kernels that don't report them over netlink: rings, channels, coalescing, pause, FEC.
//!
//! ethtool netlink came with 5.6, these topics with 5.7 and FEC with 5.13; the ioctl has them since long before. The
//! facts are those of the netlink readers, less what the old structures have no place for.

use super::link::{EEE, link_modes};
use super::{features, private_flags};
use crate::ioctl::ask;
use crate::ioctl::number::{
    ETHTOOL_GCHANNELS, ETHTOOL_GCOALESCE, ETHTOOL_GEEE, ETHTOOL_GFECPARAM, ETHTOOL_GPAUSEPARAM,
    ETHTOOL_GRINGPARAM,
};
use crate::netlink::wire::word32;
use crate::pairs::Pairs;
use crate::read::netlink::ethtool::field::Answer;
use crate::read::netlink::ethtool::group::{feature_pairs, switch_pairs};
use crate::read::netlink::ethtool::link_pairs::{fec_pairs, link_pairs};
use crate::read::netlink::ethtool::{Channels, Coalesce, Fec, Pause, Rings};
use crate::{Group, HostError};

/// `ETHTOOL_FEC_AUTO`.
const FEC_AUTO: u32 = 1 << 1;
/// `ETHTOOL_FEC_*` by the names of the link mode bits in which netlink gives them, in their order; OFF is "None".
const FEC_MODES: [(u32, &str); 4] =
    [(1 << 2, "None"), (1 << 3, "RS"), (1 << 4, "BASER"), (1 << 5, "LLRS")];

/// Words of `struct ethtool_coalesce`.
pub(super) const COALESCE: usize = 23;

/// The structure of a group: its command, and how many words it has.
fn structure(group: Group) -> Option<(u32, usize)> {
    Some(match group {
        // The command, four most, four now.
        Group::Rings => (ETHTOOL_GRINGPARAM, 9),
        Group::Channels => (ETHTOOL_GCHANNELS, 9),
        Group::Coalesce => (ETHTOOL_GCOALESCE, COALESCE),
        Group::Pause => (ETHTOOL_GPAUSEPARAM, 4),
        Group::Eee => (ETHTOOL_GEEE, EEE),
        _ => return None,
    })
}

fn answer(dev: &str, group: Group) -> Result<Answer, HostError> {
    let (command, count) = structure(group)
        .ok_or_else(|| HostError::malformed(group.name(), 0, "not a group of ethtool's ioctl"))?;
    let op = format!("read {} of", group.name());
    let buffer = ask(&op, dev, &[command], count * 4)?;
    Ok(Answer::of_words(group, &buffer))
}

/// All values of a group, as far as the device has them.
///
/// **Caveat** `struct ethtool_coalesce` has no sign for "the driver has no such parameter": those are 0 and off.
///
/// **Errors** `Unsupported` for drivers without the group.
pub fn group(dev: &str, group: Group) -> Result<Pairs, HostError> {
    match group {
        Group::Features => Ok(feature_pairs(&features(dev)?)),
        Group::PrivFlags => Ok(switch_pairs(private_flags(dev)?)),
        Group::LinkModes => Ok(link_pairs(&link_modes(dev)?)),
        Group::Fec => fec_pairs(&fec(dev)?),
        _ => answer(dev, group).map(|answer| answer.pairs()),
    }
}

/// The largest values of a group, where the device says them.
pub fn group_limits(dev: &str, group: Group) -> Result<Pairs, HostError> {
    match structure(group) {
        Some(_) => answer(dev, group).map(|answer| answer.limits()),
        None => Ok(Pairs::default()),
    }
}

/// Ring sizes of a device.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_ringparam`. **Errors** `Unsupported` for drivers without them.
pub fn rings(dev: &str) -> Result<Rings, HostError> {
    answer(dev, Group::Rings).map(|answer| Rings::from(&answer))
}

/// Queue counts of a device.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_channels`. **Errors** `Unsupported` for drivers without them.
pub fn channels(dev: &str) -> Result<Channels, HostError> {
    answer(dev, Group::Channels).map(|answer| Channels::from(&answer))
}

/// Coalescing of a device.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_coalesce`. **Errors** `Unsupported` for drivers without it.
///
/// **Caveat** the old structure has no sign for "the driver has no such parameter": a 0 is read as none.
pub fn coalesce(dev: &str) -> Result<Coalesce, HostError> {
    answer(dev, Group::Coalesce).map(|answer| Coalesce::from(&answer.without_zeros()))
}

/// Pause settings of a device, without counters.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_pauseparam`. **Errors** `Unsupported` for drivers without them.
pub fn pause(dev: &str) -> Result<Pause, HostError> {
    answer(dev, Group::Pause).map(|answer| Pause::from(&answer))
}

/// FEC of a device, without counters.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_fecparam` (4.14). **Errors** `Unsupported` for drivers without it.
pub fn fec(dev: &str) -> Result<Fec, HostError> {
    Ok(parse_fec_words(&ask("read FEC of", dev, &[ETHTOOL_GFECPARAM], 16)?))
}

/// Reads an answered `struct ethtool_fecparam` (bits: linux/ethtool.h, `enum ethtool_fec_config_bits`).
pub fn parse_fec_words(buffer: &[u8]) -> Fec {
    let modes = |bits: u32| FEC_MODES.iter().filter(move |(bit, _)| bits & bit != 0);
    let name = |(_, name): &(u32, &str)| (*name).to_owned();
    Fec {
        configured: word32(buffer, 2).map(|bits| modes(bits).map(name).collect()),
        auto: word32(buffer, 2).map(|bits| bits & FEC_AUTO != 0),
        active: word32(buffer, 1).and_then(|bits| modes(bits).next().map(name)),
        ..Fec::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::read::netlink::ethtool::Amount;
    use crate::read::netlink::ethtool::field::fields;
    use proptest::prelude::*;

    fn answer(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_kind_that_can_have_none_is_none() {
        let words = answer(&[0x10, 4096, 0, 0, 4096, 512, 0, 0, 256]);
        let found = Answer::of_words(Group::Rings, &words);
        let rings = Rings::from(&found);
        assert_eq!(rings.rx, Amount { now: Some(512), max: Some(4096) });
        assert_eq!((rings.rx_mini, rings.tx.now), (Amount::default(), Some(256)));
        assert_eq!(found.pairs().to_string(), "rx=512 tx=256");
        assert_eq!(found.limits().to_string(), "rx=4096 tx=4096");
        let words = answer(&[0x3c, 0, 0, 1, 63, 0, 0, 1, 4]);
        let channels = Channels::from(&Answer::of_words(Group::Channels, &words));
        assert_eq!((channels.receiving(), channels.other.now), (Some(4), Some(1)));
        assert_eq!(Rings::from(&Answer::of_words(Group::Rings, &[])), Rings::default());
    }

    #[test]
    fn a_parameter_of_zero_is_not_reported() {
        let mut words = [0; COALESCE];
        (words[1], words[10], words[22]) = (3, 1, 7);
        let found = Answer::of_words(Group::Coalesce, &answer(&words)).without_zeros();
        let found = Coalesce::from(&found);
        assert_eq!((found.rx_usecs, found.tx_usecs), (Some(3), None));
        assert_eq!((found.adaptive_rx, found.adaptive_tx), (Some(true), None));
        assert_eq!(found.rare, BTreeMap::from([("sample-interval".to_owned(), 7)]));
    }

    #[test]
    fn switches_are_on_or_off() {
        let pause = Answer::of_words(Group::Pause, &answer(&[0x12, 1, 0, 1]));
        assert_eq!(pause.pairs().to_string(), "autoneg=on rx=off tx=on");
        let fec = parse_fec_words(&answer(&[0x50, 1 << 3, 1 << 1 | 1 << 3 | 1 << 4, 0]));
        assert_eq!((fec.active.as_deref(), fec.auto), (Some("RS"), Some(true)));
        assert_eq!(fec.configured.unwrap(), ["RS", "BASER"]);
    }

    #[test]
    fn places_are_within_the_structure() {
        // Time stamps have an ioctl of their own.
        for group in Group::ALL.into_iter().filter(|group| *group != Group::Stamps) {
            let places = fields(group).iter().filter_map(|field| field.word);
            let last = places.flat_map(|(now, max)| [now, max.unwrap_or(1)]).max();
            assert_eq!(last.is_some(), structure(group).is_some(), "{group:?}");
            assert!(last.is_none_or(|last| last < structure(group).unwrap().1), "{group:?}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            for group in Group::ALL {
                let _ = Answer::of_words(group, &bytes).pairs();
            }
            let _ = parse_fec_words(&bytes);
        }
    }
}
