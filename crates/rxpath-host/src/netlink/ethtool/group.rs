//! Groups of settings that are one message each: rings, channels, coalescing, pause, EEE, the link, FEC.
//!
//! The question it answers: *what are all values of this group, by ethtool's names, and how is one of them written?*
//! Reading and writing go through one table, so that what is written back is what was read.

use super::bitset::{self, named};
use super::command::{Command, device};
use super::features::Features;
use super::link_wish::{check_link, fec_pairs, fec_wish, link_pairs};
use crate::netlink::genl::HEADER;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::{Attrs, Body};
use crate::pairs::{Pairs, as_written};
use crate::{Group, HostError};

#[cfg(test)]
mod tests;

/// How a value lies on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A number.
    U32,
    /// `on` or `off` in one byte.
    Switch,
    /// A number in one byte, by the words of the list.
    Word(&'static [&'static str]),
}

/// One value of a group.
#[derive(Clone, Copy, Debug)]
struct Value {
    name: &'static str,
    attribute: u16,
    kind: Kind,
    /// The attribute that holds its largest value.
    max: Option<u16>,
}

const fn number(name: &'static str, attribute: u16) -> Value {
    Value { name, attribute, kind: Kind::U32, max: None }
}

const fn amount(name: &'static str, attribute: u16, max: u16) -> Value {
    Value { name, attribute, kind: Kind::U32, max: Some(max) }
}

const fn switch(name: &'static str, attribute: u16) -> Value {
    Value { name, attribute, kind: Kind::Switch, max: None }
}

/// `ETHTOOL_A_RINGS_*`; the last four are younger than 6.1.
const RINGS: &[Value] = &[
    amount("rx", 6, 2),
    amount("rx-mini", 7, 3),
    amount("rx-jumbo", 8, 4),
    amount("tx", 9, 5),
    number("rx-buf-len", 10),
    Value {
        name: "tcp-data-split",
        attribute: 11,
        kind: Kind::Word(&["unknown", "off", "on"]),
        max: None,
    },
    number("cqe-size", 12),
    switch("tx-push", 13),
    switch("rx-push", 14),
    amount("tx-push-buf-len", 15, 16),
    amount("hds-thresh", 17, 18),
];

/// `ETHTOOL_A_CHANNELS_*`.
const CHANNELS: &[Value] =
    &[amount("rx", 6, 2), amount("tx", 7, 3), amount("other", 8, 4), amount("combined", 9, 5)];

/// `ETHTOOL_A_COALESCE_*`; the last three are younger than 6.1.
const COALESCE: &[Value] = &[
    number("rx-usecs", 2),
    number("rx-frames", 3),
    number("rx-usecs-irq", 4),
    number("rx-frames-irq", 5),
    number("tx-usecs", 6),
    number("tx-frames", 7),
    number("tx-usecs-irq", 8),
    number("tx-frames-irq", 9),
    number("stats-block-usecs", 10),
    switch("adaptive-rx", 11),
    switch("adaptive-tx", 12),
    number("pkt-rate-low", 13),
    number("rx-usecs-low", 14),
    number("rx-frames-low", 15),
    number("tx-usecs-low", 16),
    number("tx-frames-low", 17),
    number("pkt-rate-high", 18),
    number("rx-usecs-high", 19),
    number("rx-frames-high", 20),
    number("tx-usecs-high", 21),
    number("tx-frames-high", 22),
    number("sample-interval", 23),
    switch("cqe-mode-tx", 24),
    switch("cqe-mode-rx", 25),
    number("tx-aggr-max-bytes", 26),
    number("tx-aggr-max-frames", 27),
    number("tx-aggr-time-usecs", 28),
];

/// `ETHTOOL_A_PAUSE_*`.
const PAUSE: &[Value] = &[switch("autoneg", 2), switch("rx", 3), switch("tx", 4)];

/// `ETHTOOL_A_EEE_*`.
const EEE: &[Value] = &[switch("enabled", 5), switch("tx-lpi", 6), number("tx-lpi-timer", 7)];

const PRIVFLAGS_FLAGS: u16 = 2;

/// The two commands of a group and its values; none for groups that are made otherwise.
fn table(group: Group) -> Option<(Command, Command, &'static [Value])> {
    Some(match group {
        Group::Rings => (Command::RingsGet, Command::RingsSet, RINGS),
        Group::Channels => (Command::ChannelsGet, Command::ChannelsSet, CHANNELS),
        Group::Coalesce => (Command::CoalesceGet, Command::CoalesceSet, COALESCE),
        Group::Pause => (Command::PauseGet, Command::PauseSet, PAUSE),
        Group::Eee => (Command::EeeGet, Command::EeeSet, EEE),
        _ => return None,
    })
}

