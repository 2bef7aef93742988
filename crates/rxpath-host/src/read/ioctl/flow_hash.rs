//! Which fields of a packet the device hashes to choose its queue.
//!
//! **Source** linux/ethtool.h `ETHTOOL_GRXFH`, `struct ethtool_rxnfc`; net/ethtool/ioctl.c `ethtool_get_rxfh_fields`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HostError;
use crate::ioctl::number::ETHTOOL_GRXFH;
use crate::ioctl::{RXNFC, ask};
use crate::netlink::wire::{word32, word64};

rxpath_core::named! {
    // The numbers are those of `TCP_V4_FLOW` and the like (linux/ethtool.h).
    /// Kinds of flows that are asked about.
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "lowercase")]
    pub enum FlowKind {
        /// TCP over IPv4.
        Tcp4 = 1 => "tcp4",
        /// UDP over IPv4.
        Udp4 = 2 => "udp4",
        /// TCP over IPv6.
        Tcp6 = 5 => "tcp6",
        /// UDP over IPv6.
        Udp6 = 6 => "udp6",
        /// Other IPv4.
        Ip4 = 0x10 => "ip4",
        /// Other IPv6.
        Ip6 = 0x11 => "ip6",
    }
    /// As the `ethtool` program calls it: `udp4`.
    pub fn name(self) -> &'static str
}

/// Fields that are hashed, as the bits `RXH_*` of linux/ethtool.h; written as the letters of the `ethtool` program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct HashFields(pub u64);

/// Bit and letter.
const LETTERS: [(u64, char); 10] = [
    (1 << 1, 'm'),
    (1 << 2, 'v'),
    (1 << 3, 't'),
    (1 << 4, 's'),
    (1 << 5, 'd'),
    (1 << 6, 'f'),
    (1 << 7, 'n'),
    (1 << 8, 'e'),
    (1 << 9, 'l'),
    (1 << 31, 'r'),
];

impl HashFields {
    /// `RXH_IP_SRC | RXH_IP_DST`.
    pub const ADDRESSES: u64 = 1 << 4 | 1 << 5;
    /// `RXH_L4_B_0_1 | RXH_L4_B_2_3`.
    pub const PORTS: u64 = 1 << 6 | 1 << 7;
    /// `RXH_DISCARD`: such packets are dropped.
    pub(crate) const DISCARD: u64 = 1 << 31;

    /// Both ports are hashed.
    pub fn has_ports(self) -> bool {
        self.0 & Self::PORTS == Self::PORTS
    }
}

impl fmt::Display for HashFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (bit, letter) in LETTERS {
            if self.0 & bit != 0 {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

impl From<HashFields> for String {
    fn from(fields: HashFields) -> Self {
        fields.to_string()
    }
}

impl TryFrom<String> for HashFields {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.chars().try_fold(Self(0), |fields, letter| {
            let bit = LETTERS.iter().find(|(_, known)| *known == letter).map(|(bit, _)| bit);
            let bit = bit.ok_or_else(|| format!("`{letter}` is no field; one of mvtsdfnelr"))?;
            Ok(Self(fields.0 | bit))
        })
    }
}

/// Which fields of this kind of flow a device hashes.
///
/// **Errors** `Unsupported` for drivers that don't say.
pub fn flow_hash(dev: &str, kind: FlowKind) -> Result<HashFields, HostError> {
    let op = format!("read the hashed fields of {} of", kind.name());
    parse_flow_hash(&ask(&op, dev, &[ETHTOOL_GRXFH, kind as u32], RXNFC)?, kind)
}

/// Reads an answered `struct ethtool_rxnfc`.
pub fn parse_flow_hash(buffer: &[u8], kind: FlowKind) -> Result<HashFields, HostError> {
    match (word32(buffer, 1), word64(buffer, 1)) {
        (Some(flow), Some(data)) if flow == kind as u32 => Ok(HashFields(data)),
        _ => Err(HostError::malformed("ethtool", 0, "an answer about another kind of flow")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ioctl::put;

    #[test]
    fn fields_have_the_letters_of_the_ethtool_program() {
        let fields = HashFields(HashFields::ADDRESSES | HashFields::PORTS);
        assert_eq!(fields.to_string(), "sdfn");
        assert_eq!(HashFields::try_from("sdfn".to_owned()).unwrap(), fields);
        assert!(fields.has_ports() && !HashFields(1 << 6).has_ports());
        assert!(HashFields::try_from("sx".to_owned()).is_err());
        assert_eq!(HashFields(0).to_string(), "");
    }

    #[test]
    fn an_answer_about_another_kind_is_refused() {
        let mut buffer = [0; 16];
        put(&mut buffer, &[ETHTOOL_GRXFH, FlowKind::Udp4 as u32, 0x30, 0]);
        assert_eq!(parse_flow_hash(&buffer, FlowKind::Udp4).unwrap().to_string(), "sd");
        assert!(parse_flow_hash(&buffer, FlowKind::Tcp4).is_err());
        assert!(parse_flow_hash(&buffer[..8], FlowKind::Udp4).is_err());
    }
}
