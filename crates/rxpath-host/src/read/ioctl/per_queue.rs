//! Coalescing of single queues. Generic netlink has nothing for it.
//!
//! **Source** linux/ethtool.h `ETHTOOL_PERQUEUE`, `struct ethtool_per_queue_op`, `struct ethtool_coalesce`;
//! net/ethtool/ioctl.c `ethtool_get_per_queue_coalesce` (4.6).

use super::settings::COALESCE;
use crate::ioctl::number::{ETHTOOL_GCOALESCE, ETHTOOL_PERQUEUE};
use crate::ioctl::{call, put};
use crate::netlink::wire::word32;
use crate::pairs::Pairs;
use crate::read::netlink::ethtool::Coalesce;
use crate::read::netlink::ethtool::field::Answer;
use crate::{Group, HostError};

/// `MAX_NUM_QUEUE`.
const QUEUES_MAX: u32 = 4096;
/// Words before the data: command, sub-command, one bit for each queue.
pub(crate) const HEAD: usize = 2 + QUEUES_MAX as usize / 32;

/// A request about these queues, with room for what is read or set of each.
fn request(command: u32, queues: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut buffer = vec![0; HEAD * 4];
    put(&mut buffer, &[ETHTOOL_PERQUEUE, command]);
    for queue in queues {
        // The mask is an array of words: bit n of word m is queue 32 m + n.
        let word = (2 + queue / 32) as usize;
        let bits = word32(&buffer, word).unwrap_or_default() | 1 << (queue % 32);
        put(&mut buffer[word * 4..], &[bits]);
        buffer.resize(buffer.len() + COALESCE * 4, 0);
    }
    buffer
}

/// Coalescing of each of the first `queues` queues.
///
/// **Errors** `Unsupported` for drivers that have one setting for all of them.
pub fn queue_coalesce(dev: &str, queues: u32) -> Result<Vec<Coalesce>, HostError> {
    let mut buffer = request(ETHTOOL_GCOALESCE, 0..queues.min(QUEUES_MAX));
    call("read the coalescing of each queue of", dev, &mut buffer)?;
    Ok(parse_per_queue(&buffer))
}

/// What is read of one queue, as the kernel filled it.
pub(crate) fn filled(dev: &str, queue: u32) -> Result<Vec<u8>, HostError> {
    if queue >= QUEUES_MAX {
        return Err(HostError::malformed("queue", 0, format!("{queue}: 0 to 4095 expected")));
    }
    let mut buffer = request(ETHTOOL_GCOALESCE, queue..=queue);
    call(&format!("read the coalescing of queue {queue} of"), dev, &mut buffer)?;
    Ok(buffer)
}

/// Interrupt moderation of one queue.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_per_queue_coalesce`.
pub fn queue_moderation(dev: &str, queue: u32) -> Result<Pairs, HostError> {
    Ok(Answer::of_words(Group::Coalesce, &filled(dev, queue)?[HEAD * 4..]).pairs())
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
    fn a_request_for_one_queue_names_it_alone() {
        let buffer = request(ETHTOOL_GCOALESCE, 33..=33);
        assert_eq!(word32(&buffer, 0), Some(ETHTOOL_PERQUEUE));
        assert_eq!((word32(&buffer, 2), word32(&buffer, 3)), (Some(0), Some(2)));
        assert_eq!(buffer.len(), 520 + 92);
        assert!(filled("lo", 4096).is_err());
    }

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
