//! How long the counters of network cards lag behind what the cards did.

use std::time::Duration;

use rxpath_core::PathSide;
use rxpath_host::read::nic::losses::CardCounters;

use super::Hosts;

/// How often a trial waits until its counters are quiescent: before the load, behind it, and when all is drained.
const RESTS: u32 = 3;

impl Hosts {
    /// How long the counters lag that a trial reads.
    pub fn counters_lag(&self) -> Duration {
        let of = |side| self.of(side).iter().map(move |host| (side, &host.card));
        lag(&of(PathSide::Tx).chain(of(PathSide::Rx)).collect::<Vec<_>>())
    }

    /// What a trial waits for that altogether.
    pub fn rests_take(&self) -> Duration {
        RESTS * self.counters_lag()
    }
}

/// Those of the receivers' rings; those of frames on the wire too, if all cards count them.
fn lag(cards: &[(PathSide, &CardCounters)]) -> Duration {
    let is_wire_known = cards.iter().all(|(_, card)| card.wire_unknown.is_none());
    let read = cards
        .iter()
        .filter(|(side, card)| is_wire_known || *side == PathSide::Rx && !card.ring.is_empty());
    read.map(|(_, card)| card.settle()).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_counters_that_are_not_read() {
        let card = |ring: &[&str], wire_unknown: Option<&str>, settle_ms| CardCounters {
            ring: ring.iter().map(|name| (*name).to_owned()).collect(),
            wire_unknown: wire_unknown.map(str::to_owned),
            settle_ms,
            ..CardCounters::default()
        };
        let gve = card(&["ethtool.rx_queue_drop_cnt[0]"], Some("a hypervisor"), 20_100);
        let other = card(&[], Some("a hypervisor"), 2_100);
        let ms = |cards: &[(PathSide, &CardCounters)]| lag(cards).as_millis();
        assert_eq!(ms(&[(PathSide::Tx, &other), (PathSide::Rx, &gve)]), 20_100);
        assert_eq!(
            ms(&[(PathSide::Tx, &gve), (PathSide::Rx, &other)]),
            0,
            "a sender's ring is not read"
        );
        let standard = card(&[], None, 2_100);
        assert_eq!(
            ms(&[(PathSide::Tx, &standard), (PathSide::Rx, &standard)]),
            2_100,
            "of the wire"
        );
    }
}
