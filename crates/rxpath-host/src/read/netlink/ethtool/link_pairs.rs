//! Link modes and forward error correction as pairs that can be written back.
//!
//! The question it answers: *what was chosen for the link?* What the two ends found out by negotiation (speed and duplex
//! while `autoneg` is on) is read too, and never written back.

use super::field::switch_word;
use super::{Duplex, Fec, LinkModes};
use crate::HostError;
use crate::pairs::Pairs;

/// `SPEED_UNKNOWN` and `DUPLEX_UNKNOWN` (linux/ethtool.h).
pub(crate) const UNKNOWN: &str = "unknown";

/// The names of FEC: ours, those of the program ethtool, and the kernel's link modes.
pub(crate) const ENCODINGS: [(&str, &str); 4] =
    [("off", "None"), ("rs", "RS"), ("baser", "BASER"), ("llrs", "LLRS")];

/// Modes that are a speed: the others of the set are the kind of port, pause and FEC, which are set elsewhere.
pub(crate) fn is_speed(mode: &str) -> bool {
    mode.contains("base")
}

/// A link as pairs: `autoneg`, `speed` in Mb/s, `duplex`, and each mode that the device can do, offered or not.
pub(crate) fn link_pairs(link: &LinkModes) -> Pairs {
    let mut pairs = Pairs::default();
    if let Some(on) = link.autoneg {
        pairs.push("autoneg", switch_word(on));
    }
    pairs.push("speed", link.speed_mbps.map_or_else(|| UNKNOWN.into(), |speed| speed.to_string()));
    let duplex = match link.duplex {
        Some(Duplex::Half) => "half",
        Some(Duplex::Full) => "full",
        None => UNKNOWN,
    };
    pairs.push("duplex", duplex);
    for mode in link.supported.iter().filter(|mode| is_speed(mode)) {
        pairs.push(mode, switch_word(link.advertised.contains(mode)));
    }
    pairs
}

/// The part of a link's pairs that somebody chose: without the speed and duplex that the two ends agreed upon.
pub(crate) fn chosen(link: &Pairs) -> Pairs {
    let negotiated = link.get("autoneg") == Some("on");
    link.only(|name, _| !(negotiated && matches!(name, "speed" | "duplex")))
}

/// Why nothing may be asked of a link now: a driver whose link is down does not report what it was forced to, so it could
/// not be undone. A virtual device has no modes, and its unknown speed can be written back.
pub(crate) fn link_obstacle(link: &Pairs) -> Option<&'static str> {
    let forced = link.get("autoneg") == Some("off") && link.get("speed") == Some(UNKNOWN);
    let has_modes = link.iter().any(|(name, _)| is_speed(name));
    (forced && has_modes)
        .then_some("the link is forced and down, so the forced mode is not reported")
}

/// Why FEC may not be asked for: some drivers report what the cable supports, not what was chosen (ice:
/// `ice_get_fecparam`), so it could not be undone.
pub(crate) fn fec_obstacle(fec: &Pairs) -> Option<&'static str> {
    let encodings = ENCODINGS.iter().filter(|(name, _)| fec.get(name) == Some("on")).count();
    (fec.get("auto") == Some("on") && encodings > 0)
        .then_some("this driver reports supported encodings, not the configured one")
}

/// FEC as pairs: `auto`, and each encoding, configured or not.
///
/// **Errors** `Unsupported` for drivers that say nothing of their configuration.
pub(crate) fn fec_pairs(fec: &Fec) -> Result<Pairs, HostError> {
    let mut pairs = Pairs::default();
    if let Some(on) = fec.auto {
        pairs.push("auto", switch_word(on));
    }
    for (ours, theirs) in ENCODINGS {
        if let Some(configured) = &fec.configured {
            pairs.push(ours, switch_word(configured.iter().any(|name| name == theirs)));
        }
    }
    if pairs.is_empty() {
        let needs = "a driver that reports the configured encodings";
        return Err(HostError::unsupported("read FEC", needs));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "autoneg=on speed=1000 duplex=full 100baseT/Full=off 1000baseT/Full=on";

    #[test]
    fn what_negotiation_found_is_not_a_choice() {
        let link: Pairs = LINK.parse().unwrap();
        let offered = "autoneg=on 100baseT/Full=off 1000baseT/Full=on";
        assert_eq!(chosen(&link).to_string(), offered);
        let forced = LINK.replace("autoneg=on", "autoneg=off").parse().unwrap();
        assert_eq!(chosen(&forced), forced, "a forced link may keep what it offered");
    }

    #[test]
    fn what_could_not_be_undone_is_not_asked_for() {
        let link = |text: &str| link_obstacle(&text.parse().unwrap()).is_some();
        assert!(link("autoneg=off speed=unknown duplex=unknown 100baseT/Full=off"));
        assert!(!link("autoneg=off speed=unknown duplex=unknown"), "virtio_net");
        assert!(
            !link("autoneg=on speed=unknown 100baseT/Full=on") && !link("autoneg=off speed=100")
        );
        let fec = |text: &str| fec_obstacle(&text.parse().unwrap()).is_some();
        assert!(fec("auto=on off=off rs=on baser=on llrs=off"));
        assert!(!fec("auto=on off=off rs=off") && !fec("auto=off rs=on"));
    }

    #[test]
    fn kinds_of_port_and_pause_are_no_modes_to_choose() {
        let link = LinkModes {
            supported: ["TP", "Pause", "Autoneg", "10baseT/Half"].map(str::to_owned).to_vec(),
            ..LinkModes::default()
        };
        assert_eq!(link_pairs(&link).to_string(), "speed=unknown duplex=unknown 10baseT/Half=off");
    }

    #[test]
    fn a_driver_that_says_nothing_has_no_fec() {
        assert!(fec_pairs(&Fec::default()).is_err());
    }
}
