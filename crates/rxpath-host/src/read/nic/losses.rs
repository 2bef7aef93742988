//! Which counters say what a network card's ring lost, what it took from the wire and what it put there, by driver.
//!
//! Names are those of a snapshot without the device: `link.rx.missed_errors` (rtnetlink), `ethtool.rx_missed_errors` (the
//! driver's own), `standard.mac.FramesReceivedOK` (IEEE 802.3), `queue.0.rx-hw-drop-overruns` (the netdev family). A `*`
//! stands for the number of a queue.
//!
//! **Source** Linux 6.12, the functions that fill the counters:
//!
//! | driver | ring | wire | function |
//! |---|---|---|---|
//! | igb, igc | MPC: no room in the FIFO; RQDPC: no descriptor in a queue that may drop | GPRC, which leaves out MPC; GPTC | `igb_update_stats`, `igc_update_stats` |
//! | e1000e, e1000 | MPC | GPRC, which leaves out MPC; GPTC | `e1000e_update_stats`, `e1000_update_stats` |
//! | ixgbe | MPC; QPRDC: no descriptor | GPRC less MPC (`ixgbe_update_stats` subtracts it); GPTC | `ixgbe_update_stats` |
//! | i40e | RDPC | UPRC, MPRC, BPRC; UPTC and so on | `i40e_update_pf_stats` |
//! | ice | RDPC | the same | `ice_update_pf_stats` |
//! | mlx5_core | no descriptor; port buffer full | frames of the physical port, those included | `mlx5e_stats_grp_802_3_*`, `_qcnt_*` |
//! | bnxt_en | discards of each ring | good frames of the port | `bnxt_get_ethtool_stats` |
//! | tun, tap | none | frames that the program behind it read and wrote | `tun_net_xmit`, `tun_get_user` |
//! | vmxnet3 | no buffer, for each queue; not in `rx_dropped` | unknown (hypervisor) | `vmxnet3_get_stats64`, `vmxnet3_rq_dev_stats` |
//! | ena | what the device dropped, which it says once a second; in `rx_dropped` alone | unknown (hypervisor) | `ena_keep_alive_wd`, `ena_get_stats64` |
//! | virtio_net | no buffer, for each queue, where the device counts it; never in `rx_dropped` | unknown (hypervisor) | `virtnet_get_queue_stats_rx` (drivers/net/virtio_net.c) |
//! | gve | what the device dropped for each queue, which it reports every 20 s; never in `rx_dropped` | unknown (hypervisor) | `gve_get_ethtool_stats` (drivers/net/ethernet/google/gve/gve_ethtool.c) |
//! | hv_netvsc | no memory to copy a frame out of the receive buffer; not in `rx_dropped` | unknown (hypervisor) | `netvsc_recv_callback` (drivers/net/hyperv/netvsc_drv.c; 6.8 or later) |
//! | vif | not counted | unknown (hypervisor) | `xennet_poll`, `xennet_get_stats64` (drivers/net/xen-netfront.c; 6.1) |
//!
//! Counters that the card has for other reasons are no losses: `rx_no_buffer_count` (RNBC) says that no descriptor was
//! free when a frame came, and the FIFO may still take it; `rx_steer_missed_packets` is a filter. hv_netvsc's `rx_comp_busy`
//! is a completion that the host gets later (`send_recv_completions`). xen-netfront's `rx_errors` has responses that make no
//! packet, and packets that a program of XDP did not pass.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::parse::is_number;

#[cfg(test)]
mod tests;

/// Counters of one card, by their names in a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardCounters {
    /// Their sum is what the ring lost; none where the driver is not known.
    pub ring: Vec<String>,
    /// Frames taken from the wire.
    pub received: Vec<String>,
    /// Lost in the card: it is not known whether `received` counts them.
    pub perhaps_received: Vec<String>,
    /// Frames put on the wire.
    pub sent: Vec<String>,
    /// Frames that arrived damaged.
    pub damaged: Vec<String>,
    /// Why frames on the wire are not known, if they are not.
    pub wire_unknown: Option<String>,
    /// How long the counters may lag.
    pub settle_ms: u64,
}

