//! Groups of settings as the ioctl takes them: a structure of words, read, changed in places and written back whole.
//!
//! The question it answers: *how is a group set on a kernel that does not take it over netlink* (before 5.7, or built
//! without it)? The names are those of [`crate::netlink::ethtool::group`]. What the old structures have no place for
//! (split headers, aggregation) can't be set this way and is said so.

use super::features::{features, private_flags, set_features, set_private_flags};
use super::link::{EEE, ETHTOOL_GEEE, link_modes, set_link_modes};
use super::settings::{
    AMOUNTS, COALESCE, ETHTOOL_GCHANNELS, ETHTOOL_GCOALESCE, ETHTOOL_GPAUSEPARAM,
    ETHTOOL_GRINGPARAM, FOUR, fec, set_fec, words,
};
use super::{order, put};
use crate::netlink::ethtool::group::{feature_pairs, on_off, switch_pairs, switches};
use crate::netlink::ethtool::link_wish::{fec_pairs, link_pairs};
use crate::netlink::wire::word32;
use crate::pairs::Pairs;
use crate::{Group, HostError};

// linux/ethtool.h
pub(super) const ETHTOOL_SCOALESCE: u32 = 0x0f;
pub(super) const ETHTOOL_SRINGPARAM: u32 = 0x11;
pub(super) const ETHTOOL_SPAUSEPARAM: u32 = 0x13;
pub(super) const ETHTOOL_SCHANNELS: u32 = 0x3d;
pub(super) const ETHTOOL_SEEE: u32 = 0x45;

/// One value of a group: its word in the structure, the command being word 0.
#[derive(Clone, Copy, Debug)]
struct Value {
    name: &'static str,
    word: usize,
    /// `on` or `off` instead of a number.
    is_switch: bool,
    /// The word of its largest value; where that is 0 the device has none of it.
    max: Option<usize>,
}

const fn number(name: &'static str, word: usize) -> Value {
    Value { name, word, is_switch: false, max: None }
}

const fn amount(name: &'static str, word: usize, max: usize) -> Value {
    Value { name, word, is_switch: false, max: Some(max) }
}

const fn switch(name: &'static str, word: usize) -> Value {
    Value { name, word, is_switch: true, max: None }
}

/// `struct ethtool_ringparam`.
const RINGS: &[Value] =
    &[amount("rx", 5, 1), amount("rx-mini", 6, 2), amount("rx-jumbo", 7, 3), amount("tx", 8, 4)];

/// `struct ethtool_channels`.
const CHANNELS: &[Value] =
    &[amount("rx", 5, 1), amount("tx", 6, 2), amount("other", 7, 3), amount("combined", 8, 4)];

/// `struct ethtool_coalesce`.
const MODERATION: &[Value] = &[
    number("rx-usecs", 1),
    number("rx-frames", 2),
    number("rx-usecs-irq", 3),
    number("rx-frames-irq", 4),
    number("tx-usecs", 5),
    number("tx-frames", 6),
    number("tx-usecs-irq", 7),
    number("tx-frames-irq", 8),
    number("stats-block-usecs", 9),
    switch("adaptive-rx", 10),
    switch("adaptive-tx", 11),
    number("pkt-rate-low", 12),
    number("rx-usecs-low", 13),
    number("rx-frames-low", 14),
    number("tx-usecs-low", 15),
    number("tx-frames-low", 16),
    number("pkt-rate-high", 17),
    number("rx-usecs-high", 18),
    number("rx-frames-high", 19),
    number("tx-usecs-high", 20),
    number("tx-frames-high", 21),
    number("sample-interval", 22),
];

/// `struct ethtool_pauseparam`.
const PAUSE: &[Value] = &[switch("autoneg", 1), switch("rx", 2), switch("tx", 3)];

/// `struct ethtool_eee`.
const EEE_VALUES: &[Value] =
    &[switch("enabled", 5), switch("tx-lpi", 6), number("tx-lpi-timer", 7)];

/// A structure and its two commands.
struct Form {
    get: u32,
    set: u32,
    words: usize,
    values: &'static [Value],
}

const fn form(get: u32, set: u32, words: usize, values: &'static [Value]) -> Form {
    Form { get, set, words, values }
}

