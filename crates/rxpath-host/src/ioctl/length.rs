//! How long the buffer of a command must be: the kernel writes as much as the content says, whatever the buffer holds.
//!
//! **Source** include/uapi/linux/ethtool.h for the structures, net/ethtool/ioctl.c for what is copied back;
//! include/uapi/linux/net_tstamp.h for time stamps.

use super::number::{
    ETHTOOL_GCHANNELS, ETHTOOL_GCOALESCE, ETHTOOL_GDRVINFO, ETHTOOL_GEEE, ETHTOOL_GFEATURES,
    ETHTOOL_GFECPARAM, ETHTOOL_GLINK, ETHTOOL_GLINKSETTINGS, ETHTOOL_GPAUSEPARAM, ETHTOOL_GPFLAGS,
    ETHTOOL_GRINGPARAM, ETHTOOL_GRSSH, ETHTOOL_GRXCLSRLCNT, ETHTOOL_GRXFH, ETHTOOL_GRXRINGS,
    ETHTOOL_GSSET_INFO, ETHTOOL_GSTATS, ETHTOOL_GSTRINGS, ETHTOOL_PERQUEUE, ETHTOOL_SCOALESCE,
    ETHTOOL_SRSSH, ETHTOOL_SRXFH, SIOCETHTOOL, STRING,
};
use crate::netlink::wire::word32;

/// `struct hwtstamp_config`.
const STAMPS: usize = 12;
/// `struct ethtool_coalesce`.
const COALESCE: usize = 92;
/// `struct ethtool_per_queue_op`: two words and a bit for each of 4096 queues.
const PER_QUEUE: usize = 8 + 512;
/// `struct ethtool_link_settings`, and where its count of words is.
const LINK: usize = 48;
const LINK_WORDS: usize = 15;
/// Length of `struct ethtool_rxnfc`; old drivers write into all of it.
pub(crate) const RXNFC: usize = 192;
/// `struct ethtool_rxfh`.
const RXFH: usize = 24;
/// Of a size in it: leave this part as it is.
const NO_CHANGE: u32 = u32::MAX;
/// Strings and statistics that a driver may get between two calls, in addition to twice as many as before: old kernels write
/// what it has then.
const MORE: usize = 64;

/// The least number of bytes that `buffer` must have for the request that it holds; `None` for a request that is not known.
pub(super) fn least(request: libc::Ioctl, buffer: &[u8]) -> Option<usize> {
    if request != SIOCETHTOOL {
        return Some(STAMPS);
    }
    let word = |at: usize| word32(buffer, at);
    let count = |at: usize| word(at).map(|count| count as usize);
    Some(match word(0)? {
        ETHTOOL_GDRVINFO => 196,
        ETHTOOL_GSTRINGS => 12 + (2 * count(2)? + MORE) * STRING,
        ETHTOOL_GSTATS => 8 + (2 * count(1)? + MORE) * 8,
        ETHTOOL_GSSET_INFO => 16 + 4 * (word(2)?.count_ones() + word(3)?.count_ones()) as usize,
        ETHTOOL_GRXFH | ETHTOOL_SRXFH | ETHTOOL_GRXRINGS | ETHTOOL_GRXCLSRLCNT => RXNFC,
        ETHTOOL_GPFLAGS | ETHTOOL_GLINK => 8,
        ETHTOOL_GFEATURES => 8 + 16 * count(1)?,
        ETHTOOL_GRINGPARAM | ETHTOOL_GCHANNELS => 36,
        ETHTOOL_GPAUSEPARAM | ETHTOOL_GFECPARAM => 16,
        ETHTOOL_GCOALESCE | ETHTOOL_SCOALESCE => COALESCE,
        ETHTOOL_GEEE => 40,
        ETHTOOL_GRSSH | ETHTOOL_SRSSH => {
            let part =
                |at: usize| word(at).map(|size| if size == NO_CHANGE { 0 } else { size as usize });
            RXFH + 4 * part(2)? + part(3)?
        }
        ETHTOOL_GLINKSETTINGS => {
            // Below 0 it is the kernel's answer, and above 127 no count.
            let words = i8::from_ne_bytes([*buffer.get(LINK_WORDS)?]);
            LINK + 3 * 4 * usize::try_from(words).unwrap_or(0)
        }
        ETHTOOL_PERQUEUE => {
            let queues: u32 = (2..PER_QUEUE / 4).filter_map(word).map(u32::count_ones).sum();
            PER_QUEUE + COALESCE * queues as usize
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[u32]) -> Option<usize> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        least(SIOCETHTOOL, &bytes)
    }

    #[test]
    fn a_count_in_the_buffer_makes_it_longer() {
        assert_eq!(of(&[ETHTOOL_GSTRINGS, 1, 100]), Some(12 + 264 * 32));
        assert_eq!(of(&[ETHTOOL_GSTATS, 100]), Some(8 + 264 * 8));
        assert_eq!(of(&[ETHTOOL_GFEATURES, 3]), Some(56));
        assert_eq!(of(&[ETHTOOL_GRSSH, 0, 128, 40]), Some(24 + 512 + 40));
        assert_eq!(of(&[ETHTOOL_SRSSH, 0, NO_CHANGE, 40]), Some(64));
        let mut mask = vec![0; 130];
        (mask[0], mask[2], mask[129]) = (ETHTOOL_PERQUEUE, 3, 1);
        assert_eq!(of(&mask), Some(520 + 3 * 92));
        assert_eq!(of(&[0xffff]), None);
        assert_eq!(of(&[]), None);
    }

    /// The kernel is not asked to write beyond the end.
    #[test]
    fn a_short_buffer_is_refused_before_the_kernel_sees_it() {
        for words in [&[ETHTOOL_GDRVINFO][..], &[ETHTOOL_GSTRINGS, 1, 100], &[0xffff, 0]] {
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let refused = super::super::call("ask", "lo", &mut bytes).unwrap_err();
            assert!(refused.to_string().contains("too short"), "{refused}");
        }
    }
}
