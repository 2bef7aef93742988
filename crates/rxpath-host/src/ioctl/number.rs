//! Numbers of ethtool's commands, of those that are sent here.
//!
//! **Source** linux/sockios.h, linux/ethtool.h: a test compares them with the installed header.

pub(crate) const SIOCETHTOOL: libc::Ioctl = 0x8946;

pub(crate) const ETHTOOL_GDRVINFO: u32 = 0x03;
pub(crate) const ETHTOOL_GLINK: u32 = 0x0a;
pub(crate) const ETHTOOL_GCOALESCE: u32 = 0x0e;
pub(crate) const ETHTOOL_SCOALESCE: u32 = 0x0f;
pub(crate) const ETHTOOL_GRINGPARAM: u32 = 0x10;
pub(crate) const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
pub(crate) const ETHTOOL_GSTRINGS: u32 = 0x1b;
pub(crate) const ETHTOOL_GSTATS: u32 = 0x1d;
pub(crate) const ETHTOOL_GPFLAGS: u32 = 0x27;
pub(crate) const ETHTOOL_GRXFH: u32 = 0x29;
pub(crate) const ETHTOOL_SRXFH: u32 = 0x2a;
pub(crate) const ETHTOOL_GRXRINGS: u32 = 0x2d;
pub(crate) const ETHTOOL_GRXCLSRLCNT: u32 = 0x2e;
pub(crate) const ETHTOOL_GSSET_INFO: u32 = 0x37;
pub(crate) const ETHTOOL_GFEATURES: u32 = 0x3a;
pub(crate) const ETHTOOL_GCHANNELS: u32 = 0x3c;
pub(crate) const ETHTOOL_GEEE: u32 = 0x44;
pub(crate) const ETHTOOL_GRSSH: u32 = 0x46;
pub(crate) const ETHTOOL_SRSSH: u32 = 0x47;
pub(crate) const ETHTOOL_PERQUEUE: u32 = 0x4b;
pub(crate) const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
pub(crate) const ETHTOOL_GFECPARAM: u32 = 0x50;

/// Length of a name in a set of names (`ETH_GSTRING_LEN`).
pub(crate) const STRING: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

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
            ("GDRVINFO", ETHTOOL_GDRVINFO),
            ("GLINK", ETHTOOL_GLINK),
            ("GCOALESCE", ETHTOOL_GCOALESCE),
            ("SCOALESCE", ETHTOOL_SCOALESCE),
            ("GRINGPARAM", ETHTOOL_GRINGPARAM),
            ("GPAUSEPARAM", ETHTOOL_GPAUSEPARAM),
            ("GSTRINGS", ETHTOOL_GSTRINGS),
            ("GSTATS", ETHTOOL_GSTATS),
            ("GPFLAGS", ETHTOOL_GPFLAGS),
            ("GRXFH", ETHTOOL_GRXFH),
            ("SRXFH", ETHTOOL_SRXFH),
            ("GRXRINGS", ETHTOOL_GRXRINGS),
            ("GRXCLSRLCNT", ETHTOOL_GRXCLSRLCNT),
            ("GSSET_INFO", ETHTOOL_GSSET_INFO),
            ("GFEATURES", ETHTOOL_GFEATURES),
            ("GCHANNELS", ETHTOOL_GCHANNELS),
            ("GEEE", ETHTOOL_GEEE),
            ("GRSSH", ETHTOOL_GRSSH),
            ("SRSSH", ETHTOOL_SRSSH),
            ("PERQUEUE", ETHTOOL_PERQUEUE),
            ("GLINKSETTINGS", ETHTOOL_GLINKSETTINGS),
            ("GFECPARAM", ETHTOOL_GFECPARAM),
        ] {
            assert_eq!(of(name), number, "{name}");
        }
    }
}
