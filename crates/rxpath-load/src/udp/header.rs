//! The first 16 bytes of a payload: who sent it, as which datagram, when.
//!
//! Two little-endian words of 64 bits:
//!
//! ```text
//! word 0   bits  0..32  stream: 11 bits drawn at random by the sending process, 5 bits number of the sender in its
//!                       experiment, 16 bits number of the flow
//!          bits 32..48  clock: identity of the sender's CLOCK_MONOTONIC (0 = unknown)
//!          bits 48..64  sequence number, low 16 bits
//! word 1   bits  0..24  sequence number, high 24 bits
//!          bits 24..64  send time, CLOCK_MONOTONIC, low 40 bits of ns
//! ```
//!
//! Sequence numbers of 40 bits last 15 hours at 20 million datagrams a second. Send times wrap every
//! 18 minutes; a delay below that is whole again after subtraction. Payloads of 20 bytes and more carry
//! [`MAGIC`] behind it, by which a receiver knows datagrams that are not rxpath's. The rest is filler.

/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// Bytes 16 to 20 where the size allows.
pub const MAGIC: [u8; 4] = *b"rxp1";
/// Bits of a sequence number.
const SEQUENCE_BITS: u32 = 40;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;
const TIME_MASK: u64 = (1 << 40) - 1;

/// Bits of a stream that number the flows of a sender.
const FLOW_BITS: u32 = 16;
/// Bits above them that number the senders of an experiment.
const SENDER_BITS: u32 = 5;

/// The first stream of a sender, which is the `sender`th of its experiment.
pub fn first_stream(random: u16, sender: u16) -> u32 {
    let sender = sender & ((1 << SENDER_BITS) - 1);
    u32::from((random << SENDER_BITS) | sender) << FLOW_BITS
}

/// The number of a stream's sender in its experiment.
pub fn sender_of(stream: u32) -> u16 {
    (stream >> FLOW_BITS) as u16 & ((1 << SENDER_BITS) - 1)
}

/// The number of a stream among those of its sender.
pub fn flow_of(stream: u32) -> u16 {
    stream as u16
}

/// A payload's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which stream it belongs to.
    pub stream: u32,
    /// Identity of the sender's clock; see [`crate::engine::clock::identity`].
    pub clock: u16,
    /// Number within the stream, from 0, modulo 2^40.
    pub sequence: u64,
    /// `CLOCK_MONOTONIC` at the call that sent it, modulo 2^40 ns.
    pub time_ns: u64,
}

/// The part of a header that stays the same for all datagrams of a call.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    word0: u64,
    word1: u64,
}

impl Stamp {
    /// For this stream, clock and time.
    #[inline]
    pub fn new(stream: u32, clock: u16, time_ns: u64) -> Self {
        Self {
            word0: u64::from(stream) | u64::from(clock) << 32,
            word1: (time_ns & TIME_MASK) << 24,
        }
    }

    /// The first word of datagram 0.
    pub fn first_word(self) -> u64 {
        self.word0
    }

    /// Writes the header of datagram `sequence`; shorter buffers stay as they are.
    #[inline]
    pub fn write(self, sequence: u64, to: &mut [u8]) {
        if let Some(to) = to.first_chunk_mut::<HEADER_BYTES>() {
            let word0 = self.word0 | sequence << 48;
            let word1 = self.word1 | (sequence >> 16) & 0xff_ffff;
            to[..8].copy_from_slice(&word0.to_le_bytes());
            to[8..].copy_from_slice(&word1.to_le_bytes());
        }
    }
}

impl Header {
    /// Reads the header; `None` when the payload is too short or, from 20 bytes on, not rxpath's.
    #[inline]
    pub fn read(from: &[u8]) -> Option<Self> {
        if let Some(magic) = from.get(16..20)
            && magic != MAGIC
        {
            return None;
        }
        let (first, rest) = from.split_first_chunk::<8>()?;
        let second = rest.first_chunk::<8>()?;
        let (word0, word1) = (u64::from_le_bytes(*first), u64::from_le_bytes(*second));
        Some(Self {
            stream: word0 as u32,
            clock: (word0 >> 32) as u16,
            sequence: word0 >> 48 | (word1 & 0xff_ffff) << 16,
            time_ns: word1 >> 24,
        })
    }

    /// From the sender's stamp to `now_ns` on the same clock; `None` when the stamp lies in the future.
    #[inline]
    pub fn delay_ns(&self, now_ns: u64) -> Option<u64> {
        let delay = now_ns.wrapping_sub(self.time_ns) & TIME_MASK;
        (delay < 1 << 39).then_some(delay)
    }
}

/// The whole number nearest to `near` whose low 40 bits are `low`.
#[inline]
pub fn unwrap_sequence(low: u64, near: u64) -> u64 {
    const HALF: u64 = 1 << (SEQUENCE_BITS - 1);
    let ahead = low.wrapping_sub(near) & SEQUENCE_MASK;
    if ahead < HALF {
        near + ahead
    } else {
        (near + ahead).checked_sub(1 << SEQUENCE_BITS).unwrap_or(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            stream in any::<u32>(), clock in any::<u16>(), sequence in 0..=SEQUENCE_MASK,
            time_ns in 0..=TIME_MASK, size in 16usize..64,
        ) {
            let mut data = vec![0; size];
            Stamp::new(stream, clock, time_ns).write(sequence, &mut data);
            if size >= 20 {
                prop_assert_eq!(Header::read(&data), None);
                data[16..20].copy_from_slice(&MAGIC);
            } else {
                data.truncate(16);
            }
            prop_assert_eq!(Header::read(&data), Some(Header { stream, clock, sequence, time_ns }));
        }

        #[test]
        fn no_payload_panics(data in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Header::read(&data);
        }

        #[test]
        fn sequences_unwrap(near in 0u64..1 << 50, off in -1000i64..1000) {
            let whole = near.saturating_add_signed(off);
            prop_assert_eq!(unwrap_sequence(whole & SEQUENCE_MASK, near), whole);
        }
    }

    #[test]
    fn two_senders_of_an_experiment_never_share_a_stream() {
        for random in [0, 1, u16::MAX] {
            assert_ne!(first_stream(random, 0), first_stream(random.wrapping_add(7), 1));
            assert_eq!(flow_of(first_stream(random, 3)), 0, "flows count from here");
            let last = first_stream(random, 31) | 0xffff;
            assert_eq!((sender_of(last), flow_of(last)), (31, 0xffff));
        }
        assert_ne!(
            first_stream(1, 2),
            first_stream(2, 2),
            "senders of two experiments differ by chance"
        );
    }

    #[test]
    fn short_payloads_have_no_header() {
        let mut data = [7u8; 15];
        Stamp::new(1, 2, 3).write(4, &mut data);
        assert_eq!(data, [7; 15]);
        assert_eq!(Header::read(&data), None);
    }

    #[test]
    fn delays_survive_the_wrap() {
        let sent = TIME_MASK - 10;
        let header = Header { stream: 0, clock: 1, sequence: 0, time_ns: sent };
        assert_eq!(header.delay_ns(sent + 50), Some(50));
        assert_eq!(header.delay_ns(sent - 50), None);
    }
}
