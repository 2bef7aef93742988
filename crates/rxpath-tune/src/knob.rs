//! What a rule would change: the name of a setting, and the value it should get.
//!
//! A knob only names. Reading it, writing it and undoing it is the work of those who apply a plan.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One setting of the host, by its stable name.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(tag = "knob", rename_all = "kebab-case")]
pub enum Knob {
    /// A sysctl by its dotted name, with slashes where a part holds dots.
    Sysctl {
        /// `net.core.netdev_budget`.
        key: String,
    },
    /// A file of sysfs or procfs that takes its whole value in one write.
    Attribute {
        /// `/sys/class/net/eth0/queues/rx-0/rps_cpus`, `/proc/irq/41/smp_affinity_list`.
        path: String,
    },
    /// Descriptors of a ring (`ETHTOOL_MSG_RINGS_SET`).
    Ring {
        /// The device.
        dev: String,
        /// `rx`, `tx`, `rx-buf-len`, `tcp-data-split`.
        which: String,
    },
    /// Number of queues (`ETHTOOL_MSG_CHANNELS_SET`).
    Channels {
        /// The device.
        dev: String,
        /// `rx`, `tx`, `combined`.
        which: String,
    },
    /// Interrupt coalescing (`ETHTOOL_MSG_COALESCE_SET`).
    Coalesce {
        /// The device.
        dev: String,
        /// `rx-usecs`, `rx-frames`, `adaptive-rx`, `tx-usecs`, `cqe-mode-rx`: the names of the ethtool program.
        which: String,
    },
    /// An offload feature (`ETHTOOL_MSG_FEATURES_SET`).
    Feature {
        /// The device.
        dev: String,
        /// The kernel's name: `rx-gro`.
        name: String,
    },
    /// The RSS indirection table: a list of queues, or the text `equal N` or `default`.
    RssTable {
        /// The device.
        dev: String,
    },
    /// The RSS hash key, as hexadecimal digits.
    RssKey {
        /// The device.
        dev: String,
    },
    /// The fields that RSS hashes for one kind of packet: `sd`, `sdfn`.
    HashFields {
        /// The device.
        dev: String,
        /// `udp4`, `udp6`, `tcp4`, `tcp6`.
        flow: String,
    },
    /// Flow control (`ETHTOOL_MSG_PAUSE_SET`).
    Pause {
        /// The device.
        dev: String,
        /// `rx`, `tx`, `autoneg`.
        which: String,
    },
    /// Energy-Efficient Ethernet (`ETHTOOL_MSG_EEE_SET`).
    Eee {
        /// The device.
        dev: String,
    },
    /// What is asked of the link (`ETHTOOL_MSG_LINKMODES_SET`).
    LinkMode {
        /// The device.
        dev: String,
        /// `autoneg`, `speed`, `duplex` or a mode: `1000baseT/Full`.
        which: String,
    },
    /// A private flag of the driver (`ETHTOOL_MSG_PRIVFLAGS_SET`).
    PrivateFlag {
        /// The device.
        dev: String,
        /// The driver's name for it.
        name: String,
    },
    /// An attribute of the link (rtnetlink).
    Link {
        /// The device.
        dev: String,
        /// `mtu`, `gro-max-size`, `gro-ipv4-max-size`, `promisc`.
        which: String,
    },
}

impl Knob {
    /// A sysctl.
    pub fn sysctl(key: impl Into<String>) -> Self {
        Self::Sysctl { key: key.into() }
    }

    /// A file of sysfs or procfs.
    pub fn attribute(path: impl Into<String>) -> Self {
        Self::Attribute { path: path.into() }
    }

    /// The device it belongs to; `None` for settings of the host.
    pub fn dev(&self) -> Option<&str> {
        match self {
            Self::Sysctl { .. } => None,
            Self::Attribute { path } => path.strip_prefix("/sys/class/net/")?.split('/').next(),
            Self::Ring { dev, .. }
            | Self::Channels { dev, .. }
            | Self::Coalesce { dev, .. }
            | Self::Feature { dev, .. }
            | Self::RssTable { dev }
            | Self::RssKey { dev }
            | Self::HashFields { dev, .. }
            | Self::Pause { dev, .. }
            | Self::Eee { dev }
            | Self::LinkMode { dev, .. }
            | Self::PrivateFlag { dev, .. }
            | Self::Link { dev, .. } => Some(dev),
        }
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl { key } => f.write_str(key),
            Self::Attribute { path } => f.write_str(path),
            Self::Ring { dev, which } => write!(f, "{dev} ring {which}"),
            Self::Channels { dev, which } => write!(f, "{dev} channels {which}"),
            Self::Coalesce { dev, which } => write!(f, "{dev} coalesce {which}"),
            Self::Feature { dev, name } => write!(f, "{dev} feature {name}"),
            Self::RssTable { dev } => write!(f, "{dev} rss table"),
            Self::RssKey { dev } => write!(f, "{dev} rss key"),
            Self::HashFields { dev, flow } => write!(f, "{dev} hash fields {flow}"),
            Self::Pause { dev, which } => write!(f, "{dev} pause {which}"),
            Self::Eee { dev } => write!(f, "{dev} eee"),
            Self::LinkMode { dev, which } => write!(f, "{dev} link mode {which}"),
            Self::PrivateFlag { dev, name } => write!(f, "{dev} private flag {name}"),
            Self::Link { dev, which } => write!(f, "{dev} link {which}"),
        }
    }
}

/// A value of a knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// On or off.
    Switch(bool),
    /// A number in the knob's own unit.
    Number(u64),
    /// A list of numbers: queues of an indirection table.
    Numbers(Vec<u64>),
    /// Text as the kernel takes it.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Number(number) => write!(f, "{number}"),
            Self::Numbers(numbers) => {
                let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
                f.write_str(&words.join(" "))
            }
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<bool> for Value {
    fn from(on: bool) -> Self {
        Self::Switch(on)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A knob and the value that it should get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Set {
    /// What.
    #[serde(flatten)]
    pub knob: Knob,
    /// To what.
    pub value: Value,
}

impl Set {
    /// `knob` to `value`.
    pub fn new(knob: Knob, value: impl Into<Value>) -> Self {
        Self { knob, value: value.into() }
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.knob, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knob_knows_its_device() {
        let rps = Knob::attribute("/sys/class/net/eth0/queues/rx-0/rps_cpus");
        assert_eq!(rps.dev(), Some("eth0"));
        assert_eq!(Knob::attribute("/proc/irq/4/smp_affinity_list").dev(), None);
        assert_eq!(Knob::sysctl("net.core.rmem_max").dev(), None);
        assert_eq!(Knob::Eee { dev: "eth1".into() }.dev(), Some("eth1"));
    }

    #[test]
    fn what_is_written_reads_back() {
        let set = Set::new(Knob::Ring { dev: "eth0".into(), which: "rx".into() }, 4096);
        let text = serde_json::to_string(&set).unwrap();
        assert_eq!(text, r#"{"knob":"ring","dev":"eth0","which":"rx","value":4096}"#);
        assert_eq!(serde_json::from_str::<Set>(&text).unwrap(), set);
        assert_eq!(set.to_string(), "eth0 ring rx = 4096");
    }
}
