//! Payloads: the header of each datagram, written in place.

use crate::engine::clock;
use crate::udp::header::{HEADER_BYTES, MAGIC, Stamp};
use crate::udp::load::options::LoadOptions;
use crate::udp::load::transmit::Transmit;
use crate::udp::load::transmit::socket::UdpSockets;

/// Datagrams of this size, in messages of one or several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Payload of one datagram.
    pub(super) size: usize,
    /// Datagrams per message.
    pub(super) segments: usize,
}

impl Layout {
    /// Writes what never changes.
    pub(super) fn prepare(self, engine: &mut impl Transmit, messages: usize) {
        if self.size < HEADER_BYTES + MAGIC.len() {
            return;
        }
        for i in 0..messages {
            for payload in engine.payload(i).chunks_exact_mut(self.size) {
                payload[HEADER_BYTES..HEADER_BYTES + MAGIC.len()].copy_from_slice(&MAGIC);
            }
        }
    }

    /// Writes the headers of `messages` messages from number `sequence` on.
    #[inline]
    pub(super) fn fill(
        self,
        engine: &mut impl Transmit,
        messages: usize,
        stamp: Stamp,
        sequence: u64,
    ) {
        if self.size < HEADER_BYTES {
            return;
        }
        let mut sequence = sequence;
        for i in 0..messages {
            for payload in engine.payload(i).chunks_exact_mut(self.size) {
                stamp.write(sequence, payload);
                sequence += 1;
            }
        }
    }
}

/// The send loop's own cost per datagram, without system calls. **Unit** ns, the best of `rounds`.
///
/// It runs the same code over batches as these options ask for, but of datagrams of 32 bytes, a clock reading per batch
/// included.
pub fn dry_loop_ns(options: &LoadOptions, rounds: u32) -> f64 {
    const BATCHES: u64 = 2_000;
    let layout = Layout { size: 32, segments: options.segments().max(1) };
    let (size, batch) = (layout.size, options.batch.max(1));
    let options = LoadOptions { size, batch, gso: Some(layout.segments), ..options.clone() };
    let mut messages = UdpSockets::of(Vec::new(), &options);
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