impl CardCounters {
    /// The counters of several cards as those of one: what lies over them counts only what they let through.
    pub fn joined(cards: impl IntoIterator<Item = (String, Self)>) -> Self {
        let mut all = Self::default();
        for (device, card) in cards {
            all.ring.extend(card.ring);
            all.received.extend(card.received);
            all.perhaps_received.extend(card.perhaps_received);
            all.sent.extend(card.sent);
            all.damaged.extend(card.damaged);
            all.settle_ms = all.settle_ms.max(card.settle_ms);
            let why = card.wire_unknown.map(|why| format!("{device}: {why}"));
            all.wire_unknown = all.wire_unknown.or(why);
        }
        all
    }

    /// The same on a port that others share: what its MAC counts is theirs too, so that nothing of it is known.
    #[must_use]
    pub fn on_shared_port(mut self, why: Option<String>) -> Self {
        let Some(why) = why else { return self };
        // The buffer of the port, not the device's own queues.
        self.ring.retain(|name| !name.ends_with("_phy"));
        let shared = || format!("{why}, and the card counts their frames together");
        let why = self.wire_unknown.unwrap_or_else(shared);
        Self { ring: self.ring, settle_ms: self.settle_ms, ..unknown(why) }
    }

    /// The same of a card that writes its counters into memory every so many microseconds, where it says how often.
    ///
    /// **Source** tools/testing/selftests/drivers/net/lib/py/env.py `wait_hw_stats_settle`: that time and 25 ms.
    #[must_use]
    pub fn written_every(mut self, usecs: Option<u32>) -> Self {
        if let Some(usecs) = usecs.filter(|usecs| *usecs > 0 && self.settle_ms > 0) {
            self.settle_ms = u64::from(usecs.div_ceil(1_000)) + WRITTEN_MS;
        }
        self
    }

    /// How long the counters may lag behind what the card did.
    pub fn settle(&self) -> Duration {
        Duration::from_millis(self.settle_ms)
    }
}

/// How long a card may take to write its counters when their time has come.
const WRITTEN_MS: u64 = 25;

struct Row {
    drivers: &'static [&'static str],
    /// Lists of counters; the first of which the driver has one is meant.
    ring: &'static [&'static [&'static str]],
    received: &'static [&'static str],
    /// Whether `received` counts what the ring lost.
    holds_ring: Holds,
    sent: &'static [&'static str],
    damaged: &'static [&'static str],
    settle_ms: u64,
}

#[derive(Clone, Copy)]
enum Holds {
    Yes,
    /// Not these.
    AllBut(&'static [&'static str]),
    NotKnown,
}

const MISSED: &str = "ethtool.rx_missed_errors";

