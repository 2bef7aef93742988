//! The link: speed, duplex, modes offered and accepted, kind of port, and why it is down.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::{Command, EthtoolQuestion};
use super::{bitset, switch};
use crate::HostError;
use crate::netlink::genl;
use crate::netlink::wire::Attrs;

/// `ETHTOOL_A_LINKMODES_*`, `_LINKINFO_*` and `_LINKSTATE_*`.
pub(crate) mod attr {
    pub(crate) const AUTONEG: u16 = 2;
    pub(crate) const OURS: u16 = 3;
    pub(crate) const PEER: u16 = 4;
    pub(crate) const SPEED: u16 = 5;
    pub(crate) const DUPLEX: u16 = 6;
    pub(crate) const LANES: u16 = 9;
    pub(crate) const INFO_PORT: u16 = 2;
    pub(crate) const STATE_LINK: u16 = 2;
    pub(crate) const STATE_EXT_STATE: u16 = 5;
    pub(crate) const STATE_EXT_DOWN_CNT: u16 = 7;
}

/// `SPEED_UNKNOWN` (linux/ethtool.h).
const SPEED_UNKNOWN: u32 = u32::MAX;

/// Duplex of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Duplex {
    /// One direction at a time.
    Half,
    /// Both.
    Full,
}

/// Kind of port (`PORT_*`, linux/ethtool.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Port {
    /// Twisted pair.
    TwistedPair,
    /// Attachment unit.
    Aui,
    /// Media independent interface.
    Mii,
    /// Fibre.
    Fibre,
    /// Coaxial.
    Bnc,
    /// Direct attach copper.
    DirectAttach,
    /// None: backplane, virtual.
    None,
    /// Another.
    Other,
}

impl Duplex {
    /// `DUPLEX_*` (linux/ethtool.h); `None` for unknown.
    pub(crate) fn numbered(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Half),
            1 => Some(Self::Full),
            _ => None,
        }
    }
}

impl Port {
    /// By its number, where the driver gave one.
    pub(crate) fn numbered(number: Option<u8>) -> Self {
        match number {
            Some(0) => Self::TwistedPair,
            Some(1) => Self::Aui,
            Some(2) => Self::Mii,
            Some(3) => Self::Fibre,
            Some(4) => Self::Bnc,
            Some(5) => Self::DirectAttach,
            Some(0xef) => Self::None,
            _ => Self::Other,
        }
    }
}

/// Modes of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkModes {
    /// Whether speed and duplex are negotiated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoneg: Option<bool>,
    /// Speed in Mb/s; `None` when unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_mbps: Option<u32>,
    /// Duplex; `None` when unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplex: Option<Duplex>,
    /// Lanes (5.13).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<u32>,
    /// Modes that the device can do, advertised or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supported: Vec<String>,
    /// Modes that it advertises.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advertised: Vec<String>,
    /// Modes that the other end advertises.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peer: Vec<String>,
}

/// State of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkState {
    /// Whether there is a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// Why there is none (`enum ethtool_link_ext_state`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extended_state: Option<u8>,
    /// How often it was lost (6.4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_count: Option<u32>,
}

impl LinkModes {
    /// The highest speed among the modes that the device can do, in Mb/s.
    pub fn supported_mbps(&self) -> Option<u32> {
        self.supported.iter().filter_map(|mode| mode_mbps(mode)).max()
    }
}

/// The speed in a mode's name: `10000baseT/Full` is 10,000 Mb/s.
fn mode_mbps(mode: &str) -> Option<u32> {
    mode.split_once("base")?.0.parse().ok()
}

/// Modes of a link.
pub const LINK_MODES: EthtoolQuestion<LinkModes> =
    EthtoolQuestion::new("link modes", Command::LinkModesGet, parse_link_modes);

/// Kind of port.
pub const LINK_PORT: EthtoolQuestion<Port> =
    EthtoolQuestion::new("link information", Command::LinkInfoGet, parse_link_info);

/// State of a link.
pub const LINK_STATE: EthtoolQuestion<LinkState> =
    EthtoolQuestion::new("link state", Command::LinkStateGet, parse_link_state);

/// Reads an answer to the link modes question (net/ethtool/linkmodes.c `linkmodes_fill_reply`).
pub fn parse_link_modes(payload: &[u8]) -> Result<LinkModes, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    let ours = bitset::read(&attrs, attr::OURS)?;
    Ok(LinkModes {
        autoneg: switch(&attrs, attr::AUTONEG),
        speed_mbps: attrs.u32(attr::SPEED).filter(|speed| !matches!(*speed, 0 | SPEED_UNKNOWN)),
        duplex: attrs.u8(attr::DUPLEX).and_then(Duplex::numbered),
        lanes: attrs.u32(attr::LANES),
        supported: ours.iter().map(|(name, _)| name.clone()).collect(),
        advertised: ours.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect(),
        peer: bitset::names(&attrs, attr::PEER)?.unwrap_or_default(),
    })
}

/// Reads an answer to the link information question (net/ethtool/linkinfo.c).
pub fn parse_link_info(payload: &[u8]) -> Result<Port, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    Ok(Port::numbered(attrs.u8(attr::INFO_PORT)))
}

/// Reads an answer to the link state question (net/ethtool/linkstate.c).
pub fn parse_link_state(payload: &[u8]) -> Result<LinkState, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    Ok(LinkState {
        up: switch(&attrs, attr::STATE_LINK),
        extended_state: attrs.u8(attr::STATE_EXT_STATE),
        down_count: attrs.u32(attr::STATE_EXT_DOWN_CNT),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::Body;

    #[test]
    fn an_unknown_speed_is_no_speed_and_modes_have_theirs() {
        let ours =
            bitset::named(&[("1000baseT/Full", true), ("10000baseT/Full", false), ("TP", true)]);
        let body = Body::new(&[4, 1, 0, 0]).u32(attr::SPEED, u32::MAX).u8(attr::DUPLEX, 255);
        let modes = parse_link_modes(body.nest(attr::OURS, &ours).bytes()).unwrap();
        assert_eq!((modes.speed_mbps, modes.duplex), (None, None));
        assert_eq!(modes.advertised, ["1000baseT/Full", "TP"]);
        assert_eq!(modes.supported_mbps(), Some(10_000));
    }
}
