//! The rows of the sockets, with those who hold them.

use rxpath_record::watch::SocketRow;

use super::{Seen, SocketSamples};
use crate::watch::owners::Owners;

impl SocketSamples {
    /// The rows, in this order.
    pub fn rows(&self, window_s: f64, owners: &Owners) -> Vec<SocketRow> {
        let row = |(inode, socket): (&u32, &Seen)| SocketRow {
            protocol: socket.protocol.into(),
            local: socket.local.clone(),
            remote: socket.remote.clone(),
            inode: *inode,
            queued: socket.queued,
            queued_max: socket.queued_max,
            limit: socket.limit,
            drops_pps: socket.memory.dropped() as f64 / window_s,
            drops_total: socket.memory.drops[1].into(),
            processes: owners.named(*inode),
            processes_gap: owners.gap(*inode),
        };
        self.shown.iter().filter_map(|inode| self.seen.get_key_value(inode)).map(row).collect()
    }
}