/// The names of a group's values; none where the driver names them.
pub fn names(group: Group) -> Vec<&'static str> {
    table(group).map_or(Vec::new(), |(_, _, values)| values.iter().map(|v| v.name).collect())
}

/// Reads an answer as pairs.
///
/// **Source** net/ethtool/{rings,channels,coalesce,pause,eee}.c, `*_fill_reply`: what the driver lacks is left out.
pub fn parse(group: Group, payload: &[u8]) -> Result<Pairs, HostError> {
    let mut pairs = Pairs::default();
    let attrs = Attrs::after(payload, HEADER)?;
    for value in table(group).map_or(&[][..], |(_, _, values)| values) {
        let number = match value.kind {
            Kind::U32 => attrs.u32(value.attribute),
            Kind::Switch | Kind::Word(_) => attrs.u8(value.attribute).map(u32::from),
        };
        let Some(number) = number else { continue };
        match value.kind {
            Kind::U32 => pairs.push(value.name, number),
            Kind::Switch => pairs.push(value.name, switch_word(number != 0)),
            Kind::Word(words) => match words.get(number as usize) {
                Some(word) => pairs.push(value.name, word),
                None => pairs.push(value.name, number),
            },
        }
    }
    Ok(pairs)
}

/// Reads the largest values out of the same answer.
pub fn parse_limits(group: Group, payload: &[u8]) -> Result<Pairs, HostError> {
    let mut pairs = Pairs::default();
    let attrs = Attrs::after(payload, HEADER)?;
    for value in table(group).map_or(&[][..], |(_, _, values)| values) {
        if let Some(max) = value.max.and_then(|attribute| attrs.u32(attribute)) {
            pairs.push(value.name, max);
        }
    }
    Ok(pairs)
}

/// The attributes that ask for these values.
///
/// **Errors** `Malformed` for a name that the group does not have, and for a value of the wrong kind.
fn wish(group: Group, mut body: Body, asked: &Pairs) -> Result<Body, HostError> {
    let values = table(group).map_or(&[][..], |(_, _, values)| values);
    for (name, text) in asked.iter() {
        let Some(value) = values.iter().find(|value| value.name == name) else {
            let known: Vec<&str> = values.iter().map(|value| value.name).collect();
            let why = format!("no value is called {name}; there are {}", known.join(", "));
            return Err(HostError::malformed(group.name(), 0, why));
        };
        let number = value.number(text).ok_or_else(|| {
            let why = format!("{name}={text}: expected {}", value.expected());
            HostError::malformed(group.name(), 0, why)
        })?;
        body = match value.kind {
            Kind::U32 => body.u32(value.attribute, number),
            Kind::Switch | Kind::Word(_) => body.u8(value.attribute, number as u8),
        };
    }
    Ok(body)
}

impl Value {
    fn number(&self, text: &str) -> Option<u32> {
        match self.kind {
            Kind::U32 => text.parse().ok(),
            Kind::Switch => on_off(text).map(u32::from),
            Kind::Word(words) => words.iter().position(|word| *word == text).map(|at| at as u32),
        }
    }

    fn expected(&self) -> String {
        match self.kind {
            Kind::U32 => "a number from 0 to 4294967295".into(),
            Kind::Switch => "on or off".into(),
            Kind::Word(words) => words.join(" or "),
        }
    }
}

