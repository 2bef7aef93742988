//! Groups of settings, and what holds for each as a whole.
//!
//! The question this module answers: *what is a group called, which option of ethtool(8) changes it, where is it in a plan, and does
//! a write take the link down?* Its single values are in the tables of the readers.

rxpath_core::named! {
    /// Settings of a device that the driver takes and reports together.
    ///
    /// One bit or number often moves others, so all of a group are journaled before one is written.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Group {
        /// Offloads (`ETHTOOL_MSG_FEATURES_*`).
        Features => GroupProperties { name: "features", rank: 30, bounces: |name| name.starts_with("rx-") && !SOFT.contains(&name), shown: Some(("features", Some("active"))), ethtool: &["-K", "--features", "--offload"] },
        /// Interrupt moderation of the device (`ETHTOOL_MSG_COALESCE_*`).
        Coalesce => GroupProperties { name: "coalesce", rank: 80, bounces: |_| false, shown: Some(("coalesce", None)), ethtool: &["-C", "--coalesce"] },
        /// Descriptor rings (`ETHTOOL_MSG_RINGS_*`).
        Rings => GroupProperties { name: "rings", rank: 50, bounces: |_| true, shown: Some(("rings", Some("now"))), ethtool: &["-G", "--set-ring"] },
        /// Numbers of queues (`ETHTOOL_MSG_CHANNELS_*`).
        Channels => GroupProperties { name: "channels", rank: 40, bounces: |_| true, shown: Some(("channels", Some("now"))), ethtool: &["-L", "--set-channels"] },
        /// Ethernet flow control (`ETHTOOL_MSG_PAUSE_*`).
        Pause => GroupProperties { name: "pause", rank: 60, bounces: |_| true, shown: Some(("pause", None)), ethtool: &["-A", "--pause"] },
        /// The driver's own switches (`ETHTOOL_MSG_PRIVFLAGS_*`).
        PrivFlags => GroupProperties { name: "priv-flags", rank: 20, bounces: |_| true, shown: Some(("private_flags", None)), ethtool: &["--set-priv-flags"] },
        /// Energy-Efficient Ethernet (`ETHTOOL_MSG_EEE_*`).
        Eee => GroupProperties { name: "eee", rank: 61, bounces: |_| true, shown: None, ethtool: &["--set-eee"] },
        /// Speed, duplex and the modes that are offered to the other end (`ETHTOOL_MSG_LINKMODES_*`).
        LinkModes => GroupProperties { name: "link-modes", rank: 5, bounces: |_| true, shown: Some(("link_modes", None)), ethtool: &["-s", "--change"] },
        /// Forward error correction (`ETHTOOL_MSG_FEC_*`).
        Fec => GroupProperties { name: "fec", rank: 6, bounces: |_| true, shown: None, ethtool: &["--set-fec"] },
        /// What the device stamps with its own clock (`SIOCGHWTSTAMP`, `SIOCSHWTSTAMP`).
        // igb resets itself (drivers/net/ethernet/intel/igb/igb_ptp.c `igb_ptp_set_timestamp_mode`).
        Stamps => GroupProperties { name: "time-stamps", rank: 65, bounces: |_| true, shown: None, ethtool: &[] },
        /// The table, key and function that choose a queue (`ETHTOOL_GRSSH`, `ETHTOOL_SRSSH`).
        Rss => GroupProperties { name: "rss", rank: 70, bounces: |_| false, shown: None, ethtool: &["-X", "--set-rxfh-indir", "--rxfh"] },
        /// The header fields that are hashed, by protocol (`ETHTOOL_GRXFH`, `ETHTOOL_SRXFH`).
        FlowHash => GroupProperties { name: "flow-hash", rank: 72, bounces: |_| false, shown: None, ethtool: &[] },
        /// MTU and aggregation limits (rtnetlink, `IFLA_MTU`).
        Link => GroupProperties { name: "link", rank: 10, bounces: |name| name == "mtu", shown: Some(("link", None)), ethtool: &[] },
    }
    /// What holds for it as a whole.
    pub fn properties(self) -> GroupProperties
}

/// What holds for a group as a whole.
#[derive(Clone, Copy, Debug)]
pub struct GroupProperties {
    /// As targets spell it: `priv-flags`.
    pub name: &'static str,
    /// Its place in a plan: the lowest is written first. Groups that recreate queues come before settings of queues.
    pub rank: u8,
    /// Whether a write of the value with this name takes the link of a real NIC down.
    pub bounces: fn(&str) -> bool,
    /// Which answer of a device (`Nic`) shows its values, and the field in each value; none where they are not shown alone.
    pub shown: Option<(&'static str, Option<&'static str>)>,
    /// Options of ethtool(8) that change it; none for what ethtool can't change.
    pub ethtool: &'static [&'static str],
}

/// Offloads that the stack does itself: the driver is not asked, so nothing is reset.
///
/// **Source** include/linux/netdev_features.h, `NETIF_F_SOFT_FEATURES`.
const SOFT: [&str; 4] =
    ["rx-gro", "tx-generic-segmentation", "rx-udp-gro-forwarding", "rx-gro-list"];

impl Group {
    /// As targets spell it: `priv-flags`.
    pub fn name(self) -> &'static str {
        self.properties().name
    }
}
