//! ethtool as an ioctl. Some topics have nothing else: driver statistics with their names, driver information, which
//! fields are hashed, flow rules, coalescing of one queue, RSS, time stamps. The others are read this way where the kernel
//! does not report them over netlink: rings, channels, coalescing, features, pause, the link.
//!
//! Generic netlink has no command for driver statistics (`ETHTOOL_MSG_STATS_GET` gives the standard
//! groups only; Documentation/networking/ethtool-netlink.rst, "Request translation").

mod features;
mod flow_hash;
mod link;
mod link_mode;
pub(crate) mod per_queue;
pub(crate) mod rss;
mod rules;
mod settings;
pub(crate) mod stamps;

pub use features::{features, parse_feature_blocks, private_flags};
pub use flow_hash::{FlowKind, HashFields, flow_hash, parse_flow_hash};
pub use link::{eee, link_modes, link_port, link_state, parse_eee_words, parse_link_settings};
pub use per_queue::{parse_per_queue, queue_coalesce, queue_moderation};
pub use rss::{parse_rxfh, rss};
pub use rules::{FlowRules, flow_rules, receive_queues};
pub use settings::{channels, coalesce, fec, group, group_limits, parse_fec_words, pause, rings};
pub use stamps::{StampConfig, stamp_config};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HostError;
use crate::ioctl::ask;
use crate::ioctl::number::{ETHTOOL_GDRVINFO, ETHTOOL_GSTATS, ETHTOOL_GSTRINGS, STRING};
use crate::netlink::wire::{text, word32, word64};

const ETH_SS_STATS: u32 = 1;
const DRVINFO: usize = 196;
const DRVINFO_STATS: usize = (4 + 5 * STRING + 12 + 4) / 4;

/// More statistics than any driver has; a larger number is a broken driver.
const STATS_MAX: usize = 65_536;

/// Which driver runs a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DriverInfo {
    /// `veth`, `ixgbe`, ...
    pub driver: String,
    /// Its version; the kernel's for most drivers.
    pub version: String,
    /// Firmware; empty for none.
    pub firmware: String,
    /// PCI address and the like; empty for virtual devices.
    pub bus: String,
    /// How many driver statistics there are.
    pub statistics_count: u32,
}

/// Driver information of a device of this thread's namespace.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_drvinfo`.
pub fn driver_info(dev: &str) -> Result<DriverInfo, HostError> {
    ask("read the driver of", dev, &[ETHTOOL_GDRVINFO], DRVINFO).map(|buffer| parse_info(&buffer))
}

fn parse_info(buffer: &[u8]) -> DriverInfo {
    let part = |n: usize| text(&buffer[4 + n * STRING..4 + (n + 1) * STRING]);
    DriverInfo {
        driver: part(0),
        version: part(1),
        firmware: part(2),
        bus: part(3),
        statistics_count: word32(buffer, DRVINFO_STATS).unwrap_or_default(),
    }
}

/// Driver statistics by name, in the driver's order.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_stats`. **Cost** some drivers ask the hardware (ms).
/// **Caveat** a name that a driver repeats gets `#2`, `#3`, ... behind it.
pub fn driver_stats(dev: &str) -> Result<Vec<(String, u64)>, HostError> {
    let count = driver_info(dev)?.statistics_count as usize;
    if count == 0 {
        return Ok(Vec::new());
    }
    if count > STATS_MAX {
        let why = format!("{dev} claims {count} statistics");
        return Err(HostError::malformed("ethtool", 0, why));
    }
    // Room for a driver that gets queues between the calls: old kernels write what they have then.
    let room = 2 * count + 4096;
    let head = [ETHTOOL_GSTRINGS, ETH_SS_STATS, count as u32];
    let names = ask("read the statistics' names of", dev, &head, 12 + room * STRING)?;
    let head = [ETHTOOL_GSTATS, count as u32];
    let values = ask("read the statistics of", dev, &head, 8 + room * 8)?;
    Ok(pair(&names, &values))
}

/// Pairs a `struct ethtool_gstrings` with a `struct ethtool_stats`.
pub fn pair(names: &[u8], values: &[u8]) -> Vec<(String, u64)> {
    let names_count = word32(names, 2).unwrap_or_default() as usize;
    let values_count = word32(values, 1).unwrap_or_default() as usize;
    let mut found: Vec<(String, u64)> = Vec::new();
    let mut seen = std::collections::HashMap::<String, u32>::new();
    for n in 0..names_count.min(values_count).min(STATS_MAX) {
        let name = names.get(12 + n * STRING..12 + (n + 1) * STRING).map(text);
        let (Some(name), Some(value)) = (name, word64(values, n + 1)) else { break };
        let repeats = seen.entry(name.clone()).or_default();
        *repeats += 1;
        found.push((if *repeats > 1 { format!("{name}#{repeats}") } else { name }, value));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_values_are_paired_up_to_the_shorter() {
        let mut names = [ETHTOOL_GSTRINGS, ETH_SS_STATS, 3].map(u32::to_ne_bytes).concat();
        for name in ["rx_drops", "rx_drops", "rx_more"] {
            let mut field = name.as_bytes().to_vec();
            field.resize(STRING, 0);
            names.extend(field);
        }
        let mut values = [ETHTOOL_GSTATS, 2].map(u32::to_ne_bytes).concat();
        values.extend([5u64, 6].map(u64::to_ne_bytes).concat());
        let expected = [("rx_drops".to_owned(), 5), ("rx_drops#2".to_owned(), 6)];
        assert_eq!(pair(&names, &values), expected);
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error() {
        assert!(driver_info("rxp-none").is_err());
        assert!(driver_info("a-name-that-is-far-too-long").is_err());
    }

    proptest! {
        #[test]
        fn garbage_never_panics(
            names in proptest::collection::vec(any::<u8>(), 0..200),
            values in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = pair(&names, &values);
        }
    }
}
