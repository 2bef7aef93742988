//! What the two sides of an experiment speak, and what follows from it: subcommands, units, the main metric.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the two programs of a trial speak. On the command line: what has a rate to search.
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Datagrams one way.
    #[default]
    Udp,
    /// Bytes one way over TCP. The command line refuses it with the reason.
    #[cfg_attr(feature = "clap", value(hide = true))]
    TcpStream,
    /// Requests and replies over TCP connections.
    TcpRr,
    /// A TCP connection for each request and reply.
    #[cfg_attr(feature = "clap", value(skip))]
    TcpCrr,
    /// HTTP/1.1.
    Http,
}

impl Protocol {
    /// The words of a scenario file, in the order of the variants: those behind `rxpath load`, of which the first is behind
    /// `rxpath serve`.
    pub(super) const WORDS: &'static [&'static str] =
        &["udp", "tcp-stream", "tcp-rr", "tcp-crr", "http"];

    /// Its word in a scenario file.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// Whether it runs over TCP; else each datagram goes one way.
    pub fn over_tcp(self) -> bool {
        match self {
            Self::Udp => false,
            Self::TcpStream | Self::TcpRr | Self::TcpCrr | Self::Http => true,
        }
    }

    /// Whether a request gets a reply.
    pub fn is_answered(self) -> bool {
        match self {
            Self::Udp | Self::TcpStream => false,
            Self::TcpRr | Self::TcpCrr | Self::Http => true,
        }
    }

    /// What `rxpath load` is given to reach this address.
    pub fn destination(self, address: impl fmt::Display) -> String {
        match self {
            Self::Udp | Self::TcpStream | Self::TcpRr | Self::TcpCrr => address.to_string(),
            Self::Http => format!("http://{address}/"),
        }
    }

    /// What a rate counts.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Udp => "datagrams",
            Self::TcpStream | Self::TcpRr | Self::TcpCrr => "transactions",
            Self::Http => "requests",
        }
    }

    /// The time series of the sender's interval lines and of the receiver's.
    pub fn series(self) -> [&'static str; 2] {
        match self {
            Self::Udp => ["offered_packets", "delivered_packets"],
            Self::TcpStream => ["sent_bytes", "delivered_bytes"],
            Self::TcpRr | Self::TcpCrr => {
                ["answered_transactions_total", "served_transactions_total"]
            }
            Self::Http => ["answered_requests_total", "served_requests_total"],
        }
    }

    /// The metric that a scenario is about unless its comparisons name others.
    pub fn main_metric(self) -> &'static str {
        match self {
            Self::Udp => "delivered_pps",
            Self::TcpStream => "delivered_bps",
            Self::TcpRr | Self::TcpCrr => "achieved_tps",
            Self::Http => "achieved_rps",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_its_protocol() {
        for (i, word) in Protocol::WORDS.iter().enumerate() {
            let protocol: Protocol = serde_json::from_value((*word).into()).unwrap();
            assert_eq!((protocol as usize, protocol.word()), (i, *word));
        }
        assert!(serde_json::from_value::<Protocol>("tcp".into()).is_err());
    }
}
