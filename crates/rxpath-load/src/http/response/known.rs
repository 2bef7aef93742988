//! A reply that was read before, so that an equal one need not be parsed.
//!
//! Servers under load answer with the same bytes again and again (but for `Date`, once a second). Equal bytes
//! mean an equal reply, so one comparison is exactly right; anything else is parsed.

use super::Reply;

/// The longest head, or whole chunked reply, that is remembered.
const MAX_BYTES: usize = 4096;

/// The last reply whose head came in one piece.
#[derive(Clone, Debug, Default)]
pub struct Known {
    bytes: Vec<u8>,
    /// Bytes of the whole reply.
    len: u64,
    reply: Reply,
}

impl Known {
    /// Knows nothing yet; all its memory is taken here.
    pub fn new() -> Self {
        Self { bytes: Vec::with_capacity(MAX_BYTES), ..Self::default() }
    }

    /// Length and meaning of the reply at the front of `bytes`, when it is the known one.
    #[inline]
    pub(super) fn find(&self, bytes: &[u8]) -> Option<(u64, Reply)> {
        let is_known = !self.bytes.is_empty() && bytes.starts_with(&self.bytes);
        is_known.then_some((self.len, self.reply))
    }

    /// Learns the reply of `len` bytes that begins so.
    pub(super) fn learn(&mut self, bytes: &[u8], len: u64, reply: Reply) {
        // A memory of no capacity (`Known::default`) never learns.
        if bytes.len() <= self.bytes.capacity() {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            (self.len, self.reply) = (len, reply);
        }
    }
}