/// Drivers refresh their counters when these are read, unless the row says something else.
const ROWS: [Row; 7] = [
    Row {
        // Those of e1000 do not count by queue.
        drivers: &["igb", "igc", "e1000e", "e1000"],
        ring: &[&[MISSED, "ethtool.rx_queue_*_drops"]],
        received: &["ethtool.rx_packets"],
        holds_ring: Holds::AllBut(&[MISSED]),
        sent: &["ethtool.tx_packets"],
        damaged: &["ethtool.rx_crc_errors"],
        settle_ms: 0,
    },
    Row {
        drivers: &["ixgbe"],
        ring: &[&[MISSED, "ethtool.rx_no_dma_resources"]],
        received: &["ethtool.rx_pkts_nic"],
        holds_ring: Holds::AllBut(&[MISSED]),
        sent: &["ethtool.tx_pkts_nic"],
        damaged: &["ethtool.rx_crc_errors"],
        settle_ms: 0,
    },
    Row {
        drivers: &["i40e"],
        // Before 6.12 the counter has the other name.
        ring: &[&["ethtool.port.rx_discards"], &["ethtool.port.rx_dropped"]],
        received: &[
            "ethtool.port.rx_unicast",
            "ethtool.port.rx_multicast",
            "ethtool.port.rx_broadcast",
        ],
        holds_ring: Holds::NotKnown,
        sent: &[
            "ethtool.port.tx_unicast",
            "ethtool.port.tx_multicast",
            "ethtool.port.tx_broadcast",
        ],
        damaged: &["ethtool.port.rx_crc_errors"],
        settle_ms: 0,
    },
    Row {
        drivers: &["ice"],
        ring: &[&["ethtool.rx_dropped.nic"]],
        received: &[
            "ethtool.rx_unicast.nic",
            "ethtool.rx_multicast.nic",
            "ethtool.rx_broadcast.nic",
        ],
        holds_ring: Holds::NotKnown,
        sent: &["ethtool.tx_unicast.nic", "ethtool.tx_multicast.nic", "ethtool.tx_broadcast.nic"],
        damaged: &["ethtool.rx_crc_errors.nic"],
        settle_ms: 0,
    },
    Row {
        drivers: &["mlx5_core"],
        ring: &[&["ethtool.rx_out_of_buffer", "ethtool.rx_discards_phy"]],
        received: &["ethtool.rx_packets_phy"],
        holds_ring: Holds::Yes,
        sent: &["ethtool.tx_packets_phy"],
        damaged: &["ethtool.rx_crc_errors_phy"],
        settle_ms: 0,
    },
    Row {
        drivers: &["bnxt_en"],
        ring: &[&["ethtool.[*]: rx_discards"], &["ethtool.rx_total_discard_pkts"]],
        received: &["ethtool.rx_good_frames"],
        holds_ring: Holds::NotKnown,
        sent: &["ethtool.tx_good_frames"],
        damaged: &["ethtool.rx_fcs_err_frames"],
        // The card writes them once a second (`BNXT_DEF_STATS_COAL_TICKS`), unless `stats-block-usecs` says otherwise.
        settle_ms: 1_100,
    },
    Row {
        drivers: &["tun"],
        ring: &[],
        received: &["link.rx.packets"],
        holds_ring: Holds::Yes,
        sent: &["link.tx.packets"],
        damaged: &[],
        settle_ms: 0,
    },
];

/// What stands for the ring of a card whose own counter is not known: the largest of these. A driver may count one loss under two of
/// the names, and the lower bound of what the network lost is then too low.
const OF_ANY_RING: [&str; 3] =
    ["link.rx.missed_errors", "link.rx.fifo_errors", "link.rx.over_errors"];

/// Any other card that counts frames as the standard says.
const STANDARD: Row = Row {
    drivers: &[],
    ring: &[],
    received: &["standard.mac.FramesReceivedOK"],
    holds_ring: Holds::NotKnown,
    sent: &["standard.mac.FramesTransmittedOK"],
    damaged: &["standard.mac.FrameCheckSequenceErrors"],
    // Drivers that ask their card now and then do so every two seconds at most.
    settle_ms: 2_100,
};

