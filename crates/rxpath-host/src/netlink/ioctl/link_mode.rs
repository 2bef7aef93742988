//! Names of link modes by their bits, as netlink gives them: the ioctl has the bits alone.
//!
//! **Source** net/ethtool/common.c `link_mode_names`. The list ends with 5.6, where netlink gives the names itself.

/// Names by bit.
const NAMES: [&str; 75] = [
    "10baseT/Half",
    "10baseT/Full",
    "100baseT/Half",
    "100baseT/Full",
    "1000baseT/Half",
    "1000baseT/Full",
    "Autoneg",
    "TP",
    "AUI",
    "MII",
    "FIBRE",
    "BNC",
    "10000baseT/Full",
    "Pause",
    "Asym_Pause",
    "2500baseX/Full",
    "Backplane",
    "1000baseKX/Full",
    "10000baseKX4/Full",
    "10000baseKR/Full",
    "10000baseR_FEC",
    "20000baseMLD2/Full",
    "20000baseKR2/Full",
    "40000baseKR4/Full",
    "40000baseCR4/Full",
    "40000baseSR4/Full",
    "40000baseLR4/Full",
    "56000baseKR4/Full",
    "56000baseCR4/Full",
    "56000baseSR4/Full",
    "56000baseLR4/Full",
    "25000baseCR/Full",
    "25000baseKR/Full",
    "25000baseSR/Full",
    "50000baseCR2/Full",
    "50000baseKR2/Full",
    "100000baseKR4/Full",
    "100000baseSR4/Full",
    "100000baseCR4/Full",
    "100000baseLR4_ER4/Full",
    "50000baseSR2/Full",
    "1000baseX/Full",
    "10000baseCR/Full",
    "10000baseSR/Full",
    "10000baseLR/Full",
    "10000baseLRM/Full",
    "10000baseER/Full",
    "2500baseT/Full",
    "5000baseT/Full",
    "None",
    "RS",
    "BASER",
    "50000baseKR/Full",
    "50000baseSR/Full",
    "50000baseCR/Full",
    "50000baseLR_ER_FR/Full",
    "50000baseDR/Full",
    "100000baseKR2/Full",
    "100000baseSR2/Full",
    "100000baseCR2/Full",
    "100000baseLR2_ER2_FR2/Full",
    "100000baseDR2/Full",
    "200000baseKR4/Full",
    "200000baseSR4/Full",
    "200000baseLR4_ER4_FR4/Full",
    "200000baseDR4/Full",
    "200000baseCR4/Full",
    "100baseT1/Full",
    "1000baseT1/Full",
    "400000baseKR8/Full",
    "400000baseSR8/Full",
    "400000baseLR8_ER8_FR8/Full",
    "400000baseDR8/Full",
    "400000baseCR8/Full",
    "LLRS",
];

/// The name of a bit.
fn name(bit: usize) -> String {
    NAMES.get(bit).map_or_else(|| format!("link mode bit {bit}"), |name| (*name).to_owned())
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
        for (bit, name) in NAMES.iter().enumerate() {
            let plain = match *name {
                "None" | "RS" | "BASER" | "LLRS" => format!("FEC_{}", name.to_uppercase()),
                other => other.replace('/', "_"),
            };
            let full = format!("ETHTOOL_LINK_MODE_{plain}_BIT");
            let line = header.lines().find(|line| line.split_whitespace().next() == Some(&full));
            let number = line.unwrap_or_else(|| panic!("{full}")).split('=').nth(1).unwrap();
            assert_eq!(number.trim().trim_end_matches(',').parse(), Ok(bit), "{full}");
        }
        assert_eq!(names([1 << 5, 1 << 31, 1 << 10]), ["1000baseT/Full", NAMES[63], "LLRS"]);
        assert_eq!(names([0, 0, 0, 1]), ["link mode bit 96"]);
    }
}
