//! Link modes and forward error correction to ask for.
//!
//! The question it answers: *how is another choice for a link asked for, and what is wrong with the request?*

use crate::netlink::wire::Body;
use crate::pairs::Pairs;
use crate::read::netlink::ethtool::bitset::named;
use crate::read::netlink::ethtool::command::{Command, device};
use crate::read::netlink::ethtool::field::on_off;
use crate::read::netlink::ethtool::link_pairs::{ENCODINGS, UNKNOWN, is_speed};
use crate::read::netlink::ethtool::{LinkModes, fec, link_modes};
use crate::{Group, HostError};

/// What can be asked of a link, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkRequest<'a> {
    pub autoneg: Option<bool>,
    /// Mb/s; `u32::MAX` is unknown.
    pub speed_mbps: Option<u32>,
    /// `DUPLEX_*`.
    pub duplex: Option<u8>,
    /// Modes to offer or not.
    pub modes: Vec<(&'a str, bool)>,
}

/// With negotiation on again and nothing said of what to offer, everything is: the kernel alone keeps the modes of the
/// forced link, and the program ethtool adds them as this does (`nl_sset_compat_linkmodes`).
pub(crate) fn offer_all<'a>(request: &mut LinkRequest<'a>, link: &'a LinkModes) {
    let says_nothing =
        request.modes.is_empty() && request.speed_mbps.is_none() && request.duplex.is_none();
    if request.autoneg == Some(true) && link.autoneg == Some(false) && says_nothing {
        let modes = link.supported.iter().filter(|mode| is_speed(mode));
        request.modes = modes.map(|mode| (mode.as_str(), true)).collect();
    }
}

/// Whether a user may make this request for a link: `unknown` is read and written back, and never requested.
pub(super) fn check_link(asked: &Pairs) -> Result<(), HostError> {
    link_request(asked)?;
    match asked
        .iter()
        .find(|(name, value)| matches!(*name, "speed" | "duplex") && *value == UNKNOWN)
    {
        Some((name, _)) => {
            let why = format!("{name}={UNKNOWN} is what a link without one reads as: leave it out");
            Err(HostError::malformed(Group::LinkModes.name(), 0, why))
        }
        None => Ok(()),
    }
}

/// Parses a request for a link.
///
/// **Errors** `Malformed` in words.
pub(crate) fn link_request(asked: &Pairs) -> Result<LinkRequest<'_>, HostError> {
    let mut request = LinkRequest::default();
    for (name, text) in asked.iter() {
        let bad = |expected: &str| {
            let why = format!("{name}={text}: expected {expected}");
            HostError::malformed(Group::LinkModes.name(), 0, why)
        };
        let switch = || on_off(text).ok_or_else(|| bad("on or off"));
        match name {
            "autoneg" => request.autoneg = Some(switch()?),
            "speed" if text == UNKNOWN => request.speed_mbps = Some(u32::MAX),
            "speed" => {
                // The largest that the kernel takes (`ethtool_validate_speed`).
                let speed = text.parse().ok().filter(|speed| i32::try_from(*speed).is_ok());
                request.speed_mbps =
                    Some(speed.ok_or_else(|| bad("Mb/s as a number, or unknown"))?);
            }
            "duplex" => {
                let number = ["half", "full"].iter().position(|word| *word == text);
                let number = number.map(|at| at as u8).or((text == UNKNOWN).then_some(u8::MAX));
                request.duplex = Some(number.ok_or_else(|| bad("half, full or unknown"))?);
            }
            mode if is_speed(mode) => request.modes.push((mode, switch()?)),
            _ => {
                let why = format!(
                    "no value is called {name}; there are autoneg, speed, duplex and modes like 1000baseT/Full"
                );
                return Err(HostError::malformed(Group::LinkModes.name(), 0, why));
            }
        }
    }
    Ok(request)
}

/// Adds a request for FEC: whether the driver chooses, and the encodings it may choose from, by the kernel's names.
///
/// **Source** net/ethtool/fec.c `ethnl_set_fec` (5.13).
///
/// **Errors** `Malformed` in words.
pub(super) fn fec_request(body: Body, asked: &Pairs) -> Result<Body, HostError> {
    let (mut auto, mut encodings) = (None, Vec::new());
    for (name, text) in asked.iter() {
        let bad = |why: String| HostError::malformed(Group::Fec.name(), 0, why);
        let on = on_off(text).ok_or_else(|| bad(format!("{name}={text}: expected on or off")))?;
        match ENCODINGS.iter().find(|(ours, _)| *ours == name) {
            Some((_, theirs)) => encodings.push((*theirs, on)),
            None if name == "auto" => auto = Some(on),
            None => {
                let why =
                    format!("no value is called {name}; there are auto, off, rs, baser, llrs");
                return Err(bad(why));
            }
        }
    }
    let encodings = Some(encodings).filter(|encodings| !encodings.is_empty());
    Ok(body
        .with(encodings, |body, encodings| body.nest(fec::attr::MODES, &named(&encodings)))
        .with(auto, |body, on| body.u8(fec::attr::AUTO, on.into())))
}

