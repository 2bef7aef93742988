//! Flow rules: how many there are and how many there can be. Generic netlink has nothing for them.
//!
//! **Source** linux/ethtool.h `ETHTOOL_GRXRINGS`, `ETHTOOL_GRXCLSRLCNT`; net/ethtool/ioctl.c `ethtool_get_rxnfc`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HostError;
use crate::ioctl::number::{ETHTOOL_GRXCLSRLCNT, ETHTOOL_GRXRINGS};
use crate::ioctl::{RXNFC, ask};
use crate::netlink::wire::{word32, word64};

/// `RX_CLS_LOC_SPECIAL`: a flag in the size of the table.
const SPECIAL: u64 = 1 << 31;
/// `rule_cnt` as a word of `struct ethtool_rxnfc`.
const RULE_COUNT: usize = 46;

/// Flow rules of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlowRules {
    /// Queues that a rule can name; `None` when the driver does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rings_count: Option<u64>,
    /// Rules in force: they choose the queue before RSS does.
    pub rules_count: u32,
    /// Rules that there is room for; `None` when the driver does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules_max: Option<u64>,
}

/// Flow rules of a device.
///
/// **Errors** `Unsupported` for drivers without them.
pub fn flow_rules(dev: &str) -> Result<FlowRules, HostError> {
    let count = ask("count the flow rules of", dev, &[ETHTOOL_GRXCLSRLCNT], RXNFC)?;
    Ok(FlowRules {
        rings_count: receive_queues(dev).ok().map(u64::from),
        rules_count: word32(&count, RULE_COUNT).unwrap_or_default(),
        rules_max: word64(&count, 1).map(|max| max & !SPECIAL).filter(|max| *max > 0),
    })
}

/// How many queues RSS can spread to.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_rxrings`, `ETHTOOL_GRXRINGS`.
pub fn receive_queues(dev: &str) -> Result<u32, HostError> {
    let rings = ask("read the number of receive queues of", dev, &[ETHTOOL_GRXRINGS], RXNFC)?;
    Ok(word32(&rings, 2).unwrap_or_default())
}
