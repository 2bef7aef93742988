//! Bitsets as ethtool writes them: names with values.
//!
//! **Source** net/ethtool/bitset.c; Documentation/networking/ethtool-netlink.rst, "Bit sets".

use crate::HostError;
use crate::netlink::wire::{Attrs, Body};

pub(super) const NOMASK: u16 = 1;
pub(super) const BITS: u16 = 3;
pub(super) const BITS_BIT: u16 = 1;
pub(super) const BIT_INDEX: u16 = 1;
pub(super) const BIT_NAME: u16 = 2;
pub(super) const BIT_VALUE: u16 = 3;

/// The bits of the set in attribute `kind`: with a mask each bit says its value, without one the listed bits are set.
pub(super) fn read(attrs: &Attrs<'_>, kind: u16) -> Result<Vec<(String, bool)>, HostError> {
    let set = attrs.nest(kind)?;
    let no_mask = set.get(NOMASK).is_some();
    let mut bits = Vec::new();
    for (_, bytes) in set.nest(BITS)?.iter().filter(|(kind, _)| *kind == BITS_BIT) {
        let bit = Attrs::parse(bytes)?;
        // Bits that this kernel reserves have an empty name.
        if let Some(name) = bit.text(BIT_NAME).filter(|name| !name.is_empty()) {
            bits.push((name, no_mask || bit.get(BIT_VALUE).is_some()));
        }
    }
    Ok(bits)
}

/// The names of the bits that are set; `None` when the attribute is not there.
pub(super) fn names(attrs: &Attrs<'_>, kind: u16) -> Result<Option<Vec<String>>, HostError> {
    if attrs.get(kind).is_none() {
        return Ok(None);
    }
    let bits = read(attrs, kind)?;
    Ok(Some(bits.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect()))
}

/// A set to send: each named bit to its value, all others as they are.
pub(crate) fn named(bits: &[(&str, bool)]) -> Body {
    let list = bits.iter().fold(Body::default(), |list, (name, on)| {
        let bit = Body::default().text(BIT_NAME, name);
        list.nest(BITS_BIT, &if *on { bit.raw(BIT_VALUE, &[]) } else { bit })
    });
    Body::default().nest(BITS, &list)
}

/// The whole content of a set by the numbers of its bits: what is not listed is off.
pub(super) fn numbered(bits: &[u32]) -> Body {
    let list = bits.iter().fold(Body::default(), |list, index| {
        list.nest(BITS_BIT, &Body::default().u32(BIT_INDEX, *index))
    });
    Body::default().raw(NOMASK, &[]).nest(BITS, &list)
}
