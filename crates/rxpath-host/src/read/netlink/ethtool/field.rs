//! The values of the groups that are one message each: rings, channels, coalescing, pause, EEE; of rtnetlink the link. And those
//! of the time stamps, which are one structure of an ioctl.
//!
//! The question it answers: *where does each value stand, in a message of netlink and in the structure of the ioctl?*
//! Reading, setting and bounds go through this one table, so that what is written back is what was read.

use super::Amount;
use super::command::Command;
use crate::netlink::genl::HEADER;
use crate::netlink::wire::{Attrs, word32};
use crate::pairs::Pairs;
use crate::read::netlink::link;
use crate::{Group, HostError};

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number; 32 bits on the wire.
    Number,
    /// `on` or `off`; one byte on the wire.
    Switch,
    /// One of these words, or a number that is younger than they are; one byte on the wire.
    Word(&'static [&'static str]),
}

/// One value of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    /// The name that the `ethtool` program gives it.
    pub name: &'static str,
    /// How it is written.
    pub kind: Kind,
    /// Its attribute, and that of its largest value.
    pub attribute: (u16, Option<u16>),
    /// Its word in the structure of the ioctl, and that of its largest value; word 0 is no value (the command, of time stamps
    /// the flags). `None` for what is younger than the structure.
    pub word: Option<(usize, Option<usize>)>,
}

const fn value(name: &'static str, kind: Kind, attribute: u16, word: usize) -> Field {
    let word = if word == 0 { None } else { Some((word, None)) };
    Field { name, kind, attribute: (attribute, None), word }
}

const fn number(name: &'static str, attribute: u16, word: usize) -> Field {
    value(name, Kind::Number, attribute, word)
}

const fn switch(name: &'static str, attribute: u16, word: usize) -> Field {
    value(name, Kind::Switch, attribute, word)
}

/// A number with a largest value: the attributes and the words of both.
const fn amount(name: &'static str, attribute: (u16, u16), word: (usize, usize)) -> Field {
    let word = if word.0 == 0 { None } else { Some((word.0, Some(word.1))) };
    Field { name, kind: Kind::Number, attribute: (attribute.0, Some(attribute.1)), word }
}

/// `ETHTOOL_A_RINGS_*`, `struct ethtool_ringparam`; attributes from 14 on are younger than 6.1.
const RINGS: &[Field] = &[
    amount("rx", (6, 2), (5, 1)),
    amount("rx-mini", (7, 3), (6, 2)),
    amount("rx-jumbo", (8, 4), (7, 3)),
    amount("tx", (9, 5), (8, 4)),
    number("rx-buf-len", 10, 0),
    value("tcp-data-split", Kind::Word(&["unknown", "off", "on"]), 11, 0),
    number("cqe-size", 12, 0),
    switch("tx-push", 13, 0),
    switch("rx-push", 14, 0),
    amount("tx-push-buf-len", (15, 16), (0, 0)),
    amount("hds-thresh", (17, 18), (0, 0)),
];

/// `ETHTOOL_A_CHANNELS_*`, `struct ethtool_channels`.
const CHANNELS: &[Field] = &[
    amount("rx", (6, 2), (5, 1)),
    amount("tx", (7, 3), (6, 2)),
    amount("other", (8, 4), (7, 3)),
    amount("combined", (9, 5), (8, 4)),
];

/// `ETHTOOL_A_COALESCE_*`, `struct ethtool_coalesce`; attributes from 26 on are younger than 6.1.
const COALESCE: &[Field] = &[
    number("rx-usecs", 2, 1),
    number("rx-frames", 3, 2),
    number("rx-usecs-irq", 4, 3),
    number("rx-frames-irq", 5, 4),
    number("tx-usecs", 6, 5),
    number("tx-frames", 7, 6),
    number("tx-usecs-irq", 8, 7),
    number("tx-frames-irq", 9, 8),
    number("stats-block-usecs", 10, 9),
    switch("adaptive-rx", 11, 10),
    switch("adaptive-tx", 12, 11),
    number("pkt-rate-low", 13, 12),
    number("rx-usecs-low", 14, 13),
    number("rx-frames-low", 15, 14),
    number("tx-usecs-low", 16, 15),
    number("tx-frames-low", 17, 16),
    number("pkt-rate-high", 18, 17),
    number("rx-usecs-high", 19, 18),
    number("rx-frames-high", 20, 19),
    number("tx-usecs-high", 21, 20),
    number("tx-frames-high", 22, 21),
    number("sample-interval", 23, 22),
    switch("cqe-mode-tx", 24, 0),
    switch("cqe-mode-rx", 25, 0),
    number("tx-aggr-max-bytes", 26, 0),
    number("tx-aggr-max-frames", 27, 0),
    number("tx-aggr-time-usecs", 28, 0),
];

