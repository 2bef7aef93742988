//! What the two sides of an experiment speak, and what follows from it: subcommands, units, the main metric.

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
    /// The words of a scenario file, in the order of the variants.
    pub(super) const WORDS: &'static [&'static str] =
        &["udp", "tcp-stream", "tcp-rr", "tcp-crr", "http"];

    /// Its word in a scenario file.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// The words behind `rxpath serve`.
    pub fn serve_words(self) -> &'static [&'static str] {
        &self.load_words()[..1]
    }

    /// The words behind `rxpath load`.
    pub fn load_words(self) -> &'static [&'static str] {
        match self {
            Self::Udp => &["udp"],
            Self::TcpStream => &["tcp", "stream"],
            Self::TcpRr => &["tcp", "rr"],
            Self::TcpCrr => &["tcp", "crr"],
            Self::Http => &["http"],
        }
    }

    /// Whether it runs over TCP.
    pub fn over_tcp(self) -> bool {
        self != Self::Udp
    }

    /// What its interval lines count, as in `thread_requests_total`.
    pub fn counted(self) -> &'static str {
        match self {
            Self::Udp => "packets",
            Self::TcpStream => "bytes",
            Self::TcpRr | Self::TcpCrr => "transactions_total",
            Self::Http => "requests_total",
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