/// A driver of a device whose frames are lost where its host sees nothing.
struct Behind {
    driver: &'static str,
    /// As that of a row.
    ring: &'static [&'static [&'static str]],
    settle_ms: u64,
}

/// Repeated names of a driver have a number behind them from the second one on: those of vmxnet3's queues are equal.
const BEHIND_A_HYPERVISOR: [Behind; 6] = [
    Behind { driver: "virtio_net", ring: &[&["queue.*.rx-hw-drop-overruns"]], settle_ms: 0 },
    Behind {
        driver: "vmxnet3",
        ring: &[&["ethtool.  pkts rx OOB", "ethtool.  pkts rx OOB#*"]],
        settle_ms: 0,
    },
    // The kernel's own drops are in it too, which are taken off where it is read.
    Behind { driver: "ena", ring: &[&[FOLDED]], settle_ms: 1_100 },
    // `GVE_STATS_REPORT_TIMER_PERIOD` (gve.h).
    Behind { driver: "gve", ring: &[&["ethtool.rx_queue_drop_cnt[*]"]], settle_ms: 20_100 },
    Behind { driver: "hv_netvsc", ring: &[&["ethtool.rx_no_memory"]], settle_ms: 0 },
    // xen-netfront names no driver: the kernel names the device's type (drivers/xen/xenbus/xenbus_probe.c
    // `xenbus_register_driver_common`).
    Behind { driver: "vif", ring: &[], settle_ms: 0 },
];

/// Where a driver adds what its ring lost to what the kernel drops of the device's packets.
const FOLDED: &str = "link.rx.dropped";

/// Devices of software: what they count is not on a wire.
const SOFTWARE: [&str; 9] =
    ["veth", "bridge", "bond", "team", "vlan", "macvlan", "ipvlan", "vxlan", "dummy"];

/// The counters of a card with this driver (or kind of virtual device); `offered` are the names that a snapshot of it has,
/// without the device.
pub fn counters(driver: &str, offered: &[String]) -> CardCounters {
    if let Some(row) = ROWS.iter().find(|row| row.drivers.contains(&driver)) {
        return row.of(driver, offered);
    }
    if let Some(behind) = BEHIND_A_HYPERVISOR.iter().find(|behind| behind.driver == driver) {
        let why = format!("{driver} does not see what the hypervisor's switch loses");
        let ring = first_of(behind.ring, offered);
        let settle_ms = if ring.is_empty() { 0 } else { behind.settle_ms };
        return CardCounters { ring, settle_ms, ..unknown(why) };
    }
    if SOFTWARE.contains(&driver) {
        return unknown(format!("{driver} is a device of software, not a network card"));
    }
    STANDARD.of(driver, offered)
}

/// The drivers of all rows.
#[cfg(test)]
pub(crate) fn drivers() -> Vec<&'static str> {
    ROWS.iter().flat_map(|row| row.drivers).copied().collect()
}

/// Those whose host sees nothing of the wire.
#[cfg(test)]
pub(crate) fn guest_drivers() -> Vec<&'static str> {
    BEHIND_A_HYPERVISOR.iter().map(|behind| behind.driver).collect()
}

fn unknown(why: String) -> CardCounters {
    CardCounters { wire_unknown: Some(why), ..CardCounters::default() }
}

/// The counters that fit one of these patterns.
fn fitting(patterns: &[&str], offered: &[String]) -> Vec<String> {
    let fits = |name: &&String| patterns.iter().any(|pattern| matches(pattern, name));
    offered.iter().filter(fits).cloned().collect()
}

/// Those of the first list of which there is one.
fn first_of(lists: &[&[&str]], offered: &[String]) -> Vec<String> {
    let mut found = lists.iter().map(|list| fitting(list, offered));
    found.find(|list| !list.is_empty()).unwrap_or_default()
}

impl Row {
    fn of(&self, driver: &str, offered: &[String]) -> CardCounters {
        let found = |patterns: &[&str]| fitting(patterns, offered);
        let ring = first_of(self.ring, offered);
        let mut received = found(self.received);
        let sent = found(self.sent);
        let is_known = received.len() == self.received.len() && sent.len() == self.sent.len();
        if !is_known {
            let driver = if driver.is_empty() { "the driver" } else { driver };
            let why =
                format!("{driver} does not count frames on the wire by a name that is known here");
            // Without counters of the card there is nothing to wait for.
            let settle_ms = if ring.is_empty() { 0 } else { self.settle_ms };
            return CardCounters { ring, settle_ms, ..unknown(why) };
        }
        let mut perhaps_received = Vec::new();
        match self.holds_ring {
            Holds::Yes => {}
            Holds::AllBut(left_out) => received.extend(found(left_out)),
            Holds::NotKnown if ring.is_empty() => perhaps_received = found(&OF_ANY_RING),
            Holds::NotKnown => perhaps_received.clone_from(&ring),
        }
        CardCounters {
            ring,
            received,
            perhaps_received,
            sent,
            damaged: found(self.damaged),
            wire_unknown: None,
            settle_ms: self.settle_ms,
        }
    }
}

/// Whether `name` is `pattern`, with a number where that has `*`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => {
            let number = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            number.is_some_and(is_number)
        }
    }
}