/// `ETHTOOL_A_PAUSE_*`, `struct ethtool_pauseparam`.
const PAUSE: &[Field] = &[switch("autoneg", 2, 1), switch("rx", 3, 2), switch("tx", 4, 3)];

/// `ETHTOOL_A_EEE_*`, `struct ethtool_eee`.
const EEE: &[Field] =
    &[switch("enabled", 5, 5), switch("tx-lpi", 6, 6), number("tx-lpi-timer", 7, 7)];

/// `IFLA_*`. The IPv4 limits follow the others when these get small, so they are written last.
const LINK: &[Field] = &[
    number("mtu", libc::IFLA_MTU, 0),
    number("txqueuelen", libc::IFLA_TXQLEN, 0),
    number("gso-max-segs", libc::IFLA_GSO_MAX_SEGS, 0),
    number("gso-max-size", libc::IFLA_GSO_MAX_SIZE, 0),
    number("gro-max-size", libc::IFLA_GRO_MAX_SIZE, 0),
    number("gso-ipv4-max-size", link::IFLA_GSO_IPV4_MAX_SIZE, 0),
    number("gro-ipv4-max-size", link::IFLA_GRO_IPV4_MAX_SIZE, 0),
];

/// `struct hwtstamp_config`: `HWTSTAMP_TX_*` and `HWTSTAMP_FILTER_*` by number (linux/net_tstamp.h), by the names of
/// net/ethtool/common.c `ts_tx_type_names`, `ts_rx_filter_names`.
const STAMPS: &[Field] = &[
    value("tx-type", Kind::Word(&["off", "on", "onestep-sync", "onestep-p2p"]), 0, 1),
    value(
        "rx-filter",
        Kind::Word(&[
            "none",
            "all",
            "some",
            "ptpv1-l4-event",
            "ptpv1-l4-sync",
            "ptpv1-l4-delay-req",
            "ptpv2-l4-event",
            "ptpv2-l4-sync",
            "ptpv2-l4-delay-req",
            "ptpv2-l2-event",
            "ptpv2-l2-sync",
            "ptpv2-l2-delay-req",
            "ptpv2-event",
            "ptpv2-sync",
            "ptpv2-delay-req",
            "ntp-all",
        ]),
        0,
        2,
    ),
];

/// The values of a group, none for groups that are named sets; and the commands that read and set it, for those of ethtool netlink.
fn message(group: Group) -> (&'static [Field], Option<(Command, Command)>) {
    match group {
        Group::Rings => (RINGS, Some((Command::RingsGet, Command::RingsSet))),
        Group::Channels => (CHANNELS, Some((Command::ChannelsGet, Command::ChannelsSet))),
        Group::Coalesce => (COALESCE, Some((Command::CoalesceGet, Command::CoalesceSet))),
        Group::Pause => (PAUSE, Some((Command::PauseGet, Command::PauseSet))),
        Group::Eee => (EEE, Some((Command::EeeGet, Command::EeeSet))),
        Group::Features => (&[], Some((Command::FeaturesGet, Command::FeaturesSet))),
        Group::PrivFlags => (&[], Some((Command::PrivateFlagsGet, Command::PrivateFlagsSet))),
        Group::LinkModes => (&[], Some((Command::LinkModesGet, Command::LinkModesSet))),
        Group::Fec => (&[], Some((Command::FecGet, Command::FecSet))),
        Group::Link => (LINK, None),
        Group::Stamps => (STAMPS, None),
        Group::Rss | Group::FlowHash => (&[], None),
    }
}

