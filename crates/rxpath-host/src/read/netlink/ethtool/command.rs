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

macro_rules! commands {
    ($($name:ident = $number:literal is $header:literal,)*) => {
        /// Every command of user space that is sent. There is no way to send another number: 26 and 27, the cable
        /// tests, have no name here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        #[allow(dead_code, reason = "the numbers of setting commands stand next to those of reading ones")]
        pub(crate) enum Command {
            $($name = $number,)*
        }

        impl Command {
            /// Every command, for the test that compares them with the kernel's header.
            #[cfg(test)]
            pub(super) const ALL: [(Self, &'static str); [$($number),*].len()] =
                [$((Self::$name, $header)),*];
        }
    };
}

commands! {
    LinkInfoGet = 2 is "LINKINFO_GET",
    LinkModesGet = 4 is "LINKMODES_GET",
    LinkModesSet = 5 is "LINKMODES_SET",
    LinkStateGet = 6 is "LINKSTATE_GET",
    FeaturesGet = 11 is "FEATURES_GET",
    FeaturesSet = 12 is "FEATURES_SET",
    PrivateFlagsGet = 13 is "PRIVFLAGS_GET",
    PrivateFlagsSet = 14 is "PRIVFLAGS_SET",
    RingsGet = 15 is "RINGS_GET",
    RingsSet = 16 is "RINGS_SET",
    ChannelsGet = 17 is "CHANNELS_GET",
    ChannelsSet = 18 is "CHANNELS_SET",
    CoalesceGet = 19 is "COALESCE_GET",
    CoalesceSet = 20 is "COALESCE_SET",
    PauseGet = 21 is "PAUSE_GET",
    PauseSet = 22 is "PAUSE_SET",
    EeeGet = 23 is "EEE_GET",
    EeeSet = 24 is "EEE_SET",
    TimestampingGet = 25 is "TSINFO_GET",
    FecGet = 29 is "FEC_GET",
    FecSet = 30 is "FEC_SET",
    StatsGet = 32 is "STATS_GET",
    RssGet = 38 is "RSS_GET",
    RssSet = 48 is "RSS_SET",
}

/// A question about one device: what it asks for, in words, its command, and how its answer is read.
#[derive(Debug)]
pub struct EthtoolQuestion<T> {
    what: &'static str,
    pub(crate) command: Command,
    parse: fn(&[u8]) -> Result<T, HostError>,
    /// `ETHTOOL_FLAG_*`.
    flags: Option<u32>,
}

impl<T> EthtoolQuestion<T> {
    pub(super) const fn new(
        what: &'static str,
        command: Command,
        parse: fn(&[u8]) -> Result<T, HostError>,
    ) -> Self {
        Self { what, command, parse, flags: None }
    }

    pub(super) const fn with_statistics(self) -> Self {
        Self { flags: Some(WITH_STATS), ..self }
    }
}

/// A question or order about one device.
pub(crate) fn device(command: Command, dev: &str) -> Body {
    flagged(command, dev, None)
}

fn flagged(command: Command, dev: &str, flags: Option<u32>) -> Body {
    let name = Body::default()
        .text(HEADER_DEV_NAME, dev)
        .with(flags, |name, flags| name.u32(HEADER_FLAGS, flags));
    let kind = if command == Command::StatsGet { STATS_HEADER } else { HEADER };
    Body::new(&genl::header(command as u8)).nest(kind, &name)
}

impl Netlink {
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

    /// Asks a question about a device. On a [`Netlink::generic`] socket.
    ///
    /// **Errors** `Unsupported` for drivers that have no answer.
    pub fn ethtool<T>(&mut self, question: &EthtoolQuestion<T>, dev: &str) -> Result<T, HostError> {
        let body = flagged(question.command, dev, question.flags);
        let op = format!("read {} of {dev}", question.what);
        (question.parse)(&self.family_get(&op, ETHTOOL, &body)?)
    }

    pub(super) fn ethtool_get(
        &mut self,
        what: &str,
        command: Command,
        dev: &str,
    ) -> Result<Vec<u8>, HostError> {
        self.family_get(&format!("read {what} of {dev}"), ETHTOOL, &device(command, dev))
    }
}
