//! Offload features and private flags for kernels that don't report them over netlink (before 5.7): bits, and their names
//! in sets of strings.

use rxpath_core::IntoMap;

use super::STATS_MAX;
use crate::HostError;
use crate::ioctl::number::{
    ETHTOOL_GFEATURES, ETHTOOL_GPFLAGS, ETHTOOL_GSSET_INFO, ETHTOOL_GSTRINGS, STRING,
};
use crate::ioctl::{ask, call, put};
use crate::netlink::wire::{text, word32};
use crate::read::netlink::ethtool::{Feature, Features, PrivateFlags};

// linux/ethtool.h
const ETH_SS_PRIV_FLAGS: u32 = 2;
const ETH_SS_FEATURES: u32 = 4;

/// Words before the blocks of `struct ethtool_gfeatures`.
const HEAD: usize = 2;
/// Words of `struct ethtool_get_features_block`: available, requested, active, never changed.
const BLOCK: usize = 4;

/// The features of a device.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_features` (2.6.39), `__ethtool_get_strings`.
pub fn features(dev: &str) -> Result<Features, HostError> {
    let names = string_set(dev, ETH_SS_FEATURES)?;
    let blocks = names.len().div_ceil(32);
    let head = [ETHTOOL_GFEATURES, blocks as u32];
    let buffer = ask("read features of", dev, &head, (HEAD + blocks * BLOCK) * 4)?;
    Ok(parse_feature_blocks(&names, &buffer))
}

/// Private flags of a device.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_value`, `ETHTOOL_GPFLAGS`. **Errors** `Unsupported` for drivers without.
pub fn private_flags(dev: &str) -> Result<PrivateFlags, HostError> {
    let flags = ask("read private flags of", dev, &[ETHTOOL_GPFLAGS], 8)?;
    let flags = word32(&flags, 1).unwrap_or_default();
    let names = string_set(dev, ETH_SS_PRIV_FLAGS)?;
    let bits = names.into_iter().take(32).enumerate().filter(|(_, name)| !name.is_empty());
    Ok(bits.map(|(bit, name)| (name, flags & 1 << bit != 0)).into_map())
}

/// Reads an answered `struct ethtool_gfeatures`; bits without a name are reserved, those that were not answered are left
/// out.
pub fn parse_feature_blocks(names: &[String], buffer: &[u8]) -> Features {
    let bits = names.iter().enumerate().filter(|(_, name)| !name.is_empty());
    let found = bits.filter_map(|(bit, name)| {
        let of = |part| {
            let word = word32(buffer, HEAD + bit / 32 * BLOCK + part)?;
            Some(word & 1 << (bit % 32) != 0)
        };
        let feature = Feature { changeable: of(0)? && !of(3)?, wanted: of(1)?, active: of(2)? };
        Some((name.clone(), feature))
    });
    found.into_map()
}

/// The strings of a set; their places are the numbers of bits.
fn string_set(dev: &str, set: u32) -> Result<Vec<String>, HostError> {
    // Command, reserve, the sets as a mask of 64 bits, one size.
    let mut info = [0; 20];
    put(&mut info, &[ETHTOOL_GSSET_INFO]);
    info[8..16].copy_from_slice(&(1u64 << set).to_ne_bytes());
    call("read the number of names of", dev, &mut info)?;
    let count = word32(&info, 4).unwrap_or_default() as usize;
    if count > STATS_MAX {
        let why = format!("{dev} claims {count} names");
        return Err(HostError::malformed("ethtool", 0, why));
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    // Room for a set that grows between the calls: the kernel writes what it has then.
    let head = [ETHTOOL_GSTRINGS, set, count as u32];
    let buffer = ask("read the names of", dev, &head, 12 + (2 * count + 64) * STRING)?;
    let count = word32(&buffer, 2).unwrap_or_default() as usize;
    Ok(buffer[12..].chunks_exact(STRING).take(count).map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::takes_any_bytes;

    #[test]
    fn bits_are_found_in_their_blocks() {
        let mut names = vec![String::new(); 34];
        names[0] = "rx-gro".into();
        names[33] = "rx-lro".into();
        let words = [0x3a, 2, 1, 1, 0, 0, 0, 2, 2, 2];
        let buffer: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
        let found = parse_feature_blocks(&names, &buffer);
        assert_eq!(found.len(), 2);
        assert_eq!(found["rx-gro"], Feature { active: false, wanted: true, changeable: true });
        assert_eq!(found["rx-lro"], Feature { active: true, wanted: true, changeable: false });
        assert_eq!(
            parse_feature_blocks(&names, &buffer[..20]).len(),
            0,
            "cut before the last word"
        );
    }

    takes_any_bytes!(100, bytes => parse_feature_blocks(&vec!["a".to_owned(); 70], &bytes));
}
