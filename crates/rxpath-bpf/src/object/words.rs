//! The value of a map's only entry, shared with its program: no system call reads or writes it.

use std::num::NonZero;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use rxpath_host::HostError;

/// The value as words of 64 bits.
#[derive(Debug)]
pub struct Words {
    at: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the mapping belongs to the value alone and is read and written by atomic operations only.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// Maps a value of `bytes` bytes of an array that was made with `BPF_F_MMAPABLE`.
    #[cfg_attr(not(feature = "bpf"), allow(dead_code, reason = "there are no maps in this build"))]
    pub fn map(array: BorrowedFd<'_>, bytes: usize) -> Result<Self, HostError> {
        let length = NonZero::new(bytes).unwrap_or(NonZero::<usize>::MIN);
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses; it is unmapped when this value is dropped.
        let at = unsafe { mmap(None, length, both, MapFlags::MAP_SHARED, array, 0) };
        let at = at.map_err(|errno| HostError::kernel("map a BPF array", errno as i32))?;
        Ok(Self { at: at.cast(), count: bytes / size_of::<u64>() })
    }

    /// A word.
    pub fn get(&self, place: usize) -> u64 {
        self.word(place).load(Relaxed)
    }

    /// Writes a word.
    pub fn set(&self, place: usize, value: u64) {
        self.word(place).store(value, Relaxed);
    }

    fn word(&self, place: usize) -> &AtomicU64 {
        assert!(place < self.count, "word {place} of {}", self.count);
        // SAFETY: the mapping has `count` words, is aligned to a page, and lives as long as this value; the program
        // writes words whole.
        unsafe { self.at.add(place).as_ref() }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, with this length; no reference into it outlives the value.
        let _ = unsafe { munmap(self.at.cast(), self.count * size_of::<u64>()) };
    }
}
