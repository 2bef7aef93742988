//! RSS by ioctl, for kernels before 6.3.
//!
//! **Source** linux/ethtool.h `ETHTOOL_GRSSH`, `struct ethtool_rxfh`; net/ethtool/ioctl.c `ethtool_get_rxfh`.

use crate::HostError;
use crate::ioctl::ask;
use crate::ioctl::number::ETHTOOL_GRSSH;
use crate::netlink::wire::word32;
use crate::read::netlink::ethtool::{Rss, function, key_fact, transformation};

/// Words before the table in `struct ethtool_rxfh`: four numbers, function and transformation, one in reserve.
pub(crate) const HEAD: usize = 6;
pub(crate) const FUNCTION: usize = 16;
pub(crate) const TRANSFORMATION: usize = 17;
/// More entries and key bytes than any driver has.
const MOST: u32 = 1 << 20;

/// The indirection table, key and function of a device.
///
/// **Errors** `Unsupported` for drivers without them.
pub fn rss(dev: &str) -> Result<Rss, HostError> {
    let op = "read RSS of";
    // Sizes of zero ask for the sizes.
    let sizes = ask(op, dev, &[ETHTOOL_GRSSH], HEAD * 4)?;
    let size = |n| word32(&sizes, n).unwrap_or_default();
    let (table, key) = (size(2), size(3));
    if table > MOST || key > MOST {
        let why = format!("{dev} claims an RSS table of {table} entries and a key of {key} bytes");
        return Err(HostError::malformed("ethtool", 0, why));
    }
    let bytes = HEAD * 4 + table as usize * 4 + key as usize;
    parse_rxfh(&ask(op, dev, &[ETHTOOL_GRSSH, 0, table, key], bytes)?)
}

/// Reads an answered `struct ethtool_rxfh`.
pub fn parse_rxfh(buffer: &[u8]) -> Result<Rss, HostError> {
    let cut = || HostError::malformed("ethtool", 0, "a cut RSS answer");
    let size = |n| word32(buffer, n).map(|size| size as usize).ok_or_else(cut);
    let (entries, key) = (size(2)?, size(3)?);
    let body = buffer.get(HEAD * 4..).ok_or_else(cut)?;
    let split = entries.checked_mul(4).filter(|split| *split <= body.len()).ok_or_else(cut)?;
    let (table, rest) = body.split_at(split);
    let key = rest.get(..key).ok_or_else(cut)?;
    let table = table.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word)).collect();
    Ok(Rss {
        function: function(u32::from(buffer[FUNCTION])),
        table,
        key: key_fact(key),
        transformation: transformation(u32::from(buffer[TRANSFORMATION])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_bytes::takes_any_bytes;
    use crate::ioctl::put;

    #[test]
    fn table_and_key_follow_the_head() {
        let mut buffer = vec![0; HEAD * 4];
        put(&mut buffer, &[ETHTOOL_GRSSH, 0, 2, 3, 1]);
        buffer.extend([1u32, 0].iter().flat_map(|n| n.to_ne_bytes()));
        buffer.extend([0xaa, 0xbb, 0xcc]);
        let rss = parse_rxfh(&buffer).unwrap();
        assert_eq!(
            (rss.table.as_slice(), rss.function.as_deref()),
            (&[1, 0][..], Some("toeplitz"))
        );
        assert_eq!(rss.key.value().map(String::as_str), Some("aabbcc"));
        assert!(parse_rxfh(&buffer[..buffer.len() - 1]).is_err());
    }

    takes_any_bytes!(80, bytes => parse_rxfh(&bytes));
}
