//! Coalescing of single queues. Generic netlink has nothing for it.
//!
//! **Source** linux/ethtool.h `ETHTOOL_PERQUEUE`, `struct ethtool_per_queue_op`, `struct ethtool_coalesce`;
//! net/ethtool/ioctl.c `ethtool_get_per_queue_coalesce` (4.6).

use super::settings::{COALESCE, ETHTOOL_GCOALESCE};
use super::{call, put};
use crate::HostError;
use crate::netlink::ethtool::Coalesce;
use crate::netlink::wire::word32;

pub(super) const ETHTOOL_PERQUEUE: u32 = 0x4b;
/// `MAX_NUM_QUEUE`.
const QUEUES_MAX: u32 = 4096;
/// Words before the data: command, sub-command, one bit for each queue.
const HEAD: usize = 2 + QUEUES_MAX as usize / 32;

/// Coalescing of each of the first `queues` queues.
///
/// **Errors** `Unsupported` for drivers that have one setting for all of them.
pub fn queue_coalesce(dev: &str, queues: u32) -> Result<Vec<Coalesce>, HostError> {
    let queues = queues.min(QUEUES_MAX);
    let mut buffer = vec![0; (HEAD + COALESCE * queues as usize) * 4];
    put(&mut buffer, &[ETHTOOL_PERQUEUE, ETHTOOL_GCOALESCE]);
    for queue in 0..queues {
        // The mask is an array of words: bit n of word m is queue 32 m + n.
        let word = (2 + queue / 32) as usize * 4;
        let bits = u32::from_ne_bytes([
            buffer[word],
            buffer[word + 1],
            buffer[word + 2],
            buffer[word + 3],
        ]) | 1 << (queue % 32);
        put(&mut buffer[word..], &[bits]);
    }
    call("read the coalescing of each queue of", dev, &mut buffer)?;
    Ok(parse_per_queue(&buffer))
}

/// Reads the structures behind the mask.
///
/// The old structure has no sign for "not there": what drivers leave out is 0.
pub fn parse_per_queue(buffer: &[u8]) -> Vec<Coalesce> {
    let data = buffer.get(HEAD * 4..).unwrap_or_default();
    let each = data.chunks_exact(COALESCE * 4);
    each.map(|one| {
        let of = |n| word32(one, n);
        Coalesce {
            rx_usecs: of(1),
            rx_max_frames: of(2),
            tx_usecs: of(5),
            tx_max_frames: of(6),
            adaptive_rx: of(10).map(|on| on != 0),
            adaptive_tx: of(11).map(|on| on != 0),
            ..Coalesce::default()
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_has_its_structure() {
        let mut buffer = vec![0; (HEAD + 2 * COALESCE) * 4];
        put(&mut buffer[HEAD * 4..], &[ETHTOOL_GCOALESCE, 8, 64]);
        put(
            &mut buffer[(HEAD + COALESCE) * 4..],
            &[ETHTOOL_GCOALESCE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        );
        let found = parse_per_queue(&buffer);
        assert_eq!((found[0].rx_usecs, found[0].rx_max_frames), (Some(8), Some(64)));
        assert_eq!((found[1].rx_usecs, found[1].adaptive_rx), (Some(0), Some(true)));
        assert!(parse_per_queue(&[]).is_empty());
    }
}
