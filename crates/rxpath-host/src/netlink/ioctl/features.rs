//! Offload features and private flags for kernels that don't tell or take them over netlink (before 5.7): bits, and their names
//! in sets of strings.

use super::settings::words;
use super::{ETHTOOL_GSTRINGS, STATS_MAX, STRING, call, order, put};
use crate::HostError;
use crate::netlink::ethtool::{Feature, Features, PrivateFlags};
use crate::netlink::wire::{text, word32};

// linux/ethtool.h
pub(super) const ETHTOOL_GPFLAGS: u32 = 0x27;
pub(super) const ETHTOOL_SPFLAGS: u32 = 0x28;
pub(super) const ETHTOOL_GSSET_INFO: u32 = 0x37;
pub(super) const ETHTOOL_GFEATURES: u32 = 0x3a;
pub(super) const ETHTOOL_SFEATURES: u32 = 0x3b;
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
    let mut buffer = vec![0; (HEAD + blocks * BLOCK) * 4];
    put(&mut buffer, &[ETHTOOL_GFEATURES, blocks as u32]);
    call("read features of", dev, &mut buffer)?;
    Ok(parse_feature_blocks(&names, &buffer))
}

/// Private flags of a device.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_value`, `ETHTOOL_GPFLAGS`. **Errors** `Unsupported` for drivers without.
pub fn private_flags(dev: &str) -> Result<PrivateFlags, HostError> {
    let flags = words("private flags", dev, ETHTOOL_GPFLAGS, 2)?;
    let flags = word32(&flags, 1).unwrap_or_default();
    let names = string_set(dev, ETH_SS_PRIV_FLAGS)?;
    let bits = names.into_iter().take(32).enumerate().filter(|(_, name)| !name.is_empty());
    Ok(bits.map(|(bit, name)| (name, flags & 1 << bit != 0)).collect())
}

/// Asks for features by their names; read them back to see what came of it.
///
/// **Source** net/ethtool/ioctl.c `ethtool_set_features`.
///
/// **Errors** `Malformed` for a name that this kernel does not have.
pub(super) fn set_features(dev: &str, asked: &[(String, bool)]) -> Result<(), HostError> {
    let names = string_set(dev, ETH_SS_FEATURES)?;
    let mut buffer = feature_request(&names, asked)?;
    order("set features of", dev, &mut buffer)
}

/// `struct ethtool_sfeatures`: for each block of 32 bits those that are meant, and those of them that are wanted.
fn feature_request(names: &[String], asked: &[(String, bool)]) -> Result<Vec<u8>, HostError> {
    let blocks = names.len().div_ceil(32);
    let mut request = vec![0; HEAD + blocks * 2];
    (request[0], request[1]) = (ETHTOOL_SFEATURES, blocks as u32);
    for (name, on) in asked {
        let bit = place(names, name, "feature")?;
        let block = HEAD + bit / 32 * 2;
        request[block] |= 1 << (bit % 32);
        request[block + 1] |= u32::from(*on) << (bit % 32);
    }
    Ok(request.into_iter().flat_map(u32::to_ne_bytes).collect())
}

/// Asks for private flags by their names; the others stay.
///
/// **Source** net/ethtool/ioctl.c `ethtool_set_value`, `ETHTOOL_SPFLAGS`.
///
/// **Errors** `Malformed` for a name that the driver does not have.
pub(super) fn set_private_flags(dev: &str, asked: &[(String, bool)]) -> Result<(), HostError> {
    let mut value = words("private flags", dev, ETHTOOL_GPFLAGS, 2)?;
    let names = string_set(dev, ETH_SS_PRIV_FLAGS)?;
    let mut flags = word32(&value, 1).unwrap_or_default();
    for (name, on) in asked {
        let mask = 1 << place(&names[..names.len().min(32)], name, "private flag")?;
        flags = if *on { flags | mask } else { flags & !mask };
    }
    put(&mut value, &[ETHTOOL_SPFLAGS, flags]);
    order("set private flags of", dev, &mut value)
}

/// The number of a name's bit.
fn place(names: &[String], name: &str, what: &str) -> Result<usize, HostError> {
    let found = names.iter().position(|known| known == name);
    found.ok_or_else(|| HostError::malformed("ethtool", 0, format!("there is no {what} {name}")))
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
    found.collect()
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
    let mut buffer = vec![0; 12 + (2 * count + 64) * STRING];
    put(&mut buffer, &[ETHTOOL_GSTRINGS, set, count as u32]);
    call("read the names of", dev, &mut buffer)?;
    let count = word32(&buffer, 2).unwrap_or_default() as usize;
    Ok(buffer[12..].chunks_exact(STRING).take(count).map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn features_are_asked_for_by_their_bits_and_no_others() {
        let names: Vec<String> = (0..40).map(|bit| format!("f{bit}")).collect();
        let asked = [("f0".to_owned(), true), ("f33".to_owned(), false), ("f34".to_owned(), true)];
        let request = feature_request(&names, &asked).unwrap();
        let found: Vec<u32> = (0..6).map(|at| word32(&request, at).unwrap()).collect();
        assert_eq!(found, [ETHTOOL_SFEATURES, 2, 1, 1, 0b110, 0b100]);
        assert_eq!(request.len(), 24);
        let error = feature_request(&names, &[("f40".to_owned(), true)]).unwrap_err();
        assert!(error.to_string().contains("there is no feature f40"), "{error}");
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse_feature_blocks(&vec!["a".to_owned(); 70], &bytes);
        }
    }
}
