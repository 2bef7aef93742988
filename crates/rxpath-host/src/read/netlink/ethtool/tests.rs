//! Our numbers against those of the kernel's header for programs.

use std::collections::BTreeMap;

use super::command::Command;
use super::field::{Kind, fields};
use super::*;
use crate::Group;
use crate::tests::running_kernel;

fn header() -> String {
    let path = "/usr/include/linux/ethtool_netlink.h";
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| {
        panic!(
            "{path}: {e}: install the kernel's headers for programs \
            (Debian and Ubuntu: linux-libc-dev, which libc6-dev brings)"
        )
    });
    // Since 6.14 most of it stands in a file of its own.
    let more = "/usr/include/linux/ethtool_netlink_generated.h";
    text + &std::fs::read_to_string(more).unwrap_or_default()
}

/// The position of `name` in the enumeration that begins with `first`; `None` in a header that is older than `name`.
fn number(header: &str, name: &str, first: &str) -> Option<usize> {
    let body = header.split_once(&format!("{first},"))?.1.split_once('}')?.0;
    let mut plain = String::new();
    let mut rest = body;
    while let Some((before, comment)) = rest.split_once("/*") {
        plain += before;
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    plain += rest;
    let names = plain.split(',').map(str::trim).filter(|item| !item.is_empty());
    names.enumerate().find(|(_, item)| *item == name).map(|(at, _)| at + 1)
}

/// The installed header knows the commands up to its own version: what is newer is held by the numbers of 6.18 below.
#[test]
fn commands_are_those_of_the_installed_header() {
    let header = header();
    let of = |name: &str| number(&header, &format!("ETHTOOL_MSG_{name}"), "ETHTOOL_MSG_USER_NONE");
    for (command, name) in Command::ALL {
        match of(name) {
            Some(number) => assert_eq!(number, command as usize, "{name}"),
            // The oldest header in use is 6.1.
            None => assert!(["RSS_GET", "RSS_SET"].contains(&name), "{name} is in 6.1"),
        }
    }
    assert_eq!([of("CABLE_TEST_ACT"), of("CABLE_TEST_TDR_ACT")], [Some(26), Some(27)]);
}

/// Enumerators by name, kept from Linux 6.18, which has every command and attribute that is used here.
fn kept() -> BTreeMap<String, u32> {
    let text = include_str!("../../../../../../testdata/headers/ethtool-netlink-6.18.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, number) = line.split_once(' ').unwrap();
        (name.to_owned(), number.parse().unwrap())
    };
    lines.map(pair).collect()
}

#[test]
fn commands_and_attributes_are_those_of_linux_6_18() {
    let kept = kept();
    for (command, name) in Command::ALL {
        let theirs = kept.get(&format!("ETHTOOL_MSG_{name}"));
        assert_eq!(theirs, Some(&(command as u32)), "{name}");
    }
    let cable_tests = ["ETHTOOL_MSG_CABLE_TEST_ACT", "ETHTOOL_MSG_CABLE_TEST_TDR_ACT"];
    let forbidden = cable_tests.map(|name| kept[name]);
    assert_eq!(forbidden, [26, 27]);
    for (command, name) in Command::ALL {
        assert!(!forbidden.contains(&(command as u32)), "{name} is a cable test");
    }
    for (set, names) in TABLES.iter().chain(NEWER) {
        for (name, ours) in *names {
            let full = format!("ETHTOOL_A_{set}_{name}");
            assert_eq!(kept.get(&full), Some(&u32::from(*ours)), "{full}");
        }
    }
    for (full, ours) in field_numbers() {
        assert_eq!(kept.get(&full), Some(&u32::from(ours)), "{full}");
    }
}

/// Our numbers of the table of fields, by the header's names.
fn field_numbers() -> Vec<(String, u16)> {
    let mut all = Vec::new();
    for (set, group) in [
        ("RINGS", Group::Rings),
        ("CHANNELS", Group::Channels),
        ("COALESCE", Group::Coalesce),
        ("PAUSE", Group::Pause),
        ("EEE", Group::Eee),
    ] {
        for field in fields(group) {
            let name = match field.name {
                name if set == "CHANNELS" => format!("{name}-count"),
                "tx-lpi" => "tx-lpi-enabled".to_owned(),
                "sample-interval" => "rate-sample-interval".to_owned(),
                name if name.contains("adaptive") || name.contains("cqe-mode") => {
                    format!("use-{name}")
                }
                name if set == "COALESCE" && !name.contains("aggr") => {
                    name.replace("-frames", "-max-frames")
                }
                name => name.to_owned(),
            };
            let full =
                |name: &str| format!("ETHTOOL_A_{set}_{}", name.replace('-', "_").to_uppercase());
            all.push((full(&name), field.attribute.0));
            let max = field.attribute.1;
            all.extend(max.map(|max| (full(&(name.replace("-count", "") + "-max")), max)));
        }
    }
    all
}

/// What is kept, against the running kernel's own types, as far as that kernel has them.
#[test]
fn what_is_kept_of_6_18_is_what_the_running_kernel_says() {
    // Where there is nothing to compare with, the two tests above hold the numbers.
    let Some(running) = running_kernel::enumerators("ETHTOOL_") else { return };
    let shared =
        kept().into_iter().filter_map(|(name, ours)| Some((ours, *running.get(&name)?, name)));
    let mut compared = 0;
    for (ours, theirs, name) in shared.filter(|(_, _, name)| !name.ends_with("_MAX")) {
        assert_eq!(ours, theirs, "{name}");
        compared += 1;
    }
    assert!(compared > 50, "{compared} of {} are in this kernel's BTF", running.len());
}

/// Attributes that are newer than the oldest header in use.
const NEWER: &[(&str, &[(&str, u16)])] = &[
    ("COALESCE", &[("RX_PROFILE", coalesce::attr::RX_PROFILE)]),
    ("PROFILE", &[("IRQ_MODERATION", coalesce::attr::PROFILE_IRQ_MODERATION)]),
    (
        "IRQ_MODERATION",
        &[
            ("USEC", coalesce::attr::MODERATION_USEC),
            ("PKTS", coalesce::attr::MODERATION_PKTS),
            ("COMPS", coalesce::attr::MODERATION_COMPS),
        ],
    ),
    ("LINKSTATE", &[("EXT_DOWN_CNT", link_modes::attr::STATE_EXT_DOWN_CNT)]),
    (
        "RSS",
        &[
            ("CONTEXT", rss::attr::CONTEXT),
            ("HFUNC", rss::attr::HFUNC),
            ("INDIR", rss::attr::INDIR),
            ("HKEY", rss::attr::HKEY),
            ("INPUT_XFRM", rss::attr::INPUT_XFRM),
        ],
    ),
];

/// Attribute sets, with the header's names and our numbers.
const TABLES: &[(&str, &[(&str, u16)])] = &[
    ("PAUSE", &[("STATS", pause::attr::STATS)]),
    (
        "PAUSE_STAT",
        &[("TX_FRAMES", pause::attr::STAT_TX_FRAMES), ("RX_FRAMES", pause::attr::STAT_RX_FRAMES)],
    ),
    (
        "EEE",
        &[
            ("MODES_OURS", eee::attr::MODES_OURS),
            ("MODES_PEER", eee::attr::MODES_PEER),
            ("ACTIVE", eee::attr::ACTIVE),
        ],
    ),
    (
        "FEC",
        &[
            ("MODES", fec::attr::MODES),
            ("AUTO", fec::attr::AUTO),
            ("ACTIVE", fec::attr::ACTIVE),
            ("STATS", fec::attr::STATS),
        ],
    ),
    (
        "FEC_STAT",
        &[("CORRECTED", fec::attr::STAT_CORRECTED), ("UNCORR", fec::attr::STAT_UNCORRECTABLE)],
    ),
    ("PRIVFLAGS", &[("FLAGS", private_flags::FLAGS)]),
    (
        "LINKMODES",
        &[
            ("AUTONEG", link_modes::attr::AUTONEG),
            ("OURS", link_modes::attr::OURS),
            ("PEER", link_modes::attr::PEER),
            ("SPEED", link_modes::attr::SPEED),
            ("DUPLEX", link_modes::attr::DUPLEX),
            ("LANES", link_modes::attr::LANES),
        ],
    ),
    ("LINKINFO", &[("PORT", link_modes::attr::INFO_PORT)]),
    (
        "LINKSTATE",
        &[("LINK", link_modes::attr::STATE_LINK), ("EXT_STATE", link_modes::attr::STATE_EXT_STATE)],
    ),
    (
        "TSINFO",
        &[
            ("TIMESTAMPING", timestamping::attr::TIMESTAMPING),
            ("TX_TYPES", timestamping::attr::TX_TYPES),
            ("RX_FILTERS", timestamping::attr::RX_FILTERS),
            ("PHC_INDEX", timestamping::attr::PHC_INDEX),
        ],
    ),
    (
        "STATS",
        &[
            ("HEADER", super::command::STATS_HEADER),
            ("GROUPS", standard_stats::attr::GROUPS),
            ("GRP", standard_stats::attr::GRP),
        ],
    ),
    (
        "STATS_GRP",
        &[("ID", standard_stats::attr::GRP_ID), ("STAT", standard_stats::attr::GRP_STAT)],
    ),
    (
        "FEATURES",
        &[
            ("HW", features::HW),
            ("WANTED", features::WANTED),
            ("ACTIVE", features::ACTIVE),
            ("NOCHANGE", features::NOCHANGE),
        ],
    ),
    ("BITSET", &[("NOMASK", bitset::NOMASK), ("BITS", bitset::BITS)]),
    ("BITSET_BITS", &[("BIT", bitset::BITS_BIT)]),
    (
        "BITSET_BIT",
        &[("INDEX", bitset::BIT_INDEX), ("NAME", bitset::BIT_NAME), ("VALUE", bitset::BIT_VALUE)],
    ),
];

#[test]
fn attributes_are_those_of_the_installed_header() {
    let header = header();
    let of = |full: &str| {
        let set = full.split('_').nth(2).unwrap_or_default();
        number(&header, full, &format!("ETHTOOL_A_{set}_UNSPEC"))
    };
    for (set, names) in TABLES {
        for (name, ours) in *names {
            let full = format!("ETHTOOL_A_{set}_{name}");
            let theirs = number(&header, &full, &format!("ETHTOOL_A_{set}_UNSPEC"));
            assert_eq!(theirs, Some(usize::from(*ours)), "{full}");
        }
    }
    let known: Vec<_> = field_numbers()
        .into_iter()
        .filter_map(|(full, ours)| Some((of(&full)?, ours, full)))
        .collect();
    // Headers of an older kernel lack the youngest.
    assert!(known.len() >= 50, "{} numbers compared", known.len());
    for (theirs, ours, full) in known {
        assert_eq!(theirs, usize::from(ours), "{full}");
    }
}

/// The header has the values by names that only differ in spelling.
#[test]
fn words_of_time_stamps_are_those_of_the_installed_header() {
    let header = std::fs::read_to_string("/usr/include/linux/net_tstamp.h").unwrap();
    let enums = [
        ("enum hwtstamp_tx_types {", "HWTSTAMP_TX_"),
        ("enum hwtstamp_rx_filters {", "HWTSTAMP_FILTER_"),
    ];
    for (field, (start, first)) in fields(Group::Stamps).iter().zip(enums) {
        let Kind::Word(words) = field.kind else { panic!("{field:?}") };
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
