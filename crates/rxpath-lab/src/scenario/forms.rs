//! The values of keys that are more than a number or a text.

use std::collections::BTreeMap;

use rxpath_core::{BitRate, Bytes};
use rxpath_load::http;
use serde::{Deserialize, Serialize};

/// Where the two sides live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Two network namespaces of one machine, joined by a veth pair. Needs root.
    #[default]
    Netns,
    /// Loopback of the namespace the program runs in. Needs no root; other traffic is counted with it.
    Local,
    /// Two real hosts. Not written in a file: `--hosts` or `--sender` and `--receiver` choose it.
    #[serde(skip_deserializing)]
    Hosts,
}

impl Topology {
    /// Whether it makes namespaces and a link of its own, which needs root.
    pub fn makes_lab(self) -> bool {
        match self {
            Self::Netns => true,
            Self::Local | Self::Hosts => false,
        }
    }

    /// Whether it is loopback of this host: it has no frames and no settings of its own, and counts other traffic too.
    pub fn is_loopback(self) -> bool {
        match self {
            Self::Local => true,
            Self::Netns | Self::Hosts => false,
        }
    }
}

/// The engine of a side: one of HTTP or one of UDP, which have no name in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WorkloadEngine<U> {
    /// Of a client or server of HTTP.
    Http(http::Engine),
    /// Of a sender or receiver of datagrams.
    Udp(U),
}

/// A queueing discipline of the sender's end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Qdisc {
    /// Token bucket.
    Tbf {
        /// Rate in bits per second.
        rate: BitRate,
        /// Bucket in bytes.
        #[serde(deserialize_with = "positive_u32")]
        burst: u32,
        /// Queue in bytes.
        #[serde(deserialize_with = "positive_u32")]
        limit: u32,
    },
    /// First in, first out.
    Pfifo {
        /// Queue in packets.
        #[serde(deserialize_with = "positive_u32")]
        limit: u32,
    },
    /// Fair queueing with default values.
    Fq,
}

fn positive_u32<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let Bytes(value) = Bytes::deserialize(from)?;
    let fits = u32::try_from(value).ok().filter(|value| *value > 0);
    fits.ok_or_else(|| serde::de::Error::custom(format!("{value} is not from 1 to {}", u32::MAX)))
}

/// How the output of an external program becomes numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parser {
    /// `iperf3 -J`.
    Iperf3,
    /// wrk's summary.
    Wrk,
    /// JSON: metric name to RFC 6901 pointer.
    Json(BTreeMap<String, String>),
    /// A regular expression with named groups; each group is a metric.
    Regex(String),
    /// Output is kept and not read.
    #[default]
    None,
}
