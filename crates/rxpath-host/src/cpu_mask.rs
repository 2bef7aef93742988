//! Masks of more CPUs than `cpu_set_t` holds, and the system call that takes them.

use rxpath_core::CpuList;

use crate::HostError;

/// More CPUs than any kernel has (`NR_CPUS` is at most 8192).
pub(crate) const MAX_CPUS: usize = 16_384;
pub(crate) const WORDS: usize = MAX_CPUS / 64;

/// A mask larger than `cpu_set_t`, which ends at 1024 CPUs.
pub(crate) type Mask = [u64; WORDS];

/// The CPUs of a mask.
pub(crate) fn list(mask: &Mask) -> CpuList {
    CpuList(
        (0..MAX_CPUS as u32)
            .filter(|cpu| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1)
            .collect(),
    )
}

/// Lets a thread run on the CPUs of a mask.
pub(crate) fn set_mask(tid: i32, mask: &Mask, what: &str) -> Result<(), HostError> {
    // SAFETY: the pointer and the size describe `mask`, which the kernel only reads.
    let result =
        unsafe { libc::sched_setaffinity(tid, size_of::<Mask>(), std::ptr::from_ref(mask).cast()) };
    if result == 0 { Ok(()) } else { Err(HostError::last_os(what)) }
}
