//! Memory that is shared with the kernel.

use std::io;
use std::os::fd::RawFd;
use std::ptr::{NonNull, null_mut};

/// A mapping, removed when it is dropped.
#[derive(Debug)]
pub(super) struct Memory {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and only its owner hands out pointers into it.
unsafe impl Send for Memory {}

impl Memory {
    /// Zeroed pages of this process.
    pub(super) fn anonymous(bytes: usize) -> io::Result<Self> {
        Self::map(-1, bytes, 0, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)
    }

    /// Pages of a descriptor's memory from `offset` on.
    pub(super) fn of(fd: RawFd, bytes: usize, offset: libc::off_t) -> io::Result<Self> {
        Self::map(fd, bytes, offset, libc::MAP_SHARED | libc::MAP_POPULATE)
    }

    fn map(fd: RawFd, bytes: usize, offset: libc::off_t, flags: libc::c_int) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses an address that nothing else uses.
        let at = unsafe { libc::mmap(null_mut(), bytes, access, flags, fd, offset) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Self { at, bytes })
    }

    /// Its first byte; pages are aligned for every type.
    pub(super) fn start(&self) -> *mut u8 {
        self.at.as_ptr()
    }

    /// Its size.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this size, and no pointer into it outlives its owner.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}
