//! Groups of settings that are asked for by one message each: rings, channels, coalescing, pause, EEE, features, private
//! flags; the link and FEC by `link_request`.
//!
//! The question it answers: *which message asks for these pairs of a group?* What came of it is seen by reading.

use super::field::{request, requested};
use super::link_request::{check_link, fec_request, link_message};
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Body;
use crate::pairs::{Pairs, as_written};
use crate::read::netlink::ethtool::bitset::named;
use crate::read::netlink::ethtool::command::{Command, ETHTOOL, device};
use crate::read::netlink::ethtool::field::{commands, fields, on_off};
use crate::read::netlink::ethtool::group::{not_ethtool, wanted_word};
use crate::read::netlink::ethtool::{LINK_MODES, features, private_flags};
use crate::{Group, HostError};

fn switches(group: Group, asked: &Pairs) -> Result<Vec<(String, bool)>, HostError> {
    let bit = |(name, text)| match on_off(text) {
        Some(on) => Ok((as_written(name), on)),
        None => Err(expected_switch(group, name, text)),
    };
    asked.iter().map(bit).collect()
}

/// Whether these are names and values that the group takes; the driver may still lack them.
///
/// **Errors** `Malformed` in words.
pub fn check(group: Group, asked: &Pairs) -> Result<(), HostError> {
    match group {
        _ if !fields(group).is_empty() => requested(group, asked, |_| true).map(drop),
        Group::LinkModes => check_link(asked),
        Group::Fec => fec_request(Body::default(), asked).map(drop),
        // As read, a feature may also wait for another one or be forced by it.
        _ => asked.iter().try_for_each(|(name, text)| match wanted_word(text) {
            "on" | "off" => Ok(()),
            _ => Err(expected_switch(group, name, text)),
        }),
    }
}

fn expected_switch(group: Group, name: &str, text: &str) -> HostError {
    HostError::malformed(group.name(), 0, format!("{name}={text}: expected on or off"))
}

impl Netlink {
    /// Asks for features by the kernel's names; read them back to see what came of it.
    ///
    /// **Caveat** success is not a change: a feature that another one needs stays off.
    pub fn want_features(&mut self, dev: &str, wanted: &[(&str, bool)]) -> Result<(), HostError> {
        let body = device(Command::FeaturesSet, dev).nest(features::WANTED, &named(wanted));
        let family = self.family(ETHTOOL)?;
        let names: Vec<String> =
            wanted.iter().map(|(name, on)| format!("{name}={}", u8::from(*on))).collect();
        let op = format!("set features {} of {dev}", names.join(" "));
        self.change(&op, family, 0, body.bytes())
    }

    /// Asks for values of a group; read them back to see what came of it.
    ///
    /// **Errors** `Kernel` with the kernel's words.
    pub(crate) fn set_group(
        &mut self,
        dev: &str,
        group: Group,
        asked: &Pairs,
    ) -> Result<(), HostError> {
        let (_, set) = commands(group).ok_or_else(|| not_ethtool(group))?;
        let body = match group {
            Group::Features | Group::PrivFlags => {
                let bits = switches(group, asked)?;
                let bits: Vec<(&str, bool)> =
                    bits.iter().map(|(name, on)| (name.as_str(), *on)).collect();
                if group == Group::Features {
                    return self.want_features(dev, &bits);
                }
                device(set, dev).nest(private_flags::FLAGS, &named(&bits))
            }
            Group::LinkModes => link_message(dev, asked, &self.ethtool(&LINK_MODES, dev)?)?,
            Group::Fec => fec_request(device(set, dev), asked)?,
            _ => request(group, device(set, dev), asked)?,
        };
        let op = format!("set {dev}/{} {asked}", group.name());
        let family = self.family(ETHTOOL)?;
        self.change(&op, family, 0, body.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::Body;
    use crate::read::netlink::ethtool::group::parse;

    #[test]
    fn what_is_asked_for_is_what_would_be_read() {
        for (group, text) in [
            (Group::Rings, "rx=4096 tx=512 tcp-data-split=on tx-push=off"),
            (Group::Channels, "combined=4"),
            (Group::Coalesce, "rx-usecs=50 adaptive-rx=off"),
            (Group::Pause, "autoneg=off rx=on"),
            (Group::Eee, "enabled=off"),
        ] {
            let asked: Pairs = text.parse().unwrap();
            let body = request(group, Body::new(&[1, 1, 0, 0]), &asked).unwrap();
            assert_eq!(parse(group, body.bytes()).unwrap(), asked);
        }
    }

    #[test]
    fn wrong_names_and_values_are_refused_before_they_are_sent() {
        for (text, words) in [
            ("rx=many", "a number"),
            ("rx=-1", "a number"),
            ("rx=4294967296", "4294967295"),
            ("ry=1", "no value is called ry; there are rx, rx-mini"),
            ("tcp-data-split=maybe", "unknown or off or on"),
            ("tx-push=1", "on or off"),
        ] {
            let asked: Pairs = text.parse().unwrap();
            let error = request(Group::Rings, Body::default(), &asked).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