/// The values of a group.
pub(crate) fn fields(group: Group) -> &'static [Field] {
    message(group).0
}

/// The commands of a group.
pub(crate) fn commands(group: Group) -> Option<(Command, Command)> {
    message(group).1
}

/// `on` or `off`.
pub(crate) fn on_off(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// A switch in words.
pub(crate) fn switch_word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

impl Field {
    /// A value in words as its number; `None` for words of another kind.
    pub(crate) fn parse(&self, text: &str) -> Option<u32> {
        match self.kind {
            Kind::Number => text.parse().ok(),
            Kind::Switch => on_off(text).map(u32::from),
            Kind::Word(_) => (0..=255).find(|number| self.shown(*number) == text),
        }
    }

    /// A number in words.
    fn shown(&self, number: u32) -> String {
        match self.kind {
            Kind::Switch => switch_word(number != 0).to_owned(),
            Kind::Word(words) if (number as usize) < words.len() => words[number as usize].into(),
            Kind::Number | Kind::Word(_) => number.to_string(),
        }
    }

    /// The words that [`Field::parse`] takes.
    pub(crate) fn expected(&self) -> String {
        match self.kind {
            Kind::Number => "a number from 0 to 4294967295".into(),
            Kind::Switch => "on or off".into(),
            Kind::Word(words) => words.join(" or "),
        }
    }
}

/// All values of a group with their largest ones, as a driver gave them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer(Vec<(&'static Field, Amount)>);

impl Answer {
    /// Reads an answer of netlink: what the driver lacks is left out.
    ///
    /// **Source** net/ethtool/{rings,channels,coalesce,pause,eee}.c, `*_fill_reply`.
    pub(crate) fn of_attributes(group: Group, payload: &[u8]) -> Result<Self, HostError> {
        let head = if group == Group::Link { link::IFINFOMSG } else { HEADER };
        let attrs = Attrs::after(payload, head)?;
        let of = |field: &'static Field| {
            let now = match field.kind {
                Kind::Number => attrs.u32(field.attribute.0),
                Kind::Switch | Kind::Word(_) => attrs.u8(field.attribute.0).map(u32::from),
            };
            (field, Amount { now, max: field.attribute.1.and_then(|max| attrs.u32(max)) })
        };
        Ok(Self(fields(group).iter().map(of).collect()))
    }

    /// Reads a filled structure of the ioctl: a device has nothing of what can be 0 at most.
    pub(crate) fn of_words(group: Group, buffer: &[u8]) -> Self {
        let of = |field: &'static Field| {
            let (word, most) = field.word?;
            let max = most.map(|max| word32(buffer, max).filter(|max| *max > 0));
            let now = if max == Some(None) { None } else { word32(buffer, word) };
            Some((field, Amount { now, max: max.flatten() }))
        };
        Self(fields(group).iter().filter_map(of).collect())
    }

    /// Without values that are 0, where that may mean that there is none.
    pub(crate) fn without_zeros(mut self) -> Self {
        self.0.retain(|(_, amount)| amount.now != Some(0));
        self
    }

    /// The values, as pairs.
    pub fn pairs(&self) -> Pairs {
        self.as_pairs(|field, amount| amount.now.map(|now| field.shown(now)))
    }

    /// The largest values, as pairs.
    pub fn limits(&self) -> Pairs {
        self.as_pairs(|_, amount| amount.max.map(|max| max.to_string()))
    }

    fn as_pairs(&self, pick: impl Fn(&Field, &Amount) -> Option<String>) -> Pairs {
        let named = self.0.iter();
        named.filter_map(|(field, amount)| Some((field.name, pick(field, amount)?))).collect()
    }

    /// A number and its largest one.
    pub fn amount(&self, name: &str) -> Amount {
        let found = self.0.iter().find(|(field, _)| field.name == name);
        found.map(|(_, amount)| *amount).unwrap_or_default()
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.amount(name).now
    }

    /// A switch.
    pub fn is_on(&self, name: &str) -> Option<bool> {
        self.number(name).map(|number| number != 0)
    }
}
