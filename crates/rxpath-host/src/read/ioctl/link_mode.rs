//! Names of link modes by their bits, as netlink gives them: the ioctl has the bits alone.
//!
//! **Source** net/ethtool/common.c `link_mode_names`. The list ends with 5.6, where netlink gives the names itself.

use crate::listed;

/// Names by bit.
fn known() -> impl Iterator<Item = &'static str> {
    listed::lines(include_str!("link_modes.txt"))
}

fn name(bit: usize) -> String {
    known().nth(bit).map_or_else(|| format!("link mode bit {bit}"), str::to_owned)
}

/// The names of the bits that are set in a mask of 32-bit words.
pub(super) fn names(words: impl IntoIterator<Item = u32>) -> Vec<String> {
    let set = words.into_iter().enumerate().flat_map(|(at, word)| {
        (0..32).filter(move |bit| word & 1 << bit != 0).map(move |bit| at * 32 + bit)
    });
    set.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header has the bits by names that only differ in spelling.
    #[test]
    fn names_are_those_of_the_installed_header() {
        let header = std::fs::read_to_string("/usr/include/linux/ethtool.h").unwrap();
        for (bit, name) in known().enumerate() {
            let plain = match name {
                "None" | "RS" | "BASER" | "LLRS" => format!("FEC_{}", name.to_uppercase()),
                other => other.replace('/', "_"),
            };
            let full = format!("ETHTOOL_LINK_MODE_{plain}_BIT");
            let line = header.lines().find(|line| line.split_whitespace().next() == Some(&full));
            let number = line.unwrap_or_else(|| panic!("{full}")).split('=').nth(1).unwrap();
            assert_eq!(number.trim().trim_end_matches(',').parse(), Ok(bit), "{full}");
        }
        assert_eq!(
            names([1 << 5, 1 << 31, 1 << 10]),
            ["1000baseT/Full", "200000baseSR4/Full", "LLRS"]
        );
        assert_eq!(names([0, 0, 0, 1]), ["link mode bit 96"]);
    }
}