/// The structure of a group; none for those that are bits with names, and for those that are no group of ethtool.
fn form_of(group: Group) -> Option<Form> {
    Some(match group {
        Group::Rings => form(ETHTOOL_GRINGPARAM, ETHTOOL_SRINGPARAM, AMOUNTS, RINGS),
        Group::Channels => form(ETHTOOL_GCHANNELS, ETHTOOL_SCHANNELS, AMOUNTS, CHANNELS),
        Group::Coalesce => form(ETHTOOL_GCOALESCE, ETHTOOL_SCOALESCE, COALESCE, MODERATION),
        Group::Pause => form(ETHTOOL_GPAUSEPARAM, ETHTOOL_SPAUSEPARAM, FOUR, PAUSE),
        Group::Eee => form(ETHTOOL_GEEE, ETHTOOL_SEEE, EEE, EEE_VALUES),
        _ => return None,
    })
}

/// All values of a group, as far as the device has them.
///
/// **Caveat** `struct ethtool_coalesce` has no sign for "the driver has no such parameter": those are told as 0 and off,
/// and what is asked of them is refused or ignored.
///
/// **Errors** `Unsupported` for drivers without the group.
pub fn group(dev: &str, group: Group) -> Result<Pairs, HostError> {
    match (group, form_of(group)) {
        (_, Some(form)) => Ok(parse(form.values, &words(group.name(), dev, form.get, form.words)?)),
        (Group::Features, _) => Ok(feature_pairs(&features(dev)?)),
        (Group::PrivFlags, _) => Ok(switch_pairs(private_flags(dev)?)),
        (Group::LinkModes, _) => Ok(link_pairs(&link_modes(dev)?)),
        (Group::Fec, _) => fec_pairs(&fec(dev)?),
        _ => Err(HostError::malformed(group.name(), 0, "not a group of ethtool's ioctl")),
    }
}

/// The largest values of a group, where the device says them.
pub fn group_limits(dev: &str, group: Group) -> Result<Pairs, HostError> {
    match form_of(group) {
        Some(form) => Ok(limits(form.values, &words(group.name(), dev, form.get, form.words)?)),
        None => Ok(Pairs::default()),
    }
}

/// Asks for values of a group; read them back to see what came of it.
///
/// **Source** net/ethtool/ioctl.c `ethtool_set_ringparam`, `ethtool_set_channels`, `ethtool_set_coalesce`,
/// `ethtool_set_pauseparam`, `ethtool_set_eee`, `ethtool_set_features`, `ethtool_set_value`.
pub fn set_group(dev: &str, group: Group, asked: &Pairs) -> Result<(), HostError> {
    match (group, form_of(group)) {
        (_, Some(form)) => {
            let mut buffer = words(group.name(), dev, form.get, form.words)?;
            change(group, form.values, &mut buffer, asked)?;
            put(&mut buffer, &[form.set]);
            order(&format!("set {} {asked} of", group.name()), dev, &mut buffer)
        }
        (Group::Features, _) => set_features(dev, &switches(group, asked)?),
        (Group::PrivFlags, _) => set_private_flags(dev, &switches(group, asked)?),
        (Group::LinkModes, _) => set_link_modes(dev, asked),
        (Group::Fec, _) => set_fec(dev, asked),
        _ => Err(HostError::malformed(group.name(), 0, "not a group of ethtool's ioctl")),
    }
}

/// Reads a filled `struct ethtool_coalesce`.
pub(super) fn moderation(buffer: &[u8]) -> Pairs {
    parse(MODERATION, buffer)
}

/// Writes what is asked for into a filled `struct ethtool_coalesce`.
pub(super) fn change_moderation(buffer: &mut [u8], asked: &Pairs) -> Result<(), HostError> {
    change(Group::Coalesce, MODERATION, buffer, asked)
}

fn most(value: &Value, buffer: &[u8]) -> Option<u32> {
    value.max.and_then(|word| word32(buffer, word)).filter(|max| *max > 0)
}

fn parse(values: &[Value], buffer: &[u8]) -> Pairs {
    let mut pairs = Pairs::default();
    for value in values {
        if value.max.is_some() && most(value, buffer).is_none() {
            continue;
        }
        match word32(buffer, value.word) {
            Some(0) if value.is_switch => pairs.push(value.name, "off"),
            Some(_) if value.is_switch => pairs.push(value.name, "on"),
            Some(number) => pairs.push(value.name, number),
            None => {}
        }
    }
    pairs
}

