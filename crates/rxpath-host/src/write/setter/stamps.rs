//! Hardware time stamps as pairs.

use crate::pairs::Pairs;
use crate::read::ioctl::{self, StampConfig};
use crate::write::ioctl::stamps::set_stamp_config;
use crate::{Group, HostError};

/// `HWTSTAMP_TX_*` by number (linux/net_tstamp.h), by the names of net/ethtool/common.c `ts_tx_type_names`.
const TX_TYPES: [&str; 4] = ["off", "on", "onestep-sync", "onestep-p2p"];

/// `HWTSTAMP_FILTER_*` by number, by the names of net/ethtool/common.c `ts_rx_filter_names`.
const RX_FILTERS: [&str; 16] = [
    "none",
    "all",
    "some",
    "ptpv1-l4-event",
    "ptpv1-l4-sync",
    "ptpv1-l4-delay-req",
    "ptpv2-l4-event",
    "ptpv2-l4-sync",
    "ptpv2-l4-delay-req",
    "ptpv2-l2-event",
    "ptpv2-l2-sync",
    "ptpv2-l2-delay-req",
    "ptpv2-event",
    "ptpv2-sync",
    "ptpv2-delay-req",
    "ntp-all",
];

/// A number by its word, or as it is for what is younger than the list.
fn word(words: &[&str], number: u32) -> String {
    words.get(number as usize).map_or_else(|| number.to_string(), |word| (*word).to_owned())
}

fn number(words: &[&str], text: &str) -> Option<u32> {
    words.iter().position(|word| *word == text).map(|at| at as u32)
}

fn as_pairs(config: StampConfig) -> Pairs {
    let mut pairs = Pairs::default();
    pairs.push("tx-type", word(&TX_TYPES, config.tx_type));
    pairs.push("rx-filter", word(&RX_FILTERS, config.rx_filter));
    pairs
}

/// `config` with what is asked for.
fn changed(mut config: StampConfig, asked: &Pairs) -> Result<StampConfig, HostError> {
    for (name, text) in asked.iter() {
        let (words, place) = match name {
            "tx-type" => (&TX_TYPES[..], &mut config.tx_type),
            "rx-filter" => (&RX_FILTERS[..], &mut config.rx_filter),
            _ => {
                let why = format!("no value is called {name}; there are tx-type, rx-filter");
                return Err(bad(why));
            }
        };
        // A number is what was read where the kernel is younger than the list.
        let number = number(words, text).or_else(|| text.parse().ok());
        *place =
            number.ok_or_else(|| bad(format!("{name}={text}: expected {}", words.join(" or "))))?;
    }
    Ok(config)
}

fn bad(why: String) -> HostError {
    HostError::malformed(Group::Stamps.name(), 0, why)
}

/// Whether these are names and values that time stamps take; the driver may still lack them.
pub fn check(asked: &Pairs) -> Result<(), HostError> {
    changed(StampConfig::default(), asked).map(drop)
}

/// What a device stamps now.
pub(super) fn stamps(dev: &str) -> Result<Pairs, HostError> {
    ioctl::stamp_config(dev).map(as_pairs)
}

/// Asks for other stamps. Drivers may stamp more than what is asked for, and then say so when it is read.
pub(super) fn set_stamps(dev: &str, asked: &Pairs) -> Result<(), HostError> {
    set_stamp_config(dev, changed(ioctl::stamp_config(dev)?, asked)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_can_be_written_back() {
        for (tx_type, rx_filter) in [(0, 0), (1, 1), (3, 15), (9, 77)] {
            let config = StampConfig { tx_type, rx_filter, ..StampConfig::default() };
            let again = changed(StampConfig::default(), &as_pairs(config)).unwrap();
            assert_eq!(again, config);
        }
        let all: Pairs = "rx-filter=all".parse().unwrap();
        let before = StampConfig { tx_type: 1, ..StampConfig::default() };
        assert_eq!(
            as_pairs(changed(before, &all).unwrap()).to_string(),
            "tx-type=on rx-filter=all"
        );
    }

    #[test]
    fn wrong_names_and_values_are_refused_before_they_are_sent() {
        for (text, words) in [
            ("rx-filter=most", "none or all or some"),
            ("filter=all", "there are tx-type, rx-filter"),
        ] {
            let error = check(&text.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    /// The header has the values by names that only differ in spelling.
    #[test]
    fn numbers_are_those_of_the_installed_header() {
        let header = std::fs::read_to_string("/usr/include/linux/net_tstamp.h").unwrap();
        for (start, first, words) in [
            ("enum hwtstamp_tx_types {", "HWTSTAMP_TX_", &TX_TYPES[..]),
            ("enum hwtstamp_rx_filters {", "HWTSTAMP_FILTER_", &RX_FILTERS[..]),
        ] {
            let body = header.split_once(start).unwrap().1.split_once("};").unwrap().0;
            let items = body.lines().filter_map(|line| line.trim().strip_prefix(first));
            let items: Vec<&str> = items.map(|item| item.trim_end_matches(',')).collect();
            for (word, item) in words.iter().zip(items) {
                let spelled = word.to_uppercase().replace('-', "_");
                let spelled = spelled.replace("PTPV", "PTP_V");
                assert_eq!(item, spelled);
            }
        }
    }
}
