//! Forward error correction: which mode is in force, and how many blocks it had to correct.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::{Command, EthtoolQuestion};
use super::{bitset, switch};
use crate::HostError;
use crate::netlink::genl;
use crate::netlink::wire::Attrs;

/// `ETHTOOL_A_FEC_*`.
pub(crate) mod attr {
    pub(crate) const MODES: u16 = 2;
    pub(crate) const AUTO: u16 = 3;
    pub(crate) const ACTIVE: u16 = 4;
    pub(crate) const STATS: u16 = 5;
    pub(crate) const STAT_CORRECTED: u16 = 2;
    pub(crate) const STAT_UNCORRECTABLE: u16 = 3;
}

/// Link mode bits of FEC (linux/ethtool.h, `enum ethtool_link_mode_bit_indices`).
const MODES: [(u32, &str); 4] = [(49, "None"), (50, "RS"), (51, "BASER"), (74, "LLRS")];

/// FEC of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fec {
    /// Modes that are configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configured: Option<Vec<String>>,
    /// The driver chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto: Option<bool>,
    /// The mode in force; absent while the link is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<String>,
    /// Blocks that were corrected, on all lanes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected_blocks: Option<u64>,
    /// Blocks that could not be, on all lanes: lost frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncorrectable_blocks: Option<u64>,
}

/// FEC of a device.
///
/// **Errors** `Unsupported` for drivers without it.
pub const FEC: EthtoolQuestion<Fec> =
    EthtoolQuestion::new("FEC", Command::FecGet, parse_fec).with_statistics();

/// Reads an answer to the FEC question (net/ethtool/fec.c `fec_fill_reply`, `fec_put_stats`).
///
/// The counters are arrays: the total, then one number for each lane where the driver has them.
pub fn parse_fec(payload: &[u8]) -> Result<Fec, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    let stats = attrs.nest(attr::STATS)?;
    let active = attrs.u32(attr::ACTIVE).map(|bit| {
        let known = MODES.iter().find(|(number, _)| *number == bit);
        known.map_or_else(|| format!("link mode bit {bit}"), |(_, name)| (*name).to_owned())
    });
    Ok(Fec {
        configured: bitset::names(&attrs, attr::MODES)?,
        auto: switch(&attrs, attr::AUTO),
        active,
        corrected_blocks: stats.u64(attr::STAT_CORRECTED),
        uncorrectable_blocks: stats.u64(attr::STAT_UNCORRECTABLE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::Body;

    #[test]
    fn the_first_of_an_array_is_the_total() {
        let corrected: Vec<u8> = [7u64, 3, 4].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let stats = Body::default().raw(attr::STAT_CORRECTED, &corrected);
        let body = Body::new(&[30, 1, 0, 0])
            .nest(attr::MODES, &bitset::named(&[("RS", true), ("BASER", false)]))
            .u8(attr::AUTO, 0)
            .u32(attr::ACTIVE, 50)
            .nest(attr::STATS, &stats);
        let fec = parse_fec(body.bytes()).unwrap();
        assert_eq!((fec.active.as_deref(), fec.corrected_blocks), (Some("RS"), Some(7)));
        assert_eq!((fec.auto, fec.uncorrectable_blocks), (Some(false), None));
        assert_eq!(fec.configured, Some(vec!["RS".to_owned()]));
    }
}