fn limits(values: &[Value], buffer: &[u8]) -> Pairs {
    let mut pairs = Pairs::default();
    for value in values {
        if let Some(max) = most(value, buffer) {
            pairs.push(value.name, max);
        }
    }
    pairs
}

fn change(
    group: Group,
    values: &[Value],
    buffer: &mut [u8],
    asked: &Pairs,
) -> Result<(), HostError> {
    let wrong = |why: String| HostError::malformed(group.name(), 0, why);
    for (name, text) in asked.iter() {
        let value = values.iter().find(|value| value.name == name).ok_or_else(|| {
            let known: Vec<&str> = values.iter().map(|value| value.name).collect();
            wrong(format!("{name} can't be set by ioctl; these can: {}", known.join(", ")))
        })?;
        let word = if value.is_switch { on_off(text).map(u32::from) } else { text.parse().ok() };
        let word = word.ok_or_else(|| {
            let expected =
                if value.is_switch { "on or off" } else { "a number from 0 to 4294967295" };
            wrong(format!("{name}={text}: expected {expected}"))
        })?;
        let place = buffer.as_chunks_mut().0.get_mut(value.word);
        *place.ok_or_else(|| wrong("a cut answer".into()))? = word.to_ne_bytes();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::ethtool::group as over_netlink;
    use proptest::prelude::*;

    fn filled(words: usize) -> Vec<u8> {
        (0..words as u32).flat_map(|word| (word + 1000).to_ne_bytes()).collect()
    }

    #[test]
    fn names_are_those_over_netlink() {
        for group in Group::all() {
            let Some(form) = form_of(group) else { continue };
            let known = over_netlink::names(group);
            for value in form.values {
                assert!(known.contains(&value.name), "{group:?}: {}", value.name);
                assert!(value.word > 0 && value.word < form.words, "{}", value.name);
            }
        }
    }

    #[test]
    fn what_is_asked_for_is_what_would_be_read_and_the_rest_stays() {
        for (group, text) in [
            (Group::Rings, "rx=4096 tx=512"),
            (Group::Channels, "combined=4"),
            (Group::Coalesce, "rx-usecs=50 adaptive-rx=off sample-interval=3"),
            (Group::Pause, "autoneg=off rx=on"),
            (Group::Eee, "enabled=off tx-lpi-timer=17"),
        ] {
            let (form, asked) = (form_of(group).unwrap(), text.parse::<Pairs>().unwrap());
            let before = filled(form.words);
            let mut buffer = before.clone();
            change(group, form.values, &mut buffer, &asked).unwrap();
            assert_eq!(parse(form.values, &buffer).named_in(&asked), asked);
            let moved = buffer.chunks(4).zip(before.chunks(4)).filter(|(a, b)| a != b).count();
            assert_eq!(moved, asked.iter().count(), "{text}");
        }
    }

    #[test]
    fn what_a_device_has_none_of_is_left_out() {
        let words = [0x10, 4096, 0, 0, 4096, 512, 0, 0, 256];
        let buffer: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
        assert_eq!(parse(RINGS, &buffer).to_string(), "rx=512 tx=256");
        assert_eq!(limits(RINGS, &buffer).to_string(), "rx=4096 tx=4096");
    }

    #[test]
    fn what_the_structure_has_no_place_for_is_refused_with_what_it_has() {
        for (group, text, words) in [
            (Group::Rings, "tx-push=on", "tx-push can't be set by ioctl; these can: rx, rx-mini"),
            (Group::Coalesce, "cqe-mode-rx=on", "cqe-mode-rx can't be set"),
            (Group::Pause, "rx=1", "on or off"),
            (Group::Rings, "rx=-1", "a number from 0"),
        ] {
            let form = form_of(group).unwrap();
            let asked = text.parse().unwrap();
            let error = change(group, form.values, &mut filled(form.words), &asked).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            for form in Group::all().filter_map(form_of) {
                let _ = parse(form.values, &bytes);
                let _ = limits(form.values, &bytes);
                let mut short = bytes.clone();
                let _ = change(Group::Pause, form.values, &mut short, &"rx=on".parse().unwrap());
            }
        }
    }
}
