//! Payloads: the header of each datagram, written in place.

use crate::engine::batch::SendBatch;
use crate::engine::clock;
use crate::engine::raw::Ends;
use crate::udp::header::{HEADER_BYTES, MAGIC, Stamp};

/// How messages are laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Payload of one datagram.
    pub(super) size: usize,
    /// Datagrams per message.
    pub(super) segments: usize,
    /// Bytes in front of the payload (raw packets).
    pub(super) front: usize,
}

impl Layout {
    /// Bytes of a message.
    pub(super) fn message_bytes(self) -> usize {
        self.front + self.size * self.segments
    }

    /// Writes what never changes.
    pub(super) fn prepare(self, batch: &mut SendBatch, messages: usize) {
        if self.size < HEADER_BYTES + MAGIC.len() {
            return;
        }
        for i in 0..messages {
            for payload in batch.data(i)[self.front..].chunks_exact_mut(self.size) {
                payload[HEADER_BYTES..HEADER_BYTES + MAGIC.len()].copy_from_slice(&MAGIC);
            }
        }
    }

    /// Writes the headers of `messages` messages from number `sequence` on.
    #[inline]
    pub(super) fn fill(self, batch: &mut SendBatch, messages: usize, stamp: Stamp, sequence: u64) {
        if self.size < HEADER_BYTES {
            return;
        }
        let mut sequence = sequence;
        for i in 0..messages {
            for payload in batch.data(i)[self.front..].chunks_exact_mut(self.size) {
                stamp.write(sequence, payload);
                sequence += 1;
            }
        }
    }

    /// Puts the headers with the wrong checksum in front.
    pub(super) fn corrupt(batch: &mut SendBatch, messages: usize, ends: &Ends) {
        for i in 0..messages {
            ends.write_with_wrong_checksum(batch.data(i));
        }
    }
}

/// The send loop's own cost per datagram, without system calls. **Unit** ns, the best of `rounds`.
///
/// It runs the same code over batches of `batch` messages of `segments` datagrams of 32 bytes, a clock
/// reading per batch included.
pub fn dry_loop_ns(batch: usize, segments: usize, rounds: u32) -> f64 {
    const BATCHES: u64 = 2_000;
    let layout = Layout { size: 32, segments: segments.max(1), front: 0 };
    let batch = batch.max(1);
    let mut messages = SendBatch::new(batch, layout.message_bytes(), 0);
    layout.prepare(&mut messages, batch);
    let (identity, mut sequence, mut best) = (clock::identity(), 0, f64::MAX);
    let per_batch = (batch * layout.segments) as u64;
    for _ in 0..rounds.max(1) {
        let start = clock::now_ns();
        for _ in 0..BATCHES {
            let stamp = Stamp::new(1, identity, clock::now_ns());
            layout.fill(std::hint::black_box(&mut messages), batch, stamp, sequence);
            sequence += per_batch;
        }
        best = best.min((clock::now_ns() - start) as f64 / (BATCHES * per_batch) as f64);
    }
    best
}
