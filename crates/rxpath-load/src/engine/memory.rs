//! Memory that is shared with the kernel.

use std::io;
use std::os::fd::RawFd;
use std::ptr::{NonNull, null_mut};

const BOTH: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

/// A mapping, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Memory {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and only its owner hands out pointers into it.
unsafe impl Send for Memory {}

impl Memory {
    /// Zeroed pages of this process. The kernel is asked to make all of them now, so that no first use meets a page fault.
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::map((-1, 0), bytes, BOTH, flags)
    }

    /// Pages of a descriptor's memory from `offset` on.
    pub(crate) fn of(fd: RawFd, bytes: usize, offset: libc::off_t) -> io::Result<Self> {
        Self::map((fd, offset), bytes, BOTH, libc::MAP_SHARED | libc::MAP_POPULATE)
    }

    /// Address space in which a descriptor's driver puts pages that are only read.
    pub(crate) fn readable(fd: RawFd, bytes: usize) -> io::Result<Self> {
        Self::map((fd, 0), bytes, libc::PROT_READ, libc::MAP_SHARED)
    }

    fn map(
        (fd, offset): (RawFd, libc::off_t),
        bytes: usize,
        access: libc::c_int,
        flags: libc::c_int,
    ) -> io::Result<Self> {
        // SAFETY: the kernel chooses an address that nothing else uses.
        let at = unsafe { libc::mmap(null_mut(), bytes, access, flags, fd, offset) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Self { at, bytes })
    }

    /// Its first byte; pages are aligned for every type.
    #[inline]
    pub(crate) fn start(&self) -> *mut u8 {
        self.at.as_ptr()
    }

    /// Its size.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this size, and no pointer into it outlives its owner.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}
