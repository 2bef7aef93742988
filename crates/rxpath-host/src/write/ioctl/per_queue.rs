//! Coalescing to ask for of single queues. Generic netlink has nothing for it.
//!
//! **Source** linux/ethtool.h `ETHTOOL_PERQUEUE`, `struct ethtool_per_queue_op`, `struct ethtool_coalesce`.

use crate::ioctl::number::ETHTOOL_SCOALESCE;
use crate::ioctl::{order, put};
use crate::pairs::Pairs;
use crate::read::ioctl::per_queue::{HEAD, filled};
use crate::write::netlink::field::put_words;
use crate::{Group, HostError};

/// Asks for the interrupt moderation of one queue; what is not asked for stays as it reads now.
///
/// **Source** net/ethtool/ioctl.c `ethtool_set_per_queue_coalesce`.
pub fn set_queue_moderation(dev: &str, queue: u32, asked: &Pairs) -> Result<(), HostError> {
    let mut buffer = filled(dev, queue)?;
    put(&mut buffer[4..], &[ETHTOOL_SCOALESCE]);
    let words = &mut buffer[HEAD * 4..];
    put(words, &[ETHTOOL_SCOALESCE]);
    put_words(words, Group::Coalesce, asked)?;
    order(&format!("set the coalescing of queue {queue} of"), dev, &mut buffer)
}