/// `on` or `off`.
pub(crate) fn on_off(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

pub(crate) fn switches(group: Group, asked: &Pairs) -> Result<Vec<(String, bool)>, HostError> {
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
    match (group, table(group)) {
        (_, Some(_)) => wish(group, Body::default(), asked).map(drop),
        (Group::LinkModes, _) => check_link(asked),
        (Group::Fec, _) => fec_wish(asked).map(drop),
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

/// The features that can be switched, as pairs.
pub(crate) fn feature_pairs(features: &Features) -> Pairs {
    let mut pairs = Pairs::default();
    for (name, feature) in features.iter().filter(|(_, feature)| feature.changeable) {
        pairs.push(name, feature_word(feature.active, feature.wanted));
    }
    pairs
}

/// Switches by name, as pairs.
pub(crate) fn switch_pairs(switches: impl IntoIterator<Item = (String, bool)>) -> Pairs {
    let mut pairs = Pairs::default();
    for (name, on) in switches {
        pairs.push(&name, switch_word(on));
    }
    pairs
}

/// A switch in words.
pub(crate) fn switch_word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

impl Netlink {
    /// Whether this kernel reads and sets the group over netlink: 5.6 has the family and few of its commands, older
    /// ones have no family.
    pub(crate) fn takes_group(&mut self, group: Group) -> Result<bool, HostError> {
        let (get, set) = match (group, table(group)) {
            (_, Some((get, set, _))) => (get, set),
            (Group::Features, _) => (Command::FeaturesGet, Command::FeaturesSet),
            (Group::PrivFlags, _) => (Command::PrivateFlagsGet, Command::PrivateFlagsSet),
            (Group::LinkModes, _) => (Command::LinkModesGet, Command::LinkModesSet),
            (Group::Fec, _) => (Command::FecGet, Command::FecSet),
            _ => return Err(not_ethtool(group)),
        };
        Ok(self.ethtool_takes(get)? && self.ethtool_takes(set)?)
    }

    /// All values of a group, as far as the driver has them. On a [`Netlink::generic`] socket.
    ///
    /// **Errors** `Kernel` with `EOPNOTSUPP` for drivers without the group.
    pub fn group(&mut self, dev: &str, group: Group) -> Result<Pairs, HostError> {
        match (group, table(group)) {
            (_, Some((get, _, _))) => parse(group, &self.ethtool_get(group.name(), get, dev)?),
            (Group::Features, _) => Ok(feature_pairs(&self.features(dev)?)),
            (Group::PrivFlags, _) => {
                let answer = self.ethtool_get("private flags", Command::PrivateFlagsGet, dev)?;
                let attrs = Attrs::after(&answer, HEADER)?;
                Ok(switch_pairs(bitset::read(&attrs, PRIVFLAGS_FLAGS)?))
            }
            (Group::LinkModes, _) => Ok(link_pairs(&self.link_modes(dev)?)),
            (Group::Fec, _) => fec_pairs(&self.fec(dev)?),
            _ => Err(not_ethtool(group)),
        }
    }

    /// The largest values of a group, where the driver says them.
    pub fn group_limits(&mut self, dev: &str, group: Group) -> Result<Pairs, HostError> {
        match table(group) {
            Some((get, _, _)) => parse_limits(group, &self.ethtool_get(group.name(), get, dev)?),
            None => Ok(Pairs::default()),
        }
    }

    /// Asks for values of a group; read them back to see what came of it.
    ///
    /// **Errors** `Kernel` with the kernel's words.
    pub fn set_group(&mut self, dev: &str, group: Group, asked: &Pairs) -> Result<(), HostError> {
        let body = match (group, table(group)) {
            (_, Some((_, set, _))) => wish(group, device(set, dev), asked)?,
            (Group::Features, _) => {
                let bits = switches(group, asked)?;
                let bits: Vec<(&str, bool)> =
                    bits.iter().map(|(n, on)| (n.as_str(), *on)).collect();
                return self.want_features(dev, &bits);
            }
            (Group::PrivFlags, _) => {
                let bits = switches(group, asked)?;
                let bits: Vec<(&str, bool)> =
                    bits.iter().map(|(n, on)| (n.as_str(), *on)).collect();
                device(Command::PrivateFlagsSet, dev).nest(PRIVFLAGS_FLAGS, &named(&bits))
            }
            (Group::LinkModes, _) => return self.set_link_modes(dev, asked),
            (Group::Fec, _) => return self.set_fec(dev, asked),
            _ => return Err(not_ethtool(group)),
        };
        self.order_group(dev, group, asked, &body)
    }

    /// Sends what is asked of a group.
    pub(super) fn order_group(
        &mut self,
        dev: &str,
        group: Group,
        asked: &Pairs,
        body: &Body,
    ) -> Result<(), HostError> {
        let op = format!("set {dev}/{} {asked}", group.name());
        let family = self.ethtool_family()?;
        self.change(&op, family, 0, body.bytes()).map(drop)
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

/// The wish behind a word of [`Netlink::group`], for writing it back.
pub(crate) fn wanted_word(word: &str) -> &str {
    match word {
        "waiting" => "on",
        "forced" => "off",
        other => other,
    }
}

fn not_ethtool(group: Group) -> HostError {
    HostError::malformed(group.name(), 0, "not a group of ethtool netlink")
}
