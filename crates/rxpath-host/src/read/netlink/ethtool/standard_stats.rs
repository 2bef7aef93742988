//! Statistics that IEEE 802.3 and RMON define, under one name for all drivers that have them.

use std::collections::BTreeMap;

use super::bitset;
use super::command::{Command, ETHTOOL, device};
use crate::netlink::genl;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Attrs;
use crate::{HostError, listed};

/// `ETHTOOL_A_STATS_*`.
pub(crate) mod attr {
    pub(crate) const GROUPS: u16 = 3;
    pub(crate) const GRP: u16 = 4;
    pub(crate) const GRP_ID: u16 = 2;
    pub(crate) const GRP_STAT: u16 = 4;
}

/// Groups by number, as they stand before the names in `standard_stats.txt`.
const GROUPS: [&str; 4] = ["phy.", "mac.", "ctrl.", "rmon."];

/// Statistics by `group.name`: `mac.FramesReceivedOK`. Those that the driver lacks are left out.
pub type StandardStats = BTreeMap<String, u64>;

impl Netlink {
    /// The standard statistics of a device; empty for drivers that have none.
    pub fn standard_stats(&mut self, dev: &str) -> Result<StandardStats, HostError> {
        let groups: Vec<u32> = (0..GROUPS.len() as u32).collect();
        let body = device(Command::StatsGet, dev).nest(attr::GROUPS, &bitset::numbered(&groups));
        let op = format!("read standard statistics of {dev}");
        parse_standard_stats(&self.family_get(&op, ETHTOOL, &body)?)
    }
}

/// Reads an answer to the statistics question (net/ethtool/stats.c `stats_fill_reply`).
pub fn parse_standard_stats(payload: &[u8]) -> Result<StandardStats, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    let mut found = StandardStats::new();
    for (_, bytes) in attrs.iter().filter(|(kind, _)| *kind == attr::GRP) {
        let group = Attrs::parse(bytes)?;
        let number = group.u32(attr::GRP_ID).unwrap_or(u32::MAX);
        let Some(prefix) = GROUPS.get(number as usize) else { continue };
        let names = listed::lines(include_str!("standard_stats.txt"));
        let names: Vec<&str> = names.filter(|name| name.starts_with(prefix)).collect();
        for (_, bytes) in group.iter().filter(|(kind, _)| *kind == attr::GRP_STAT) {
            // Each statistic is a nest with one number, whose type is the statistic's own.
            let stat = Attrs::parse(bytes)?;
            for (kind, _) in stat.iter() {
                if let (Some(name), Some(value)) = (names.get(usize::from(kind)), stat.uint(kind)) {
                    found.insert((*name).to_owned(), value);
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::Body;

    #[test]
    fn statistics_have_the_standards_names() {
        let stat = |kind: u16, value: u64| Body::default().raw(kind, &value.to_ne_bytes());
        let mac = Body::default()
            .u32(attr::GRP_ID, 1)
            .nest(attr::GRP_STAT, &stat(3, 77))
            .nest(attr::GRP_STAT, &stat(4, 2))
            .nest(attr::GRP_STAT, &stat(500, 9));
        let strange = Body::default().u32(attr::GRP_ID, 99).nest(attr::GRP_STAT, &stat(0, 1));
        let body = Body::new(&[32, 1, 0, 0]).nest(attr::GRP, &mac).nest(attr::GRP, &strange);
        let found = parse_standard_stats(body.bytes()).unwrap();
        assert_eq!(found["mac.FramesReceivedOK"], 77);
        assert_eq!(found["mac.FrameCheckSequenceErrors"], 2);
        assert_eq!(found.len(), 2, "unknown groups and numbers are left alone");
    }
}
