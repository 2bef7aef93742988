//! The link and EEE for kernels that don't tell or take them over netlink (before 5.6 and 5.7).

use super::link_mode::{NAMES, names};
use super::settings::words;
use super::{call, order, put};
use crate::HostError;
use crate::netlink::ethtool::link_wish::{LinkWish, link_wish, offer_all};
use crate::netlink::ethtool::{Duplex, Eee, LinkModes, LinkState, Port};
use crate::netlink::wire::word32;
use crate::pairs::Pairs;

// linux/ethtool.h
pub(super) const ETHTOOL_GLINK: u32 = 0x0a;
pub(super) const ETHTOOL_GEEE: u32 = 0x44;
pub(super) const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
pub(super) const ETHTOOL_SLINKSETTINGS: u32 = 0x4d;

/// Bytes of `struct ethtool_link_settings` before its masks.
const HEAD: usize = 48;
const DUPLEX: usize = 8;
const PORT: usize = 9;
const AUTONEG: usize = 11;
/// Words of each mask; negative, in the kernel's first answer: so many are needed.
const MASK_WORDS: usize = 15;
/// Words of `struct ethtool_eee`.
pub(super) const EEE: usize = 10;

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
    let answer = words("link state", dev, ETHTOOL_GLINK, 2)?;
    Ok(LinkState { up: word32(&answer, 1).map(|up| up != 0), ..LinkState::default() })
}

/// EEE of a device.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_eee`. **Errors** `Unsupported` for drivers without it.
///
/// **Caveat** the old structure has room for the first 32 link modes.
pub fn eee(dev: &str) -> Result<Eee, HostError> {
    Ok(parse_eee_words(&words("EEE", dev, ETHTOOL_GEEE, EEE)?))
}

fn link_settings(dev: &str) -> Result<Vec<u8>, HostError> {
    let op = "read link modes of";
    let mut ask = vec![0; HEAD];
    put(&mut ask, &[ETHTOOL_GLINKSETTINGS]);
    call(op, dev, &mut ask)?;
    let words = (ask[MASK_WORDS] as i8).unsigned_abs();
    let mut buffer = vec![0; HEAD + 3 * 4 * usize::from(words)];
    put(&mut buffer, &[ETHTOOL_GLINKSETTINGS]);
    buffer[MASK_WORDS] = words;
    call(op, dev, &mut buffer)?;
    Ok(buffer)
}

/// Asks for speed, duplex or modes of a link; what is not asked for stays as it reads now.
///
/// **Source** net/ethtool/ioctl.c `ethtool_set_link_ksettings` (4.6). **Caveat** a speed while `autoneg` is on changes
/// nothing with most drivers: over netlink the kernel chooses the modes of that speed, here nobody does.
pub(super) fn set_link_modes(dev: &str, asked: &Pairs) -> Result<(), HostError> {
    let mut wish = link_wish(asked)?;
    let mut buffer = link_settings(dev)?;
    let link = parse_link_settings(&buffer)?;
    offer_all(&mut wish, &link);
    change_link(&mut buffer, &wish)?;
    put(&mut buffer, &[ETHTOOL_SLINKSETTINGS]);
    order(&format!("set link-modes {asked} of"), dev, &mut buffer)
}

/// Writes a request into an answered `struct ethtool_link_settings`.
fn change_link(buffer: &mut [u8], wish: &LinkWish<'_>) -> Result<(), HostError> {
    let cut = || HostError::malformed("ethtool", 0, "a cut answer about link modes");
    let head: &mut [u8; HEAD] = buffer.first_chunk_mut().ok_or_else(cut)?;
    let words = usize::try_from(head[MASK_WORDS] as i8).map_err(|_| cut())?;
    if let Some(speed) = wish.speed_mbps {
        head[4..8].copy_from_slice(&speed.to_ne_bytes());
    }
    if let Some(duplex) = wish.duplex {
        head[DUPLEX] = duplex;
    }
    if let Some(on) = wish.autoneg {
        head[AUTONEG] = on.into();
    }
    let advertised = &mut buffer.as_chunks_mut::<4>().0[HEAD / 4..];
    for (mode, on) in &wish.modes {
        let bit = NAMES.iter().position(|name| name == mode).filter(|bit| bit / 32 < words);
        let word = bit.and_then(|bit| advertised.get_mut(words + bit / 32));
        let (Some(bit), Some(word)) = (bit, word) else {
            let why = format!("{mode} can't be set by ioctl here");
            return Err(HostError::malformed("link-modes", 0, why));
        };
        let mask = 1 << (bit % 32);
        let now = u32::from_ne_bytes(*word);
        *word = (if *on { now | mask } else { now & !mask }).to_ne_bytes();
    }
    Ok(())
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
    let switch = |at| word32(buffer, at).map(|value| value != 0);
    // netlink gives as ours what is advertised of the supported modes.
    let ours = word32(buffer, 1).zip(word32(buffer, 2));
    Eee {
        enabled: switch(5),
        active: switch(4),
        tx_lpi_enabled: switch(6),
        tx_lpi_timer_us: word32(buffer, 7),
        advertised: ours.map(|(supported, advertised)| names([supported & advertised])),
        peer: word32(buffer, 3).map(|peer| names([peer])),
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
    fn what_is_asked_for_is_what_would_be_read_and_the_rest_stays() {
        let mut buffer = answer(&[0x4c, 1000]);
        buffer.resize(HEAD, 0);
        (buffer[DUPLEX], buffer[AUTONEG], buffer[MASK_WORDS]) = (1, 1, 2);
        buffer.extend(answer(&[1 << 3 | 1 << 5, 1 << 15, 1 << 5, 0, 0, 0]));
        let asked = "autoneg=off speed=100 duplex=half 2500baseT/Full=on 1000baseT/Full=off"
            .parse()
            .unwrap();
        let before = buffer.clone();
        change_link(&mut buffer, &link_wish(&asked).unwrap()).unwrap();
        let link = parse_link_settings(&buffer).unwrap();
        assert_eq!((link.autoneg, link.speed_mbps), (Some(false), Some(100)));
        assert_eq!(
            (link.duplex, link.advertised),
            (Some(Duplex::Half), vec!["2500baseT/Full".into()])
        );
        assert_eq!(link.supported, parse_link_settings(&before).unwrap().supported);
        let young = "1000000baseSR8/Full=on".parse().unwrap();
        let error = change_link(&mut buffer, &link_wish(&young).unwrap()).unwrap_err().to_string();
        assert!(error.contains("1000000baseSR8/Full can't be set by ioctl"), "{error}");
    }

    #[test]
    fn what_is_advertised_with_eee_is_of_the_supported_modes() {
        let eee = parse_eee_words(&answer(&[0x44, 1 << 5, 1 << 5 | 1 << 3, 0, 0, 1, 1, 17, 0, 0]));
        assert_eq!(eee.advertised.unwrap(), ["1000baseT/Full"]);
        assert_eq!((eee.active, eee.enabled), (Some(false), Some(true)));
        assert_eq!((eee.tx_lpi_timer_us, eee.peer), (Some(17), Some(Vec::new())));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_link_settings(&bytes);
            let wish = LinkWish { modes: vec![("LLRS", true), ("TP", false)], ..LinkWish::default() };
            let _ = change_link(&mut bytes.clone(), &wish);
            let _ = parse_eee_words(&bytes);
        }
    }
}
