//! Link modes and forward error correction as pairs that can be written back.
//!
//! The question it answers: *what was chosen for the link, and how is another choice asked for?* What the two ends found
//! out by negotiation (speed and duplex while `autoneg` is on) is read too, and never written back.

use super::bitset::named;
use super::command::{Command, device};
use super::field::{on_off, switch_word};
use super::{Duplex, Fec, LinkModes, fec, link_modes};
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Body;
use crate::pairs::Pairs;
use crate::{Group, HostError};

/// `SPEED_UNKNOWN` and `DUPLEX_UNKNOWN` (linux/ethtool.h).
const UNKNOWN: &str = "unknown";

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

/// The names of FEC: ours, those of the program ethtool, and the kernel's link modes.
pub(crate) const ENCODINGS: [(&str, &str); 4] =
    [("off", "None"), ("rs", "RS"), ("baser", "BASER"), ("llrs", "LLRS")];

/// What can be asked of FEC: whether the driver chooses, and the encodings it may choose from, by the kernel's names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FecRequest {
    pub auto: Option<bool>,
    pub encodings: Vec<(&'static str, bool)>,
}

/// Modes that are a speed: the others of the set are the kind of port, pause and FEC, which are set elsewhere.
fn is_speed(mode: &str) -> bool {
    mode.contains("base")
}

/// A link as pairs: `autoneg`, `speed` in Mb/s, `duplex`, and each mode that the device can do, offered or not.
pub(crate) fn link_pairs(link: &LinkModes) -> Pairs {
    let mut pairs = Pairs::default();
    if let Some(on) = link.autoneg {
        pairs.push("autoneg", switch_word(on));
    }
    match link.speed_mbps {
        Some(speed) => pairs.push("speed", speed),
        None => pairs.push("speed", UNKNOWN),
    }
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
    let mut chosen = Pairs::default();
    for (name, value) in link.iter() {
        if !(negotiated && matches!(name, "speed" | "duplex")) {
            chosen.push(name, value);
        }
    }
    chosen
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
        let (what, needs) =
            ("read FEC".into(), "a driver that reports the configured encodings".into());
        return Err(HostError::Unsupported { what, needs });
    }
    Ok(pairs)
}

/// Parses a request for FEC.
///
/// **Errors** `Malformed` in words.
pub(crate) fn fec_request(asked: &Pairs) -> Result<FecRequest, HostError> {
    let mut request = FecRequest::default();
    for (name, text) in asked.iter() {
        let bad = |why: String| HostError::malformed(Group::Fec.name(), 0, why);
        let on = on_off(text).ok_or_else(|| bad(format!("{name}={text}: expected on or off")))?;
        match ENCODINGS.iter().find(|(ours, _)| *ours == name) {
            Some((_, theirs)) => request.encodings.push((theirs, on)),
            None if name == "auto" => request.auto = Some(on),
            None => {
                let why =
                    format!("no value is called {name}; there are auto, off, rs, baser, llrs");
                return Err(bad(why));
            }
        }
    }
    Ok(request)
}

fn link_body(dev: &str, request: &LinkRequest<'_>) -> Body {
    let mut body = device(Command::LinkModesSet, dev);
    if let Some(on) = request.autoneg {
        body = body.u8(link_modes::attr::AUTONEG, on.into());
    }
    if !request.modes.is_empty() {
        body = body.nest(link_modes::attr::OURS, &named(&request.modes));
    }
    if let Some(speed) = request.speed_mbps {
        body = body.u32(link_modes::attr::SPEED, speed);
    }
    if let Some(duplex) = request.duplex {
        body = body.u8(link_modes::attr::DUPLEX, duplex);
    }
    body
}

fn fec_body(dev: &str, request: &FecRequest) -> Body {
    let mut body = device(Command::FecSet, dev);
    if !request.encodings.is_empty() {
        body = body.nest(fec::attr::MODES, &named(&request.encodings));
    }
    match request.auto {
        Some(on) => body.u8(fec::attr::AUTO, on.into()),
        None => body,
    }
}

impl Netlink {
    /// Asks for speed, duplex or modes of a link.
    ///
    /// A speed without modes, while `autoneg` is on, makes the kernel offer the modes of that speed alone.
    ///
    /// **Source** net/ethtool/linkmodes.c `ethnl_update_linkmodes`, `ethnl_auto_linkmodes`.
    pub(super) fn set_link_modes(&mut self, dev: &str, asked: &Pairs) -> Result<(), HostError> {
        let link = self.link_modes(dev)?;
        let mut request = link_request(asked)?;
        offer_all(&mut request, &link);
        self.order_group(dev, Group::LinkModes, asked, &link_body(dev, &request))
    }

    /// Asks for FEC.
    ///
    /// **Source** net/ethtool/fec.c `ethnl_set_fec` (5.13).
    pub(super) fn set_fec(&mut self, dev: &str, asked: &Pairs) -> Result<(), HostError> {
        let body = fec_body(dev, &fec_request(asked)?);
        self.order_group(dev, Group::Fec, asked, &body)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse_fec, parse_link_modes};
    use super::*;
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
        let body = fec_body("e0", &fec_request(&asked).unwrap());
        assert_eq!(fec_pairs(&parse_fec(body.bytes()).unwrap()).unwrap(), asked);
    }

    #[test]
    fn what_negotiation_found_is_not_a_choice() {
        let link: Pairs = LINK.parse().unwrap();
        let offered = "autoneg=on 100baseT/Full=off 1000baseT/Full=on";
        assert_eq!(chosen(&link).to_string(), offered);
        let forced = LINK.replace("autoneg=on", "autoneg=off").parse().unwrap();
        assert_eq!(chosen(&forced), forced, "a forced link may keep what it offered");
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
        for unknown in ["speed=unknown", "autoneg=off duplex=unknown"] {
            let error = check_link(&unknown.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains("leave it out"), "{error}");
        }
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
            let error = fec_request(&asked).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(fec_pairs(&Fec::default()).is_err(), "a driver that says nothing");
    }

    proptest! {
        #[test]
        fn any_pairs_are_taken_or_refused_in_words(text in "([a-z0-9/]{1,12}=[a-z0-9]{0,8} ?){0,5}") {
            let Ok(asked) = text.parse::<Pairs>() else { return Ok(()) };
            for refused in [link_request(&asked).err(), fec_request(&asked).err()].into_iter().flatten() {
                prop_assert!(!refused.reason().is_empty());
            }
        }
    }
}
