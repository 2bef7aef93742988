//! A ring with one producer and one consumer, one of which is the kernel.
//!
//! **Source** net/xdp/xsk_queue.h: indices run freely over 32 bits. What stands in an entry is visible before the
//! producer's index moves, and has been read before the consumer's index moves.

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use libc::xdp_ring_offset;

use crate::engine::memory::Memory;

/// This side of a ring: only the calls of a producer, or only those of a consumer, may be used on it.
#[derive(Debug)]
pub(super) struct Ring<T> {
    memory: Memory,
    /// Where the parts of the ring are in the memory.
    places: xdp_ring_offset,
    entries: u32,
    /// This side's index, which the other side sees only from the next [`Ring::show`] on.
    own: u32,
    /// The other side's index as it was last seen.
    seen: u32,
    entry: PhantomData<T>,
}

/// Bytes of a ring with this many entries.
pub(super) fn bytes<T>(places: xdp_ring_offset, entries: u32) -> usize {
    places.desc as usize + entries as usize * size_of::<T>()
}

/// `T` is a number or a struct of numbers: every bytes are a valid one.
impl<T: Copy> Ring<T> {
    /// A ring in memory that both sides see. `entries` is a power of two.
    pub(super) fn new(memory: Memory, places: xdp_ring_offset, entries: u32) -> io::Result<Self> {
        let words = [places.producer, places.consumer, places.flags].map(|at| at as usize);
        let fits = bytes::<T>(places, entries) <= memory.bytes()
            && words.iter().all(|at| at + 4 <= memory.bytes() && at % 4 == 0)
            && (places.desc as usize).is_multiple_of(align_of::<T>());
        if !fits || !entries.is_power_of_two() {
            return Err(io::Error::other("the kernel describes a ring that does not fit"));
        }
        Ok(Self { memory, places, entries, own: 0, seen: 0, entry: PhantomData })
    }

    fn word(&self, at: u64) -> &AtomicU32 {
        // SAFETY: `new` has checked that an aligned word is there; the other side accesses it atomically, too.
        unsafe { AtomicU32::from_ptr(self.memory.start().add(at as usize).cast()) }
    }

    fn entry(&self, index: u32) -> *mut T {
        let first = self.places.desc as usize;
        let at = first + (index & (self.entries - 1)) as usize * size_of::<T>();
        // SAFETY: `new` has checked that all entries are in the memory.
        unsafe { self.memory.start().add(at).cast() }
    }

    /// Entries that a producer may put in now.
    #[inline]
    pub(super) fn room(&mut self) -> u32 {
        if self.entries == self.own.wrapping_sub(self.seen) {
            self.seen = self.word(self.places.consumer).load(Acquire);
        }
        self.entries - self.own.wrapping_sub(self.seen)
    }

    /// A producer's next entry, where there is room.
    #[inline]
    pub(super) fn put(&mut self, value: T) -> bool {
        if self.room() == 0 {
            return false;
        }
        // SAFETY: the entry is in the memory, and the consumer does not read it before `show`.
        unsafe { self.entry(self.own).write(value) };
        self.own = self.own.wrapping_add(1);
        true
    }

    /// Entries that were put in and that the consumer has not taken.
    #[inline]
    pub(super) fn waiting(&mut self) -> u32 {
        self.seen = self.word(self.places.consumer).load(Acquire);
        self.own.wrapping_sub(self.seen)
    }

    /// A producer lets the consumer see what it put in.
    #[inline]
    pub(super) fn show(&self) {
        self.word(self.places.producer).store(self.own, Release);
    }

    /// A consumer's next entry.
    #[inline]
    pub(super) fn take(&mut self) -> Option<T> {
        if self.seen == self.own {
            self.seen = self.word(self.places.producer).load(Acquire);
            if self.seen == self.own {
                return None;
            }
        }
        // SAFETY: the entry is in the memory, and the producer does not write to it before `give_back`.
        let value = unsafe { self.entry(self.own).read() };
        self.own = self.own.wrapping_add(1);
        Some(value)
    }

    /// A consumer gives the entries back that it has taken.
    #[inline]
    pub(super) fn give_back(&self) {
        self.word(self.places.consumer).store(self.own, Release);
    }

    /// The kernel's flags, read behind everything that was written so far.
    ///
    /// Without that order the kernel may find the ring empty and go to sleep while this side still reads that it is
    /// awake.
    #[inline]
    pub(super) fn flags(&self) -> u32 {
        std::sync::atomic::fence(SeqCst);
        self.word(self.places.flags).load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: xdp_ring_offset =
        xdp_ring_offset { producer: 0, consumer: 64, flags: 128, desc: 192 };

    fn ring(entries: u32) -> Ring<u64> {
        let memory = Memory::anonymous(bytes::<u64>(PLACES, entries)).unwrap();
        Ring::new(memory, PLACES, entries).unwrap()
    }

    /// Moves the index of the other side, as the kernel does.
    fn set(ring: &Ring<u64>, at: u64, to: u32) {
        ring.word(at).store(to, Release);
    }

    #[test]
    fn a_producer_fills_it_and_goes_on_where_the_consumer_was() {
        let mut ring = ring(4);
        for number in 0..4 {
            assert!(ring.put(number));
        }
        assert!(!ring.put(4));
        assert_eq!(ring.word(PLACES.producer).load(Relaxed), 0, "not shown yet");
        ring.show();
        assert_eq!(ring.word(PLACES.producer).load(Relaxed), 4);
        assert_eq!((ring.room(), ring.waiting()), (0, 4));
        set(&ring, PLACES.consumer, 3);
        assert_eq!((ring.room(), ring.waiting()), (3, 1));
        assert!(ring.put(9));
        // SAFETY: the first entry, which was written.
        assert_eq!(unsafe { ring.entry(0).read() }, 9);
    }

    #[test]
    fn a_consumer_takes_what_was_shown_over_the_wrap_of_the_indices() {
        let mut ring = ring(2);
        let start = u32::MAX;
        (ring.own, ring.seen) = (start, start);
        set(&ring, PLACES.producer, start);
        assert_eq!(ring.take(), None);
        for (index, value) in [(start, 7), (0, 8)] {
            // SAFETY: entries of the ring.
            unsafe { ring.entry(index).write(value) };
        }
        set(&ring, PLACES.producer, start.wrapping_add(2));
        assert_eq!([ring.take(), ring.take(), ring.take()], [Some(7), Some(8), None]);
        ring.give_back();
        assert_eq!(ring.word(PLACES.consumer).load(Relaxed), 1);
    }

    #[test]
    fn a_ring_that_does_not_fit_is_refused() {
        let memory = |bytes| Memory::anonymous(bytes).unwrap();
        assert!(Ring::<u64>::new(memory(192), PLACES, 4).is_err());
        assert!(Ring::<u64>::new(memory(4096), PLACES, 3).is_err());
        let askew = xdp_ring_offset { producer: 2, ..PLACES };
        assert!(Ring::<u64>::new(memory(4096), askew, 4).is_err());
    }
}
