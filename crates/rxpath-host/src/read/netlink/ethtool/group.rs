//! Groups of settings that are one message each: rings, channels, coalescing, pause, EEE, the link, FEC.
//!
//! The question it answers: *what are all values of this group, by ethtool's names?*

use super::features::{FEATURES, Features};
use super::fec::FEC;
use super::field::{Answer, commands, fields, switch_word};
use super::link_modes::LINK_MODES;
use super::link_pairs::{fec_pairs, link_pairs};
use super::private_flags::PRIVATE_FLAGS;
use crate::netlink::socket::Netlink;
use crate::pairs::Pairs;
use crate::{Group, HostError};

#[cfg(test)]
mod tests;

/// Reads an answer as pairs.
pub fn parse(group: Group, payload: &[u8]) -> Result<Pairs, HostError> {
    Answer::of_attributes(group, payload).map(|answer| answer.pairs())
}

/// Reads the largest values out of the same answer.
pub fn parse_limits(group: Group, payload: &[u8]) -> Result<Pairs, HostError> {
    Answer::of_attributes(group, payload).map(|answer| answer.limits())
}

/// The features that can be switched, as pairs.
pub(crate) fn feature_pairs(features: &Features) -> Pairs {
    let changeable = features.iter().filter(|(_, feature)| feature.changeable);
    changeable.map(|(name, it)| (name, feature_word(it.active, it.wanted))).collect()
}

/// Switches by name, as pairs.
pub(crate) fn switch_pairs(switches: impl IntoIterator<Item = (String, bool)>) -> Pairs {
    switches.into_iter().map(|(name, on)| (name, switch_word(on))).collect()
}

impl Netlink {
    /// Whether this kernel reads and sets the group over netlink: 5.6 has the family and few of its commands, older
    /// ones have no family.
    pub(crate) fn takes_group(&mut self, group: Group) -> Result<bool, HostError> {
        let (get, set) = commands(group).ok_or_else(|| not_ethtool(group))?;
        Ok(self.ethtool_takes(get)? && self.ethtool_takes(set)?)
    }

    /// All values of a group, as far as the driver has them. On a [`Netlink::generic`] socket.
    ///
    /// **Errors** `Kernel` with `EOPNOTSUPP` for drivers without the group.
    pub fn group(&mut self, dev: &str, group: Group) -> Result<Pairs, HostError> {
        match group {
            Group::Features => Ok(feature_pairs(&self.ethtool(&FEATURES, dev)?)),
            Group::PrivFlags => Ok(switch_pairs(self.ethtool(&PRIVATE_FLAGS, dev)?)),
            Group::LinkModes => Ok(link_pairs(&self.ethtool(&LINK_MODES, dev)?)),
            Group::Fec => fec_pairs(&self.ethtool(&FEC, dev)?),
            _ => {
                let (get, _) = commands(group).ok_or_else(|| not_ethtool(group))?;
                parse(group, &self.ethtool_get(group.name(), get, dev)?)
            }
        }
    }

    /// The largest values of a group, where the driver says them.
    pub fn group_limits(&mut self, dev: &str, group: Group) -> Result<Pairs, HostError> {
        match commands(group).filter(|_| !fields(group).is_empty()) {
            Some((get, _)) => parse_limits(group, &self.ethtool_get(group.name(), get, dev)?),
            None => Ok(Pairs::default()),
        }
    }
}

/// A feature is in force, or waits for another one, or is forced by another one.
fn feature_word(active: bool, wanted: bool) -> &'static str {
    match (active, wanted) {
        (true, true) => "on",
        (false, false) => "off",
        (false, true) => "waiting",
        (true, false) => "forced",
    }
}

/// The request behind a word of [`Netlink::group`], for writing it back.
pub(crate) fn wanted_word(word: &str) -> &str {
    match word {
        "waiting" => "on",
        "forced" => "off",
        other => other,
    }
}

pub(crate) fn not_ethtool(group: Group) -> HostError {
    HostError::malformed(group.name(), 0, "not a group of ethtool netlink")
}
