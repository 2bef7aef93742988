//! Values that are asked of a group, by the table that reads them.
//!
//! The question it answers: *which attributes ask for these pairs, and what is wrong with a pair that has none?*

use crate::ioctl::put;
use crate::netlink::wire::Body;
use crate::pairs::Pairs;
use crate::read::netlink::ethtool::field::{Field, Kind, fields};
use crate::{Group, HostError};

/// The attributes that ask for these values of a group.
///
/// **Errors** `Malformed` for a name that the group does not have, and for a value of the wrong kind.
pub(crate) fn request(group: Group, mut body: Body, asked: &Pairs) -> Result<Body, HostError> {
    for (field, number) in requested(group, asked, |_| true)? {
        body = match field.kind {
            Kind::Number => body.u32(field.attribute.0, number),
            Kind::Switch | Kind::Word(_) => body.u8(field.attribute.0, number as u8),
        };
    }
    Ok(body)
}

/// Writes what is asked for into the group's structure of the ioctl.
///
/// **Errors** as [`request`]; then also for what the structure has no place for.
pub(crate) fn put_words(words: &mut [u8], group: Group, asked: &Pairs) -> Result<(), HostError> {
    for (field, number) in requested(group, asked, |field| field.word.is_some())? {
        put(&mut words[field.word.map_or(0, |(word, _)| word) * 4..], &[number]);
    }
    Ok(())
}

/// The fields that are asked for, with their numbers; `of` says which of the group's fields there are.
///
/// **Errors** `Malformed` for a name that is not among them, and for a value of the wrong kind.
pub(crate) fn requested(
    group: Group,
    asked: &Pairs,
    of: impl Fn(&Field) -> bool,
) -> Result<Vec<(&'static Field, u32)>, HostError> {
    let wrong = |why: String| HostError::malformed(group.name(), 0, why);
    let known = || fields(group).iter().filter(|field| of(field));
    let one = |(name, text)| {
        let field = known().find(|field| field.name == name).ok_or_else(|| {
            let names: Vec<&str> = known().map(|field| field.name).collect();
            wrong(format!("no value is called {name}; there are {}", names.join(", ")))
        })?;
        let number = field.parse(text);
        let number =
            number.ok_or_else(|| wrong(format!("{name}={text}: expected {}", field.expected())))?;
        Ok((field, number))
    };
    asked.iter().map(one).collect()
}
