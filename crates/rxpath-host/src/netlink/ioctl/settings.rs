//! Settings of a device for kernels that don't tell them over netlink: rings, channels, coalescing, pause, FEC; and how
//! FEC is asked for there.
//!
//! ethtool netlink came with 5.6, these topics with 5.7 and FEC with 5.13; the ioctl has them since long before. The
//! facts are those of the netlink readers, less what the old structures have no place for.

use std::collections::BTreeMap;

use super::{call, order, put};
use crate::HostError;
use crate::netlink::ethtool::link_wish::{FecWish, fec_wish};
use crate::netlink::ethtool::{Amount, Channels, Coalesce, Fec, Pause, Rings};
use crate::netlink::wire::word32;
use crate::pairs::Pairs;

// linux/ethtool.h
pub(super) const ETHTOOL_GCOALESCE: u32 = 0x0e;
pub(super) const ETHTOOL_GRINGPARAM: u32 = 0x10;
pub(super) const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
pub(super) const ETHTOOL_GCHANNELS: u32 = 0x3c;
pub(super) const ETHTOOL_GFECPARAM: u32 = 0x50;
pub(super) const ETHTOOL_SFECPARAM: u32 = 0x51;

/// `ETHTOOL_FEC_NONE`: nothing is configured; it is told and never taken (`ethtool_set_fecparam`).
const FEC_NONE: u32 = 1;
/// `ETHTOOL_FEC_AUTO`.
const FEC_AUTO: u32 = 1 << 1;
/// `ETHTOOL_FEC_*` by the names of the link mode bits in which netlink gives them, in their order; OFF is "None".
const FEC_MODES: [(u32, &str); 4] =
    [(1 << 2, "None"), (1 << 3, "RS"), (1 << 4, "BASER"), (1 << 5, "LLRS")];

/// Words of `struct ethtool_ringparam` and of `struct ethtool_channels`: the command, four most, four now.
pub(super) const AMOUNTS: usize = 9;
/// Words of `struct ethtool_coalesce`.
pub(super) const COALESCE: usize = 23;
/// Words of `struct ethtool_pauseparam` and of `struct ethtool_fecparam`.
pub(super) const FOUR: usize = 4;

/// Words of `struct ethtool_coalesce` that few drivers fill, by the names of the `ethtool` program.
const RARE: [(usize, &str); 12] = [
    (9, "stats-block-usecs"),
    (12, "pkt-rate-low"),
    (13, "rx-usecs-low"),
    (14, "rx-frames-low"),
    (15, "tx-usecs-low"),
    (16, "tx-frames-low"),
    (17, "pkt-rate-high"),
    (18, "rx-usecs-high"),
    (19, "rx-frames-high"),
    (20, "tx-usecs-high"),
    (21, "tx-frames-high"),
    (22, "sample-interval"),
];

/// The answer to a command that fills a structure of so many words.
pub(super) fn words(
    what: &str,
    dev: &str,
    command: u32,
    count: usize,
) -> Result<Vec<u8>, HostError> {
    let mut buffer = vec![0; count * 4];
    put(&mut buffer, &[command]);
    call(&format!("read {what} of"), dev, &mut buffer)?;
    Ok(buffer)
}

/// Ring sizes of a device.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_ringparam`. **Errors** `Unsupported` for drivers without them.
pub fn rings(dev: &str) -> Result<Rings, HostError> {
    Ok(parse_ring_words(&words("rings", dev, ETHTOOL_GRINGPARAM, AMOUNTS)?))
}

/// Queue counts of a device.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_channels`. **Errors** `Unsupported` for drivers without them.
pub fn channels(dev: &str) -> Result<Channels, HostError> {
    Ok(parse_channel_words(&words("channels", dev, ETHTOOL_GCHANNELS, AMOUNTS)?))
}

/// Coalescing of a device.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_coalesce`. **Errors** `Unsupported` for drivers without it.
///
/// **Caveat** the old structure has no sign for "the driver has no such parameter": a 0 is told as none.
pub fn coalesce(dev: &str) -> Result<Coalesce, HostError> {
    Ok(parse_coalesce_words(&words("coalescing", dev, ETHTOOL_GCOALESCE, COALESCE)?))
}

/// Pause settings of a device, without counters.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_pauseparam`. **Errors** `Unsupported` for drivers without them.
pub fn pause(dev: &str) -> Result<Pause, HostError> {
    Ok(parse_pause_words(&words("pause settings", dev, ETHTOOL_GPAUSEPARAM, FOUR)?))
}

/// FEC of a device, without counters.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_fecparam` (4.14). **Errors** `Unsupported` for drivers without it.
pub fn fec(dev: &str) -> Result<Fec, HostError> {
    Ok(parse_fec_words(&words("FEC", dev, ETHTOOL_GFECPARAM, FOUR)?))
}

/// A kind of ring or channel: the driver has it when there can be any.
fn amount(buffer: &[u8], max: usize, now: usize) -> Amount {
    match word32(buffer, max) {
        None | Some(0) => Amount::default(),
        max => Amount { now: word32(buffer, now), max },
    }
}

/// Reads an answered `struct ethtool_ringparam`.
pub fn parse_ring_words(buffer: &[u8]) -> Rings {
    Rings {
        rx: amount(buffer, 1, 5),
        rx_mini: amount(buffer, 2, 6),
        rx_jumbo: amount(buffer, 3, 7),
        tx: amount(buffer, 4, 8),
        ..Rings::default()
    }
}

