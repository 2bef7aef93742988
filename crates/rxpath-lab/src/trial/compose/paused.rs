//! Pause frames that a sender's card received: then the network set the sender's pace, and what it could not carry waited in
//! the sender instead of getting lost.

use std::collections::BTreeMap;

use rxpath_core::{PathSide, Warning};
use rxpath_record::counters::Moved;

/// Pause frames received, by the name of each driver; a snapshot has the device before it.
///
/// **Source** Linux 6.12: the tables of names of igb, igc, e1000e, ixgbe (`rx_flow_control_xoff`), i40e
/// (`i40e_gstrings_stats`), ice (`ice_gstrings_pf_stats`), mlx5 (`pport_802_3_stats_desc`), bnxt (`bnxt_port_stats_arr`).
/// The standard's counter (IEEE 802.3, 30.3.3.4) counts every MAC control frame; others than pause frames are rare.
const COUNTERS: [(&str, &str); 6] = [
    ("ethtool", "rx_flow_control_xoff"),
    ("ethtool", "port.link_xoff_rx"),
    ("ethtool", "link_xoff_rx.nic"),
    ("ethtool", "rx_pause_ctrl_phy"),
    ("ethtool", "rx_pause_frames"),
    ("standard", "ctrl.MACControlFramesReceived"),
];

/// Pause frames that the senders' cards received. A card may count them under two names: the largest counts.
pub(super) fn frames(moved: &Moved) -> i64 {
    let mut largest: BTreeMap<String, i64> = BTreeMap::new();
    for (source, counter) in COUNTERS {
        let (prefix, suffix) = (format!("{}/{source}.", PathSide::Tx), format!(".{counter}"));
        for (name, frames) in moved.like(&prefix, &suffix) {
            let device = name[prefix.len()..name.len() - suffix.len()].to_owned();
            let most = largest.entry(device).or_default();
            *most = frames.max(*most);
        }
    }
    largest.values().sum()
}

/// What is said about them.
pub(super) fn warning(frames: i64) -> Option<Warning> {
    (frames > 0).then(|| {
        Warning::new("paused", format!("the network paused the sender: {frames} pause frames"))
            .because("a switch or the receiver's card had no room, and flow control is on: what would get lost waits in the sender")
            .cure("ethtool -A DEV rx off on the sender's host shows the losses instead")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(values: &[(&str, i64)]) -> Moved {
        let values = values.iter().map(|(name, by)| ((*name).to_owned(), *by));
        Moved { values: values.collect(), ..Moved::default() }
    }

    #[test]
    fn pause_frames_of_senders_count_once_whatever_their_names() {
        let both = moved(&[
            ("tx/ethtool.eth0.rx_pause_ctrl_phy", 7),
            ("tx/standard.eth0.ctrl.MACControlFramesReceived", 7),
        ]);
        assert_eq!(frames(&both), 7);
        // Members of a bond.
        let members = moved(&[
            ("tx/ethtool.ens1.rx_flow_control_xoff", 3),
            ("tx/ethtool.ens2.rx_flow_control_xoff", 4),
            ("tx/ethtool.ens2.rx_flow_control_xon", 90),
        ]);
        assert_eq!(frames(&members), 7);
        let text = warning(7).unwrap().text;
        assert_eq!(text, "the network paused the sender: 7 pause frames");
    }

    #[test]
    fn frames_that_the_receiver_got_or_the_sender_sent_pause_no_sender() {
        let others = moved(&[
            ("rx/ethtool.eth0.rx_flow_control_xoff", 9),
            ("tx/ethtool.eth0.tx_flow_control_xoff", 9),
            ("tx/ethtool.eth0.rx_packets", 9),
        ]);
        assert_eq!(frames(&others), 0);
        assert_eq!(warning(0), None);
    }
}
