//! A flow: from where to where, and by what protocol.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parse::{ParseError, shorten};
use crate::read::ioctl::FlowKind;
use crate::read::netlink::addr::octets;

/// Protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FlowProtocol {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
}

/// A flow as its packets arrive: `10.0.0.2:4000->10.0.0.1:4321/udp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Flow {
    /// The sender.
    pub source: SocketAddr,
    /// The receiver: this host.
    pub destination: SocketAddr,
    /// Protocol.
    pub protocol: FlowProtocol,
}

impl Flow {
    /// The kind of flow that ethtool has its hashed fields for.
    pub fn kind(self) -> FlowKind {
        match (self.protocol, self.source.is_ipv4()) {
            (FlowProtocol::Udp, true) => FlowKind::Udp4,
            (FlowProtocol::Udp, false) => FlowKind::Udp6,
            (FlowProtocol::Tcp, true) => FlowKind::Tcp4,
            (FlowProtocol::Tcp, false) => FlowKind::Tcp6,
        }
    }

    /// The bytes that a device hashes, in their order: addresses, then ports.
    ///
    /// **Source** Microsoft, "RSS Hashing Types"; the symmetric forms are `RXH_XFRM_SYM_XOR` and
    /// `RXH_XFRM_SYM_OR_XOR` of include/uapi/linux/ethtool.h.
    /// **Errors** a transformation that is not known here.
    pub(crate) fn hashed_bytes(
        self,
        with_ports: bool,
        transformation: Option<&str>,
    ) -> Result<Vec<u8>, String> {
        let mut parts = vec![(octets(self.source.ip()), octets(self.destination.ip()))];
        if with_ports {
            let port = |end: SocketAddr| end.port().to_be_bytes().to_vec();
            parts.push((port(self.source), port(self.destination)));
        }
        let both = |from: &[u8], to: &[u8], op: fn(u8, u8) -> u8| -> Vec<u8> {
            from.iter().zip(to).map(|(a, b)| op(*a, *b)).collect()
        };
        let mut bytes = Vec::new();
        for (from, to) in parts {
            let (first, second) = match transformation {
                None => (from, to),
                Some("symmetric-xor") => {
                    let mixed = both(&from, &to, |a, b| a ^ b);
                    (mixed.clone(), mixed)
                }
                Some("symmetric-or-xor") => {
                    (both(&from, &to, |a, b| a | b), both(&from, &to, |a, b| a ^ b))
                }
                Some(other) => return Err(format!("the transformation {other} is not known here")),
            };
            bytes.extend(first);
            bytes.extend(second);
        }
        Ok(bytes)
    }
}

impl FromStr for Flow {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |what: String| {
            let example = "10.0.0.2:4000->10.0.0.1:4321/udp or [fd00::2]:4000->[fd00::1]:80/tcp";
            let why = format!("{what}; a flow is SRC:PORT->DST:PORT/udp|tcp, as {example}");
            ParseError::new(0, why)
        };
        let (ends, protocol) = text
            .trim()
            .rsplit_once('/')
            .ok_or_else(|| bad(format!("`{}` names no protocol", shorten(text))))?;
        let protocol = match protocol.to_ascii_lowercase().as_str() {
            "udp" => FlowProtocol::Udp,
            "tcp" => FlowProtocol::Tcp,
            _ => return Err(bad(format!("`{}` is not udp or tcp", shorten(protocol)))),
        };
        let (source, destination) =
            ends.split_once("->").ok_or_else(|| bad(format!("`{}` has no `->`", shorten(ends))))?;
        let end = |text: &str| {
            let text = text.trim();
            text.parse::<SocketAddr>()
                .map_err(|_| bad(format!("`{}` is not IP:PORT", shorten(text))))
        };
        let (source, destination) = (end(source)?, end(destination)?);
        if source.is_ipv4() != destination.is_ipv4() {
            return Err(bad("source and destination are of different IP versions".into()));
        }
        Ok(Self { source, destination, protocol })
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            FlowProtocol::Udp => "udp",
            FlowProtocol::Tcp => "tcp",
        };
        write!(f, "{}->{}/{protocol}", self.source, self.destination)
    }
}

rxpath_core::as_text!(Flow);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_reads_back() {
        for text in ["10.0.0.2:4000->10.0.0.1:4321/udp", "[fd00::2]:1->[fd00::1]:80/tcp"] {
            assert_eq!(text.parse::<Flow>().unwrap().to_string(), text);
        }
        assert_eq!(" 1.2.3.4:5 -> 6.7.8.9:1/UDP".parse::<Flow>().unwrap().kind(), FlowKind::Udp4);
    }

    #[test]
    fn a_bad_flow_says_what_and_what_would_be_right() {
        for (text, what) in [
            ("", "names no protocol"),
            ("1.2.3.4:5->1.2.3.4:6/sctp", "not udp or tcp"),
            ("1.2.3.4:5/udp", "no `->`"),
            ("1.2.3.4->1.2.3.4:6/udp", "`1.2.3.4` is not IP:PORT"),
            ("1.2.3.4:70000->1.2.3.4:6/udp", "is not IP:PORT"),
            ("1.2.3.4:5->[fd00::1]:6/udp", "different IP versions"),
        ] {
            let error = text.parse::<Flow>().unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("10.0.0.2:4000->"), "{text}: {error}");
        }
    }

    #[test]
    fn symmetric_forms_do_not_know_the_direction() {
        let there: Flow = "10.0.0.2:4000->10.0.0.1:4321/udp".parse().unwrap();
        let back: Flow = "10.0.0.1:4321->10.0.0.2:4000/udp".parse().unwrap();
        for form in ["symmetric-xor", "symmetric-or-xor"] {
            let bytes = |flow: Flow| flow.hashed_bytes(true, Some(form)).unwrap();
            assert_eq!(bytes(there), bytes(back), "{form}");
        }
        assert_ne!(there.hashed_bytes(true, None), back.hashed_bytes(true, None));
        assert!(there.hashed_bytes(true, Some("new")).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = text.parse::<Flow>();
        }
    }
}
