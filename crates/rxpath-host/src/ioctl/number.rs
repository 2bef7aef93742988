//! Numbers of ethtool's commands, of those that are sent here.
//!
//! **Source** linux/sockios.h, linux/ethtool.h: a test compares them with the installed header.

pub(crate) const SIOCETHTOOL: libc::Ioctl = 0x8946;

macro_rules! numbers {
    ($($name:ident = $number:literal,)*) => {
        $(pub(crate) const $name: u32 = $number;)*

        #[cfg(test)]
        const ALL: [(&str, u32); [$($number),*].len()] = [$((stringify!($name), $name)),*];
    };
}

numbers! {
    ETHTOOL_GDRVINFO = 0x03,
    ETHTOOL_GLINK = 0x0a,
    ETHTOOL_GCOALESCE = 0x0e,
    ETHTOOL_SCOALESCE = 0x0f,
    ETHTOOL_GRINGPARAM = 0x10,
    ETHTOOL_GPAUSEPARAM = 0x12,
    ETHTOOL_GSTRINGS = 0x1b,
    ETHTOOL_GSTATS = 0x1d,
    ETHTOOL_GPFLAGS = 0x27,
    ETHTOOL_GRXFH = 0x29,
    ETHTOOL_SRXFH = 0x2a,
    ETHTOOL_GRXRINGS = 0x2d,
    ETHTOOL_GRXCLSRLCNT = 0x2e,
    ETHTOOL_GSSET_INFO = 0x37,
    ETHTOOL_GFEATURES = 0x3a,
    ETHTOOL_GCHANNELS = 0x3c,
    ETHTOOL_GEEE = 0x44,
    ETHTOOL_GRSSH = 0x46,
    ETHTOOL_SRSSH = 0x47,
    ETHTOOL_PERQUEUE = 0x4b,
    ETHTOOL_GLINKSETTINGS = 0x4c,
    ETHTOOL_GFECPARAM = 0x50,
}

/// Length of a name in a set of names (`ETH_GSTRING_LEN`).
pub(crate) const STRING: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_installed_header() {
        let header = std::fs::read_to_string("/usr/include/linux/ethtool.h").unwrap();
        for (name, number) in ALL {
            let line = header.lines().find(|line| {
                let mut words = line.split_whitespace();
                words.next() == Some("#define") && words.next() == Some(name)
            });
            let text = line.unwrap_or_else(|| panic!("{name}")).split_whitespace().nth(2).unwrap();
            let theirs = u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
            assert_eq!(theirs, number, "{name}");
        }
    }
}
