//! Payloads whose every byte follows from its offset in the stream, so that a receiver can check them.
//!
//! Byte `i` of a connection's direction is entry `i mod 65521` of a fixed table. The period is prime: data that
//! are repeated, left out or swapped by a whole number of pages, segments or words fall on other entries. Buffers
//! point into one memory that nobody writes, so that they may be sent without copying.

use std::io;

use crate::engine::zerocopy::Pages;

/// Bytes after which the table repeats: the largest prime under 2^16.
pub const PERIOD: usize = 65_521;

/// The table, repeated until a buffer of the largest size fits at every offset.
#[derive(Debug)]
pub struct Pattern {
    memory: Pages,
    /// Largest buffer.
    pub buffer_bytes: usize,
}

/// Entry `i`: the top byte of a multiplicative hash, so that neighbours and equal low bits differ.
fn entry(i: usize) -> u8 {
    let mut x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    (x.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 56) as u8
}

impl Pattern {
    /// For buffers up to this size.
    pub fn new(buffer_bytes: usize) -> io::Result<Self> {
        let mut memory = Pages::new(PERIOD + buffer_bytes)?;
        for (i, byte) in memory.bytes_mut().iter_mut().enumerate() {
            *byte = entry(i % PERIOD);
        }
        Ok(Self { memory, buffer_bytes })
    }

    /// `len` bytes of a stream from `offset` on; at most the buffer's size.
    #[inline]
    pub fn at(&self, offset: u64, len: usize) -> &[u8] {
        let start = (offset % PERIOD as u64) as usize;
        &self.memory.bytes()[start..start + len.min(self.buffer_bytes)]
    }

    /// Offset of the first byte of `data` that is wrong when `data` begins at `offset` of a stream.
    #[inline]
    pub fn mismatch(&self, offset: u64, data: &[u8]) -> Option<u64> {
        let mut offset = offset;
        for part in data.chunks(self.buffer_bytes.max(1)) {
            let right = self.at(offset, part.len());
            if part != right {
                let first = part.iter().zip(right).position(|(got, want)| got != want);
                return Some(offset + first.unwrap_or(0) as u64);
            }
            offset += part.len() as u64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn offsets_in_other_pages_have_other_bytes() {
        let pattern = Pattern::new(4096).unwrap();
        for shift in [1u64, 8, 1448, 4096, 65_536, 131_072] {
            let there: Vec<u8> = pattern.at(shift, 256).to_vec();
            let equal = pattern.at(0, 256).iter().zip(&there).filter(|(a, b)| a == b).count();
            assert!(equal < 16, "{equal} of 256 bytes are equal at a shift of {shift}");
        }
    }

    proptest! {
        #[test]
        fn the_first_wrong_byte_is_found(
            offset in any::<u32>(), len in 1usize..10_000, wrong in any::<prop::sample::Index>(),
        ) {
            let offset = u64::from(offset);
            let pattern = Pattern::new(4096).unwrap();
            let mut data: Vec<u8> =
                (0..len).map(|i| entry(((offset + i as u64) % PERIOD as u64) as usize)).collect();
            prop_assert_eq!(pattern.mismatch(offset, &data), None);
            let at = wrong.index(len);
            data[at] ^= 0x40;
            prop_assert_eq!(pattern.mismatch(offset, &data), Some(offset + at as u64));
        }
    }
}