/// Reads an answered `struct ethtool_channels`.
pub fn parse_channel_words(buffer: &[u8]) -> Channels {
    Channels {
        rx: amount(buffer, 1, 5),
        tx: amount(buffer, 2, 6),
        other: amount(buffer, 3, 7),
        combined: amount(buffer, 4, 8),
    }
}

/// Reads an answered `struct ethtool_coalesce`.
pub fn parse_coalesce_words(buffer: &[u8]) -> Coalesce {
    let of = |at| word32(buffer, at).filter(|value| *value != 0);
    let rare = RARE.iter().filter_map(|(at, name)| Some(((*name).to_owned(), of(*at)?)));
    Coalesce {
        rx_usecs: of(1),
        rx_max_frames: of(2),
        rx_usecs_irq: of(3),
        rx_max_frames_irq: of(4),
        tx_usecs: of(5),
        tx_max_frames: of(6),
        tx_usecs_irq: of(7),
        tx_max_frames_irq: of(8),
        adaptive_rx: of(10).map(|_| true),
        adaptive_tx: of(11).map(|_| true),
        rare: rare.collect::<BTreeMap<_, _>>(),
        ..Coalesce::default()
    }
}

/// Reads an answered `struct ethtool_pauseparam`.
pub fn parse_pause_words(buffer: &[u8]) -> Pause {
    let of = |at| word32(buffer, at).map(|value| value != 0);
    Pause { autoneg: of(1), rx: of(2), tx: of(3), ..Pause::default() }
}

/// Asks for FEC; what is not asked for stays as it reads now.
///
/// **Source** net/ethtool/ioctl.c `ethtool_set_fecparam` (4.14).
pub(super) fn set_fec(dev: &str, asked: &Pairs) -> Result<(), HostError> {
    let wish = fec_wish(asked)?;
    let mut buffer = words("FEC", dev, ETHTOOL_GFECPARAM, FOUR)?;
    let bits = fec_bits(word32(&buffer, 2).unwrap_or_default(), &wish);
    put(&mut buffer, &[ETHTOOL_SFECPARAM, 0, bits, 0]);
    order(&format!("set fec {asked} of"), dev, &mut buffer)
}

/// The word of `struct ethtool_fecparam` that says what may be used, changed as wished.
fn fec_bits(now: u32, wish: &FecWish) -> u32 {
    let encodings = wish.encodings.iter().filter_map(|(name, on)| {
        FEC_MODES.iter().find(|(_, known)| known == name).map(|(bit, _)| (*bit, *on))
    });
    encodings
        .chain(wish.auto.map(|on| (FEC_AUTO, on)))
        .fold(now & !FEC_NONE, |bits, (bit, on)| if on { bits | bit } else { bits & !bit })
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
    use super::*;
    use proptest::prelude::*;

    fn answer(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_kind_that_can_have_none_is_none() {
        let rings = parse_ring_words(&answer(&[0x10, 4096, 0, 0, 4096, 512, 0, 0, 256]));
        assert_eq!(rings.rx, Amount { now: Some(512), max: Some(4096) });
        assert_eq!((rings.rx_mini, rings.tx.now), (Amount::default(), Some(256)));
        let channels = parse_channel_words(&answer(&[0x3c, 0, 0, 1, 63, 0, 0, 1, 4]));
        assert_eq!((channels.receiving(), channels.other.now), (Some(4), Some(1)));
        assert_eq!(parse_ring_words(&[]), Rings::default());
    }

    #[test]
    fn a_parameter_of_zero_is_not_told() {
        let mut words = [0; COALESCE];
        (words[1], words[10], words[22]) = (3, 1, 7);
        let found = parse_coalesce_words(&answer(&words));
        assert_eq!((found.rx_usecs, found.tx_usecs), (Some(3), None));
        assert_eq!((found.adaptive_rx, found.adaptive_tx), (Some(true), None));
        assert_eq!(found.rare, BTreeMap::from([("sample-interval".to_owned(), 7)]));
    }

    #[test]
    fn switches_are_told_on_and_off() {
        let pause = parse_pause_words(&answer(&[0x12, 1, 0, 1]));
        assert_eq!((pause.autoneg, pause.rx, pause.tx), (Some(true), Some(false), Some(true)));
        let fec = parse_fec_words(&answer(&[0x50, 1 << 3, 1 << 1 | 1 << 3 | 1 << 4, 0]));
        assert_eq!((fec.active.as_deref(), fec.auto), (Some("RS"), Some(true)));
        assert_eq!(fec.configured.unwrap(), ["RS", "BASER"]);
        let asked: Pairs = "auto=off rs=off llrs=on".parse().unwrap();
        let bits = fec_bits(1 | 1 << 1 | 1 << 3 | 1 << 4, &fec_wish(&asked).unwrap());
        assert_eq!(bits, 1 << 4 | 1 << 5, "what is not asked for stays");
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse_ring_words(&bytes);
            let _ = parse_channel_words(&bytes);
            let _ = parse_coalesce_words(&bytes);
            let _ = parse_pause_words(&bytes);
            let _ = parse_fec_words(&bytes);
        }
    }
}
