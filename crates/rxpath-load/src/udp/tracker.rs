//! Which sequence numbers came: lost, duplicate and reordered datagrams, exact within a window.
//!
//! Each stream has a ring of bits for the last [`WINDOW`] numbers. A number above the highest so far moves
//! the ring on; for one inside, the ring distinguishes a duplicate from a late datagram; one below the ring
//! can no longer be distinguished: it counts as late, and also in `beyond_window`.
//! Memory is bounded: 2 KiB a stream, at most [`MAX_STREAMS`] streams. In order, a datagram costs a
//! comparison and a bit. Nothing is allocated except when a new stream appears.

use std::collections::BTreeMap;

use crate::udp::header::{sender_of, unwrap_sequence};
use crate::udp::result::{SenderPackets, Sequence};

/// Numbers remembered per stream.
pub const WINDOW: u64 = 16_384;
/// Streams that are tracked; datagrams of later ones are counted as untracked.
pub const MAX_STREAMS: usize = 16_384;
const WORDS: usize = (WINDOW / 64) as usize;

/// One stream.
#[derive(Clone, Debug)]
struct Stream {
    id: u32,
    /// Highest number so far, plus one.
    next: u64,
    unique: u64,
    duplicate: u64,
    reordered: u64,
    beyond_window: u64,
    bits: Box<[u64; WORDS]>,
}

impl Stream {
    fn new(id: u32) -> Self {
        let bits = Box::new([0; WORDS]);
        Self { id, next: 0, unique: 0, duplicate: 0, reordered: 0, beyond_window: 0, bits }
    }

    #[inline]
    fn take(&mut self, low: u64) {
        let number = if low == self.next { low } else { unwrap_sequence(low, self.next) };
        if number >= self.next {
            // Otherwise the word was cleared when its first number came by.
            if number != self.next || number.is_multiple_of(64) {
                self.clear(number);
            }
            self.next = number + 1;
            self.unique += 1;
            self.bits[(number / 64) as usize % WORDS] |= 1 << (number % 64);
        } else {
            self.late(number);
        }
    }

    /// Clears the bits of the numbers from `next` to `number`.
    fn clear(&mut self, number: u64) {
        let (from, to) = (self.next.div_ceil(64), number / 64);
        // The rest of the word of `next - 1` is clear already: words are cleared whole.
        for word in from..=to.min(from + WORDS as u64 - 1) {
            self.bits[word as usize % WORDS] = 0;
        }
        if to >= from + WORDS as u64 {
            self.bits.fill(0);
        }
    }

    #[cold]
    fn late(&mut self, number: u64) {
        // The oldest word may be shared with the newest numbers: it counts as gone.
        if self.next - number > WINDOW - 64 {
            self.beyond_window += 1;
            self.reordered += 1;
            self.unique += 1;
            return;
        }
        let (word, bit) = ((number / 64) as usize % WORDS, 1 << (number % 64));
        if self.bits[word] & bit == 0 {
            self.bits[word] |= bit;
            self.reordered += 1;
            self.unique += 1;
        } else {
            self.duplicate += 1;
        }
    }
}

/// All streams that one thread reads.
#[derive(Clone, Debug)]
pub struct Tracker {
    streams: Vec<Stream>,
    /// Open addressing; index of the stream plus one, 0 = free.
    table: Vec<u32>,
    last: usize,
    /// Datagrams of streams beyond [`MAX_STREAMS`].
    untracked: u64,
}

impl Default for Tracker {
    fn default() -> Self {
        Self { streams: Vec::with_capacity(64), table: vec![0; 256], last: 0, untracked: 0 }
    }
}

impl Tracker {
    /// Notes datagram `sequence` (low 40 bits) of a stream.
    #[inline]
    pub fn take(&mut self, stream: u32, sequence: u64) {
        // Batches of one stream come together: try the last one first.
        if let Some(last) = self.streams.get_mut(self.last)
            && last.id == stream
        {
            last.take(sequence);
            return;
        }
        self.take_other(stream, sequence);
    }

    fn take_other(&mut self, stream: u32, sequence: u64) {
        if let Some(index) = self.find(stream).or_else(|| self.add(stream)) {
            self.last = index;
            self.streams[index].take(sequence);
        } else {
            self.untracked += 1;
        }
    }

    fn slot(&self, stream: u32) -> usize {
        (stream.wrapping_mul(0x9e37_79b1) >> 7) as usize & (self.table.len() - 1)
    }

    fn find(&self, stream: u32) -> Option<usize> {
        let mut slot = self.slot(stream);
        loop {
            let index = self.table[slot].checked_sub(1)? as usize;
            if self.streams[index].id == stream {
                return Some(index);
            }
            slot = (slot + 1) & (self.table.len() - 1);
        }
    }

    #[cold]
    fn add(&mut self, stream: u32) -> Option<usize> {
        if self.streams.len() == MAX_STREAMS {
            return None;
        }
        self.streams.push(Stream::new(stream));
        if self.streams.len() * 2 > self.table.len() {
            self.table = vec![0; self.table.len() * 2];
            for index in 0..self.streams.len() {
                self.enter(index);
            }
        } else {
            self.enter(self.streams.len() - 1);
        }
        Some(self.streams.len() - 1)
    }

    fn enter(&mut self, index: usize) {
        let mut slot = self.slot(self.streams[index].id);
        while self.table[slot] != 0 {
            slot = (slot + 1) & (self.table.len() - 1);
        }
        self.table[slot] = index as u32 + 1;
    }
}

/// What several trackers saw together.
///
/// **Caveat** where several threads read one socket, a stream is spread over their trackers: what is lost
/// is still exact as long as nothing is duplicated across threads; reordering is each thread's own view.
pub fn summarize<'a>(trackers: impl IntoIterator<Item = &'a Tracker>) -> Sequence {
    let mut streams = BTreeMap::<u32, (u64, u64)>::new();
    let (mut sum, mut senders) = (Sequence::default(), BTreeMap::<u16, u64>::new());
    for tracker in trackers {
        sum.untracked_packets += tracker.untracked;
        for stream in &tracker.streams {
            let (highest, unique) = streams.entry(stream.id).or_default();
            *highest = (*highest).max(stream.next);
            *unique += stream.unique;
            *senders.entry(sender_of(stream.id)).or_default() += stream.unique + stream.duplicate;
            sum.duplicate_packets += stream.duplicate;
            sum.reordered_packets += stream.reordered;
            sum.beyond_window_packets += stream.beyond_window;
        }
    }
    if senders.keys().any(|sender| *sender > 0) {
        let of = |(sender, packets)| SenderPackets { sender, packets };
        sum.senders = senders.into_iter().map(of).collect();
    }
    sum.checked = !streams.is_empty();
    sum.streams_count = streams.len() as u64;
    sum.lost_packets = streams.values().map(|(next, unique)| next.saturating_sub(*unique)).sum();
    sum
}

#[cfg(test)]
mod tests;
