//! The commands that can be sent, and the questions made of them.

use crate::HostError;
use crate::netlink::genl::{self, Family};
use crate::netlink::socket::Netlink;
use crate::netlink::wire::Body;

/// The family.
pub(crate) const ETHTOOL: Family =
    Family { name: "ethtool", needs: "Linux 5.6 with CONFIG_ETHTOOL_NETLINK" };

const HEADER: u16 = 1;
/// The statistics question alone has its header elsewhere (`ETHTOOL_A_STATS_HEADER`).
pub(super) const STATS_HEADER: u16 = 2;
const HEADER_DEV_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
/// `ETHTOOL_FLAG_STATS`: the statistics of this topic, where the driver has them.
pub(super) const WITH_STATS: u32 = 4;

/// Every command of user space that is sent. There is no way to send another number: 26 and 27, the cable
/// tests, have no name here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(dead_code, reason = "the numbers of setting commands stand next to those of reading ones")]
pub(crate) enum Command {
    LinkInfoGet = 2,
    LinkModesGet = 4,
    LinkModesSet = 5,
    LinkStateGet = 6,
    FeaturesGet = 11,
    FeaturesSet = 12,
    PrivateFlagsGet = 13,
    PrivateFlagsSet = 14,
    RingsGet = 15,
    RingsSet = 16,
    ChannelsGet = 17,
    ChannelsSet = 18,
    CoalesceGet = 19,
    CoalesceSet = 20,
    PauseGet = 21,
    PauseSet = 22,
    EeeGet = 23,
    EeeSet = 24,
    TimestampingGet = 25,
    FecGet = 29,
    FecSet = 30,
    StatsGet = 32,
    RssGet = 38,
    RssSet = 48,
}

impl Command {
    /// Every command, for the test that compares them with the kernel's header.
    #[cfg(test)]
    pub(super) const ALL: [(Self, &'static str); 24] = [
        (Self::LinkInfoGet, "LINKINFO_GET"),
        (Self::LinkModesGet, "LINKMODES_GET"),
        (Self::LinkModesSet, "LINKMODES_SET"),
        (Self::LinkStateGet, "LINKSTATE_GET"),
        (Self::FeaturesGet, "FEATURES_GET"),
        (Self::FeaturesSet, "FEATURES_SET"),
        (Self::PrivateFlagsGet, "PRIVFLAGS_GET"),
        (Self::PrivateFlagsSet, "PRIVFLAGS_SET"),
        (Self::RingsGet, "RINGS_GET"),
        (Self::RingsSet, "RINGS_SET"),
        (Self::ChannelsGet, "CHANNELS_GET"),
        (Self::ChannelsSet, "CHANNELS_SET"),
        (Self::CoalesceGet, "COALESCE_GET"),
        (Self::CoalesceSet, "COALESCE_SET"),
        (Self::PauseGet, "PAUSE_GET"),
        (Self::PauseSet, "PAUSE_SET"),
        (Self::EeeGet, "EEE_GET"),
        (Self::EeeSet, "EEE_SET"),
        (Self::TimestampingGet, "TSINFO_GET"),
        (Self::FecGet, "FEC_GET"),
        (Self::FecSet, "FEC_SET"),
        (Self::StatsGet, "STATS_GET"),
        (Self::RssGet, "RSS_GET"),
        (Self::RssSet, "RSS_SET"),
    ];
}

/// A question or order about one device.
pub(crate) fn device(command: Command, dev: &str) -> Body {
    let name = Body::default().text(HEADER_DEV_NAME, dev);
    let kind = if command == Command::StatsGet { STATS_HEADER } else { HEADER };
    Body::new(&genl::header(command as u8)).nest(kind, &name)
}

impl Netlink {
    /// The number of the ethtool family.
    pub(crate) fn ethtool_family(&mut self) -> Result<u16, HostError> {
        self.family(ETHTOOL)
    }

    /// Whether this kernel answers a question over netlink: 5.6 has the family and few of its commands, older ones
    /// have no family.
    pub(crate) fn ethtool_takes(&mut self, command: Command) -> Result<bool, HostError> {
        self.takes(ETHTOOL, command as u8)
    }

    /// As if the kernel had no ethtool family.
    #[cfg(test)]
    pub(crate) fn forget_ethtool(&mut self) {
        self.pretend(ETHTOOL);
    }

    pub(super) fn ethtool_get(
        &mut self,
        what: &str,
        command: Command,
        dev: &str,
    ) -> Result<Vec<u8>, HostError> {
        self.family_get(&format!("read {what} of {dev}"), ETHTOOL, &device(command, dev))
    }

    /// As [`Netlink::ethtool_get`], with statistics.
    pub(super) fn ethtool_get_stats(
        &mut self,
        what: &str,
        command: Command,
        dev: &str,
    ) -> Result<Vec<u8>, HostError> {
        let name = Body::default().text(HEADER_DEV_NAME, dev).u32(HEADER_FLAGS, WITH_STATS);
        let body = Body::new(&genl::header(command as u8)).nest(HEADER, &name);
        self.family_get(&format!("read {what} of {dev}"), ETHTOOL, &body)
    }
}