fn link_body(dev: &str, request: &LinkRequest<'_>) -> Body {
    let modes = Some(&request.modes).filter(|modes| !modes.is_empty());
    device(Command::LinkModesSet, dev)
        .with(request.autoneg, |body, on| body.u8(link_modes::attr::AUTONEG, on.into()))
        .with(modes, |body, modes| body.nest(link_modes::attr::OURS, &named(modes)))
        .with(request.speed_mbps, |body, speed| body.u32(link_modes::attr::SPEED, speed))
        .with(request.duplex, |body, duplex| body.u8(link_modes::attr::DUPLEX, duplex))
}

/// The message that asks for speed, duplex or modes of a link, which has those of `link` now.
///
/// A speed without modes, while `autoneg` is on, makes the kernel offer the modes of that speed alone.
///
/// **Source** net/ethtool/linkmodes.c `ethnl_update_linkmodes`, `ethnl_auto_linkmodes`.
pub(super) fn link_message(dev: &str, asked: &Pairs, link: &LinkModes) -> Result<Body, HostError> {
    let mut request = link_request(asked)?;
    offer_all(&mut request, link);
    Ok(link_body(dev, &request))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::netlink::ethtool::link_pairs::{fec_pairs, link_pairs};
    use crate::read::netlink::ethtool::{parse_fec, parse_link_modes};
    use proptest::prelude::*;

    const LINK: &str = "autoneg=on speed=1000 duplex=full 100baseT/Full=off 1000baseT/Full=on";

    /// The bits of a request stand in the reply's place with the reply's numbers, so it reads as what was asked for.
    #[test]
    fn what_is_asked_for_is_what_would_be_read() {
        let asked: Pairs = LINK.parse().unwrap();
        let body = link_body("e0", &link_request(&asked).unwrap());
        assert_eq!(link_pairs(&parse_link_modes(body.bytes()).unwrap()), asked);
        let unknown: Pairs = "speed=unknown duplex=unknown".parse().unwrap();
        let body = link_body("e0", &link_request(&unknown).unwrap());
        assert_eq!(link_pairs(&parse_link_modes(body.bytes()).unwrap()), unknown);
        let asked: Pairs = "auto=off off=off rs=on baser=off llrs=off".parse().unwrap();
        let body = fec_request(device(Command::FecSet, "e0"), &asked).unwrap();
        assert_eq!(fec_pairs(&parse_fec(body.bytes()).unwrap()).unwrap(), asked);
    }

    #[test]
    fn negotiation_alone_offers_everything() {
        let link = LinkModes {
            autoneg: Some(false),
            supported: ["TP", "100baseT/Full", "1000baseT/Full"].map(str::to_owned).to_vec(),
            ..LinkModes::default()
        };
        let offered = |text: &str| {
            let asked: Pairs = text.parse().unwrap();
            let mut request = link_request(&asked).unwrap();
            offer_all(&mut request, &link);
            request
                .modes
                .iter()
                .map(|(mode, on)| format!("{mode}={on}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(offered("autoneg=on"), "100baseT/Full=true 1000baseT/Full=true");
        assert_eq!(offered("autoneg=on 100baseT/Full=on"), "100baseT/Full=true");
        assert_eq!(offered("autoneg=on speed=100"), "", "the kernel chooses the modes of a speed");
        assert_eq!(offered("speed=100"), "");
    }

    #[test]
    fn an_unknown_value_is_read_and_never_requested() {
        for unknown in ["speed=unknown", "autoneg=off duplex=unknown"] {
            let error = check_link(&unknown.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains("leave it out"), "{error}");
        }
    }

    #[test]
    fn wrong_names_and_values_are_refused_before_they_are_sent() {
        for (text, words) in [
            ("speed=fast", "Mb/s as a number"),
            ("speed=4294967295", "Mb/s as a number"),
            ("duplex=both", "half, full or unknown"),
            ("autoneg=1", "on or off"),
            ("1000baseT/Full=yes", "on or off"),
            ("TP=on", "no value is called TP"),
        ] {
            let asked: Pairs = text.parse().unwrap();
            let error = link_request(&asked).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        for (text, words) in [("rs=1", "on or off"), ("reed=on", "auto, off, rs, baser, llrs")] {
            let asked: Pairs = text.parse().unwrap();
            let error = fec_request(Body::default(), &asked).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_pairs_are_taken_or_refused_in_words(text in "([a-z0-9/]{1,12}=[a-z0-9]{0,8} ?){0,5}") {
            let Ok(asked) = text.parse::<Pairs>() else { return Ok(()) };
            let fec = fec_request(Body::default(), &asked);
            for refused in [link_request(&asked).err(), fec.err()].into_iter().flatten() {
                prop_assert!(!refused.reason().is_empty());
            }
        }
    }
}
