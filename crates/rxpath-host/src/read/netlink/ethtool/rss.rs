//! Receive-side scaling: the indirection table, the hash key and the hash function.

use rxpath_core::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::{Command, ETHTOOL, EthtoolQuestion, device};
use crate::HostError;
use crate::netlink::genl;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Attrs;

/// `ETHTOOL_A_RSS_*`.
pub(crate) mod attr {
    pub(crate) const CONTEXT: u16 = 2;
    pub(crate) const HFUNC: u16 = 3;
    pub(crate) const INDIR: u16 = 4;
    pub(crate) const HKEY: u16 = 5;
    pub(crate) const INPUT_XFRM: u16 = 6;
}

/// Names of the bits in the hash function's number (net/ethtool/common.c, `rss_hash_func_strings`).
const FUNCTIONS: [&str; 3] = ["toeplitz", "xor", "crc32"];
/// Bits of the input transformation (linux/ethtool.h, `RXH_XFRM_SYM_XOR`, `RXH_XFRM_SYM_OR_XOR`).
/// The word for no transformation.
pub(crate) const NO_TRANSFORMATION: &str = "none";
const TRANSFORMATIONS: [&str; 2] = ["symmetric-xor", "symmetric-or-xor"];
/// `RXH_XFRM_NO_CHANGE`, `ETH_RSS_HASH_NO_CHANGE`.
const NO_CHANGE: u32 = 0xff;

/// RSS of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Rss {
    /// `toeplitz`, `xor` or `crc32`; `None` when the driver does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Queue of each hash value: entry `hash % length`.
    pub table: Vec<u32>,
    /// The hash key in hexadecimal; a gap when it was left out or the driver does not show it.
    pub key: Fact<String>,
    /// What is done to the fields before they are hashed (6.8): `symmetric-xor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transformation: Option<String>,
}

impl Rss {
    /// How many entries of the table lead to each of `queues` queues.
    pub fn shares(&self, queues: u32) -> Vec<usize> {
        let mut shares = vec![0; queues as usize];
        for queue in &self.table {
            if let Some(share) = shares.get_mut(*queue as usize) {
                *share += 1;
            }
        }
        shares
    }

    /// The key's bytes.
    pub(crate) fn key_bytes(&self) -> Option<Vec<u8>> {
        let digits = self.key.value()?.as_bytes();
        let (pairs, rest) = digits.as_chunks::<2>();
        if !rest.is_empty() {
            return None;
        }
        let hex = |digit: u8| char::from(digit).to_digit(16);
        pairs.iter().map(|[high, low]| Some((hex(*high)? << 4 | hex(*low)?) as u8)).collect()
    }
}

/// RSS of a device (6.3; before, [`crate::read::ioctl::rss()`]).
///
/// **Errors** `Unsupported` for drivers without it.
pub const RSS: EthtoolQuestion<Rss> = EthtoolQuestion::new("RSS", Command::RssGet, parse_rss);

impl Netlink {
    /// Numbers of the additional RSS contexts of a device (dump since 6.9).
    pub fn rss_contexts(&mut self, dev: &str) -> Result<Vec<u32>, HostError> {
        let body = device(Command::RssGet, dev);
        let replies = self.family_dump(&format!("read RSS contexts of {dev}"), ETHTOOL, &body)?;
        parse_rss_contexts(replies.iter().map(Vec::as_slice))
    }
}

/// Reads an answer to the RSS question (net/ethtool/rss.c `rss_fill_reply`).
pub fn parse_rss(payload: &[u8]) -> Result<Rss, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    let table = attrs.get(attr::INDIR).unwrap_or_default();
    let table = table.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word)).collect();
    let key = attrs.get(attr::HKEY).unwrap_or_default();
    Ok(Rss {
        function: attrs.u32(attr::HFUNC).and_then(function),
        table,
        key: key_fact(key),
        transformation: attrs.u32(attr::INPUT_XFRM).and_then(transformation),
    })
}

/// Reads the numbers of the contexts in the answers of a dump; the device's own table is no context.
pub fn parse_rss_contexts<'a>(
    payloads: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<u32>, HostError> {
    let mut found = Vec::new();
    for payload in payloads {
        found.extend(Attrs::after(payload, genl::HEADER)?.u32(attr::CONTEXT).filter(|n| *n != 0));
    }
    Ok(found)
}

/// The name of the hash function whose bit is set.
pub(crate) fn function(bits: u32) -> Option<String> {
    named(&FUNCTIONS, bits)
}

/// The bit of a hash function.
pub(crate) fn function_bit(name: &str) -> Option<u8> {
    FUNCTIONS.iter().position(|known| *known == name).map(|at| 1 << at)
}

/// The bit of an input transformation; 0 for none.
pub(crate) fn transformation_bit(name: &str) -> Option<u8> {
    if name == NO_TRANSFORMATION {
        return Some(0);
    }
    TRANSFORMATIONS.iter().position(|known| *known == name).map(|at| 1 << at)
}

/// The name of the input transformation whose bit is set.
pub(crate) fn transformation(bits: u32) -> Option<String> {
    if bits == NO_CHANGE { None } else { named(&TRANSFORMATIONS, bits) }
}

fn named(names: &[&str], bits: u32) -> Option<String> {
    let known = names.iter().enumerate().find(|(bit, _)| bits >> bit & 1 == 1);
    known.map(|(_, name)| (*name).to_owned())
}

/// The key as hexadecimal digits; drivers that keep it to themselves give none.
pub(crate) fn key_fact(key: &[u8]) -> Fact<String> {
    let hex = || key.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    Fact::of((!key.is_empty()).then(hex), "the driver does not show its hash key")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::takes_a_cut_answer;
    use crate::netlink::wire::Body;

    fn sample() -> Vec<u8> {
        let table: Vec<u8> = [0u32, 1, 0, 1, 7].iter().flat_map(|n| n.to_ne_bytes()).collect();
        Body::new(&[38, 1, 0, 0])
            .u32(attr::HFUNC, 1)
            .raw(attr::INDIR, &table)
            .raw(attr::HKEY, &[0x6d, 0x5a, 0x00])
            .u32(attr::INPUT_XFRM, 1)
            .bytes()
            .to_vec()
    }

    #[test]
    fn table_key_and_function_are_read() {
        let rss = parse_rss(&sample()).unwrap();
        assert_eq!(rss.function.as_deref(), Some("toeplitz"));
        assert_eq!(rss.shares(2), [2, 2], "an entry for a queue that is not there counts for none");
        assert_eq!(rss.key_bytes().unwrap(), [0x6d, 0x5a, 0]);
        assert_eq!(rss.transformation.as_deref(), Some("symmetric-xor"));
        let silent = parse_rss(Body::new(&[38, 1, 0, 0]).bytes()).unwrap();
        assert!(silent.key.gap().is_some() && silent.table.is_empty());
    }

    takes_a_cut_answer!(sample(), cut => parse_rss(cut));
}
