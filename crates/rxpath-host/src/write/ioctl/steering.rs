//! Setting which queue a packet goes to, as only the ioctl does it on every kernel: table, key, function, hashed
//! fields.
//!
//! ethtool netlink reads RSS since 6.3 and sets it since 6.17; the ioctl does both on all kernels.

use crate::HostError;
use crate::ioctl::number::{ETHTOOL_GRSSH, ETHTOOL_SRSSH, ETHTOOL_SRXFH};
use crate::ioctl::{RXNFC, ask, order, put};
use crate::read::ioctl::rss::{FUNCTION, HEAD, TRANSFORMATION};
use crate::read::ioctl::{FlowKind, HashFields};

// linux/ethtool.h
/// Of `indir_size`: leave the table as it is.
const NO_CHANGE: u32 = 0xffff_ffff;
/// `struct ethtool_rxfh` up to its table.
const RXFH: usize = HEAD * 4;

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

/// Asks for parts of a device's main RSS context.
///
/// The transformation (6.8) has no number for "as it is" that an older kernel takes, so it is sent as it reads.
///
/// **Source** net/ethtool/ioctl.c `ethtool_set_rxfh`.
pub(crate) fn set_rss(dev: &str, request: &RssRequest) -> Result<(), HostError> {
    let entries = match &request.table {
        None => NO_CHANGE,
        Some(Table::Default) => 0,
        Some(Table::Entries(entries)) => entries.len() as u32,
    };
    let now = ask("read RSS of", dev, &[ETHTOOL_GRSSH], RXFH)?;
    let mut buffer = vec![0; RXFH];
    let key_length = request.key.as_ref().map_or(0, Vec::len) as u32;
    put(&mut buffer, &[ETHTOOL_SRSSH, 0, entries, key_length]);
    buffer[FUNCTION] = request.function.unwrap_or(0);
    buffer[TRANSFORMATION] = request.transformation.unwrap_or(now[TRANSFORMATION]);
    if let Some(Table::Entries(entries)) = &request.table {
        buffer.extend(entries.iter().flat_map(|entry| entry.to_ne_bytes()));
    }
    buffer.extend(request.key.iter().flatten());
    order("set the RSS table of", dev, &mut buffer)
}

/// Asks for the fields that a device hashes for a kind of packet.
pub(crate) fn set_hash_fields(
    dev: &str,
    kind: FlowKind,
    fields: HashFields,
) -> Result<(), HostError> {
    let mut buffer = [0; RXNFC];
    put(&mut buffer, &[ETHTOOL_SRXFH, kind as u32]);
    buffer[8..16].copy_from_slice(&fields.0.to_ne_bytes());
    order("set the hashed fields of", dev, &mut buffer)
}
