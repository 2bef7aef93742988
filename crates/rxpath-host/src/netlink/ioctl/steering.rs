//! Setting which queue a packet goes to, as only the ioctl does it on every kernel: table, key, function, hashed
//! fields; and interrupt moderation of one queue, which netlink does not have.
//!
//! ethtool netlink reads RSS since 6.3 and sets it since 6.17; the ioctl does both on all kernels.

use super::flow_hash::RXNFC;
use super::per_queue::ETHTOOL_PERQUEUE;
use super::rss::{ETHTOOL_GRSSH, FUNCTION, HEAD, TRANSFORMATION};
use super::rules::ETHTOOL_GRXRINGS;
use super::settings::{COALESCE, ETHTOOL_GCOALESCE};
use super::{FlowKind, HashFields, call, order};
use crate::netlink::ethtool::field::{Answer, requested};
use crate::netlink::wire::word32;
use crate::pairs::Pairs;
use crate::{Group, HostError};

// linux/ethtool.h
pub(super) const ETHTOOL_SCOALESCE: u32 = 0x0f;
pub(super) const ETHTOOL_SRXFH: u32 = 0x2a;
pub(super) const ETHTOOL_SRSSH: u32 = 0x47;
/// Of `indir_size`: leave the table as it is.
const NO_CHANGE: u32 = 0xffff_ffff;
/// `struct ethtool_rxfh` up to its table.
const RXFH: usize = HEAD * 4;
/// `struct ethtool_per_queue_op` up to its data: two words and a mask of 4096 queues.
const PER_QUEUE: usize = 8 + 512;

/// What to change of a device's RSS; `None` leaves a part as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RssRequest {
    /// The table.
    pub table: Option<Table>,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The function's bit.
    pub function: Option<u8>,
    /// The bit of what is done to the fields before they are hashed; 0 for nothing.
    pub transformation: Option<u8>,
}

/// A table to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Table {
    /// The driver's own choice: entry `i` to queue `i` modulo the number of queues.
    Default,
    /// These queues.
    Entries(Vec<u32>),
}

fn put(buffer: &mut [u8], word: usize, value: u32) {
    buffer[word * 4..word * 4 + 4].copy_from_slice(&value.to_ne_bytes());
}

/// Asks for parts of a device's main RSS context.
///
/// The transformation (6.8) has no number for "as it is" that an older kernel takes, so it is sent as it reads.
///
/// **Source** net/ethtool/ioctl.c `ethtool_set_rxfh`.
pub fn set_rss(dev: &str, request: &RssRequest) -> Result<(), HostError> {
    let entries = match &request.table {
        None => NO_CHANGE,
        Some(Table::Default) => 0,
        Some(Table::Entries(entries)) => entries.len() as u32,
    };
    let mut now = [0; RXFH];
    put(&mut now, 0, ETHTOOL_GRSSH);
    call("read RSS of", dev, &mut now)?;
    let mut buffer = vec![0; RXFH];
    put(&mut buffer, 0, ETHTOOL_SRSSH);
    put(&mut buffer, 2, entries);
    put(&mut buffer, 3, request.key.as_ref().map_or(0, Vec::len) as u32);
    buffer[FUNCTION] = request.function.unwrap_or(0);
    buffer[TRANSFORMATION] = request.transformation.unwrap_or(now[TRANSFORMATION]);
    if let Some(Table::Entries(entries)) = &request.table {
        buffer.extend(entries.iter().flat_map(|entry| entry.to_ne_bytes()));
    }
    buffer.extend(request.key.iter().flatten());
    order("set the RSS table of", dev, &mut buffer)
}

/// How many queues RSS can spread to.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_rxrings`, `ETHTOOL_GRXRINGS`.
pub fn receive_queues(dev: &str) -> Result<u32, HostError> {
    let mut buffer = [0; RXNFC];
    put(&mut buffer, 0, ETHTOOL_GRXRINGS);
    call("read the number of receive queues of", dev, &mut buffer)?;
    Ok(word32(&buffer, 2).unwrap_or_default())
}

/// Asks for the fields that a device hashes for a kind of packet.
pub fn set_hash_fields(dev: &str, kind: FlowKind, fields: HashFields) -> Result<(), HostError> {
    let mut buffer = [0; RXNFC];
    put(&mut buffer, 0, ETHTOOL_SRXFH);
    put(&mut buffer, 1, kind.number());
    buffer[8..16].copy_from_slice(&fields.0.to_ne_bytes());
    order("set the hashed fields of", dev, &mut buffer)
}

fn per_queue(command: u32, queue: u32) -> Result<Vec<u8>, HostError> {
    if queue >= 4096 {
        return Err(HostError::malformed("queue", 0, format!("{queue}: 0 to 4095 expected")));
    }
    let mut buffer = vec![0; PER_QUEUE + COALESCE * 4];
    put(&mut buffer, 0, ETHTOOL_PERQUEUE);
    put(&mut buffer, 1, command);
    put(&mut buffer, 2 + queue as usize / 32, 1 << (queue % 32));
    put(&mut buffer, PER_QUEUE / 4, command);
    Ok(buffer)
}

fn queue_moderation_words(dev: &str, queue: u32) -> Result<Vec<u8>, HostError> {
    let mut buffer = per_queue(ETHTOOL_GCOALESCE, queue)?;
    call(&format!("read the coalescing of queue {queue} of"), dev, &mut buffer)?;
    Ok(buffer)
}

/// Interrupt moderation of one queue.
///
/// **Source** net/ethtool/ioctl.c `ethtool_get_per_queue_coalesce`.
pub fn queue_moderation(dev: &str, queue: u32) -> Result<Pairs, HostError> {
    let words = queue_moderation_words(dev, queue)?;
    Ok(Answer::of_words(Group::Coalesce, &words[PER_QUEUE..]).pairs())
}

/// Asks for the interrupt moderation of one queue; what is not asked for stays as it reads now.
///
/// **Source** net/ethtool/ioctl.c `ethtool_set_per_queue_coalesce`.
pub fn set_queue_moderation(dev: &str, queue: u32, asked: &Pairs) -> Result<(), HostError> {
    let now = queue_moderation_words(dev, queue)?;
    let mut buffer = per_queue(ETHTOOL_SCOALESCE, queue)?;
    buffer[PER_QUEUE + 4..].copy_from_slice(&now[PER_QUEUE + 4..]);
    for (field, number) in requested(Group::Coalesce, asked, |field| field.word.is_some())? {
        put(&mut buffer[PER_QUEUE..], field.word.map_or(0, |(word, _)| word), number);
    }
    order(&format!("set the coalescing of queue {queue} of"), dev, &mut buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_one_queue_names_it_alone() {
        let buffer = per_queue(ETHTOOL_GCOALESCE, 33).unwrap();
        assert_eq!(word32(&buffer, 0), Some(ETHTOOL_PERQUEUE));
        assert_eq!((word32(&buffer, 2), word32(&buffer, 3)), (Some(0), Some(2)));
        assert_eq!(buffer.len(), 520 + 92);
        assert!(per_queue(ETHTOOL_GCOALESCE, 4096).is_err());
    }
}
