//! Statistics of each queue, under one name for all drivers that have them.

use std::collections::BTreeMap;

use rxpath_core::IntoMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Question, QueueKind, all, question};
use crate::netlink::genl;
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Attrs;
use crate::{HostError, listed};

// NETDEV_A_QSTATS_*
const IFINDEX: u16 = 1;
const QUEUE_TYPE: u16 = 2;
const QUEUE_ID: u16 = 3;
const SCOPE: u16 = 4;
/// The first of those in `queue_stats.txt`.
const FIRST: u16 = 8;
/// `NETDEV_QSTATS_SCOPE_QUEUE`.
const SCOPE_QUEUE: u32 = 1;
/// What a card dropped on a queue because the host had posted no buffer for it.
const OVERRUNS: &str = "rx-hw-drop-overruns";

/// Statistics of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueStats {
    /// What the queue does.
    pub kind: QueueKind,
    /// Its number among its kind.
    pub index: u32,
    /// Counters by the kernel's names (`rx-packets`, `rx-hw-drops`); those that the driver lacks are left out.
    pub counters: BTreeMap<String, u64>,
}

impl QueueStats {
    /// What the card dropped on this queue for want of a buffer, with its name in a snapshot, behind that of the device:
    /// `0.rx-hw-drop-overruns`; `None` where the driver does not count it.
    pub fn overruns(&self) -> Option<(String, u64)> {
        let packets = *self.counters.get(OVERRUNS)?;
        Some((format!("{}.{OVERRUNS}", self.index), packets))
    }
}

impl Netlink {
    /// Statistics of each queue of a device by its index (6.9).
    ///
    /// **Errors** `Unsupported` for drivers without them.
    pub fn queue_stats(&mut self, ifindex: u32) -> Result<Vec<QueueStats>, HostError> {
        let body = question(Question::QueueStats).u32(IFINDEX, ifindex).u32(SCOPE, SCOPE_QUEUE);
        let replies = self.netdev_dump("queue statistics", &body)?;
        all(&replies, ifindex, IFINDEX, parse_queue_stats)
    }
}

/// Reads the statistics of one queue (net/core/netdev-genl.c `netdev_nl_stats_queue`); `None` for those of a whole device.
pub fn parse_queue_stats(payload: &[u8]) -> Result<Option<QueueStats>, HostError> {
    let attrs = Attrs::after(payload, genl::HEADER)?;
    let kind = attrs.uint(QUEUE_TYPE).and_then(QueueKind::read);
    let (Some(kind), Some(index)) = (kind, attrs.u32(QUEUE_ID)) else { return Ok(None) };
    let names = listed::lines(include_str!("queue_stats.txt")).zip(FIRST..);
    let counters = names.filter_map(|(name, number)| Some((name.to_owned(), attrs.uint(number)?)));
    Ok(Some(QueueStats { kind, index, counters: counters.into_map() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_lacks_is_left_out() {
        let body = question(Question::QueueStats)
            .u32(IFINDEX, 2)
            .u32(QUEUE_TYPE, 0)
            .u32(QUEUE_ID, 5)
            .u32(FIRST, 1000)
            .raw(FIRST + 5, &3u64.to_ne_bytes())
            .u32(200, 1);
        let stats = parse_queue_stats(body.bytes()).unwrap().unwrap();
        assert_eq!((stats.kind, stats.index), (QueueKind::Rx, 5));
        assert_eq!((stats.counters["rx-packets"], stats.counters["rx-hw-drops"]), (1000, 3));
        assert_eq!((stats.counters.len(), stats.overruns()), (2, None));
        let more = body.u32(FIRST + 6, 7);
        let stats = parse_queue_stats(more.bytes()).unwrap().unwrap();
        assert_eq!(stats.overruns(), Some(("5.rx-hw-drop-overruns".into(), 7)));
        let whole = question(Question::QueueStats).u32(IFINDEX, 2).u32(FIRST, 1);
        assert_eq!(parse_queue_stats(whole.bytes()).unwrap(), None);
    }
}
