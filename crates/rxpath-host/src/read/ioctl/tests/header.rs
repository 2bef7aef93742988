//! Our command numbers against those of the kernel's header for programs.

use crate::read::ioctl::{
    self, features, flow_hash, link, per_queue, rss, rules, settings, steering,
};

#[test]
fn commands_are_those_of_the_installed_header() {
    let header = std::fs::read_to_string("/usr/include/linux/ethtool.h").unwrap();
    let of = |name: &str| {
        let full = format!("ETHTOOL_{name}");
        let line = header.lines().find(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some("#define") && words.next() == Some(&full)
        });
        let text = line.unwrap_or_else(|| panic!("{full}")).split_whitespace().nth(2).unwrap();
        u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
    };
    for (name, number) in [
        ("GDRVINFO", ioctl::ETHTOOL_GDRVINFO),
        ("GSTRINGS", ioctl::ETHTOOL_GSTRINGS),
        ("GSTATS", ioctl::ETHTOOL_GSTATS),
        ("GLINK", link::ETHTOOL_GLINK),
        ("GEEE", link::ETHTOOL_GEEE),
        ("GLINKSETTINGS", link::ETHTOOL_GLINKSETTINGS),
        ("GCOALESCE", settings::ETHTOOL_GCOALESCE),
        ("GRINGPARAM", settings::ETHTOOL_GRINGPARAM),
        ("GPAUSEPARAM", settings::ETHTOOL_GPAUSEPARAM),
        ("GCHANNELS", settings::ETHTOOL_GCHANNELS),
        ("GFECPARAM", settings::ETHTOOL_GFECPARAM),
        ("GPFLAGS", features::ETHTOOL_GPFLAGS),
        ("GSSET_INFO", features::ETHTOOL_GSSET_INFO),
        ("GFEATURES", features::ETHTOOL_GFEATURES),
        ("PERQUEUE", per_queue::ETHTOOL_PERQUEUE),
        ("GRSSH", rss::ETHTOOL_GRSSH),
        ("GRXFH", flow_hash::ETHTOOL_GRXFH),
        ("GRXRINGS", rules::ETHTOOL_GRXRINGS),
        ("GRXCLSRLCNT", rules::ETHTOOL_GRXCLSRLCNT),
        ("SCOALESCE", per_queue::ETHTOOL_SCOALESCE),
        ("SRXFH", steering::ETHTOOL_SRXFH),
        ("SRSSH", steering::ETHTOOL_SRSSH),
    ] {
        assert_eq!(of(name), number, "{name}");
    }
}
