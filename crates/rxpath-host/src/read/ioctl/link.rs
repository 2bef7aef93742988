//! The link and EEE for kernels that don't report them over netlink (before 5.6 and 5.7).

use super::link_mode::names;
use crate::ioctl::number::{ETHTOOL_GEEE, ETHTOOL_GLINK, ETHTOOL_GLINKSETTINGS};
use crate::ioctl::{ask, call, put};
use crate::netlink::wire::word32;
use crate::read::netlink::ethtool::field::Answer;
use crate::read::netlink::ethtool::{Duplex, Eee, LinkModes, LinkState, Port};
use crate::{Group, HostError};

/// Words of `struct ethtool_eee`.
pub(super) const EEE: usize = 10;

/// Bytes of `struct ethtool_link_settings` before its masks.
const HEAD: usize = 48;
const DUPLEX: usize = 8;
const PORT: usize = 9;
const AUTONEG: usize = 11;
/// Words of each mask; negative, in the kernel's first answer: so many are needed.
const MASK_WORDS: usize = 15;

/// Modes of a link.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_link_ksettings` (4.6). **Errors** `Unsupported` for drivers without them.
pub fn link_modes(dev: &str) -> Result<LinkModes, HostError> {
    parse_link_settings(&link_settings(dev)?)
}

/// Kind of port.
pub fn link_port(dev: &str) -> Result<Port, HostError> {
    Ok(Port::numbered(link_settings(dev)?.get(PORT).copied()))
}

/// State of a link, without a reason for its being down.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_link`.
pub fn link_state(dev: &str) -> Result<LinkState, HostError> {
    let answer = ask("read link state of", dev, &[ETHTOOL_GLINK], 8)?;
    Ok(LinkState { up: word32(&answer, 1).map(|up| up != 0), ..LinkState::default() })
}

/// EEE of a device.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_eee`. **Errors** `Unsupported` for drivers without it.
///
/// **Caveat** the old structure has room for the first 32 link modes.
pub fn eee(dev: &str) -> Result<Eee, HostError> {
    Ok(parse_eee_words(&ask("read eee of", dev, &[ETHTOOL_GEEE], EEE * 4)?))
}

fn link_settings(dev: &str) -> Result<Vec<u8>, HostError> {
    let op = "read link modes of";
    let head = ask(op, dev, &[ETHTOOL_GLINKSETTINGS], HEAD)?;
    let words = (head[MASK_WORDS] as i8).unsigned_abs();
    let mut buffer = vec![0; HEAD + 3 * 4 * usize::from(words)];
    put(&mut buffer, &[ETHTOOL_GLINKSETTINGS]);
    buffer[MASK_WORDS] = words;
    call(op, dev, &mut buffer)?;
    Ok(buffer)
}

/// Reads an answered `struct ethtool_link_settings`.
///
/// **Errors** `Malformed` when the masks are cut.
pub fn parse_link_settings(buffer: &[u8]) -> Result<LinkModes, HostError> {
    let cut = || HostError::malformed("ethtool", 0, "a cut answer about link modes");
    let head: &[u8; HEAD] = buffer.first_chunk().ok_or_else(cut)?;
    let words = usize::try_from(head[MASK_WORDS] as i8).map_err(|_| cut())?;
    let mask = |number: usize| {
        let first = HEAD / 4 + number * words;
        (first..first + words).map(|at| word32(buffer, at)).collect::<Option<Vec<u32>>>()
    };
    Ok(LinkModes {
        autoneg: Some(head[AUTONEG] != 0),
        speed_mbps: word32(head, 1).filter(|speed| !matches!(*speed, 0 | u32::MAX)),
        duplex: Duplex::numbered(head[DUPLEX]),
        lanes: None,
        supported: names(mask(0).ok_or_else(cut)?),
        advertised: names(mask(1).ok_or_else(cut)?),
        peer: names(mask(2).ok_or_else(cut)?),
    })
}

/// Reads an answered `struct ethtool_eee`.
pub fn parse_eee_words(buffer: &[u8]) -> Eee {
    // netlink gives as ours what is advertised of the supported modes.
    let ours = word32(buffer, 1).zip(word32(buffer, 2));
    Eee {
        active: word32(buffer, 4).map(|active| active != 0),
        advertised: ours.map(|(supported, advertised)| names([supported & advertised])),
        peer: word32(buffer, 3).map(|peer| names([peer])),
        ..Eee::from(&Answer::of_words(Group::Eee, buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::takes_any_bytes;

    fn answer(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn masks_follow_the_settings() {
        let mut buffer = answer(&[0x4c, 1000]);
        buffer.resize(HEAD, 0);
        (buffer[DUPLEX], buffer[AUTONEG], buffer[MASK_WORDS]) = (1, 1, 2);
        buffer.extend(answer(&[1 << 5 | 1 << 7, 1 << 17, 1 << 5, 0, 0, 0]));
        let modes = parse_link_settings(&buffer).unwrap();
        assert_eq!((modes.speed_mbps, modes.duplex), (Some(1000), Some(Duplex::Full)));
        // Bit 17 of the second word is mode 49: no FEC.
        assert_eq!(modes.supported, ["1000baseT/Full", "TP", "None"]);
        assert_eq!((modes.advertised.len(), modes.peer.len()), (1, 0));
        assert!(parse_link_settings(&buffer[..buffer.len() - 1]).is_err());
        buffer[MASK_WORDS] = 0x80;
        assert!(parse_link_settings(&buffer).is_err(), "the kernel's question for more room");
    }

    #[test]
    fn what_is_advertised_with_eee_is_of_the_supported_modes() {
        let eee = parse_eee_words(&answer(&[0x44, 1 << 5, 1 << 5 | 1 << 3, 0, 0, 1, 1, 17, 0, 0]));
        assert_eq!(eee.advertised.unwrap(), ["1000baseT/Full"]);
        assert_eq!((eee.active, eee.enabled), (Some(false), Some(true)));
        assert_eq!((eee.tx_lpi_timer_us, eee.peer), (Some(17), Some(Vec::new())));
    }

    takes_any_bytes!(200, bytes => parse_link_settings(&bytes), parse_eee_words(&bytes));
}
