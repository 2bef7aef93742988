//! Counters that the suite sees while a role runs, and after it was killed.

use std::fs::OpenOptions;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap};

use crate::actor::COUNTERS;

#[derive(Clone, Copy)]
pub struct Counts(&'static [AtomicU64; COUNTERS]);

impl Counts {
    /// In the file that the environment names.
    pub fn open() -> Self {
        let path = std::env::var_os("COUNT").expect("COUNT in the environment");
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.unwrap();
        file.set_len(4096).unwrap();
        let (page, both) =
            (NonZeroUsize::new(4096).unwrap(), ProtFlags::all() ^ ProtFlags::PROT_EXEC);
        let both = both & (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE);
        // SAFETY: a new mapping of a file that nobody cuts; it lasts as long as the process.
        let at = unsafe { mmap(None, page, both, MapFlags::MAP_SHARED, &file, 0) }.unwrap();
        // SAFETY: the mapping is zeroed, aligned to a page, longer than the counters, and never unmapped.
        Self(unsafe { at.cast::<[AtomicU64; COUNTERS]>().as_ref() })
    }

    pub fn add(self, at: usize, count: u64) {
        self.0[at].fetch_add(count, Ordering::Relaxed);
    }

    /// It works from now on.
    pub fn ready(self) {
        self.0[COUNTERS - 1].store(1, Ordering::Relaxed);
    }
}
