//! Memory that this process allocated and freed, and that its C library keeps for later.

/// Releases free memory to the kernel, all of it that fills whole pages; whether there was any.
///
/// For a process that lives long after one large task: loading BPF programs takes some MB for each object, which are free
/// afterwards and lie between what is in use. **Source** malloc_trim(3), of glibc; with another C library nothing is done.
#[cfg(target_env = "gnu")]
pub fn release() -> bool {
    // SAFETY: takes a number, and changes no memory that is in use; any thread may call it at any time.
    unsafe { libc::malloc_trim(0) == 1 }
}

/// Nothing is released.
#[cfg(not(target_env = "gnu"))]
pub fn release() -> bool {
    false
}

#[cfg(all(test, target_env = "gnu", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_below_memory_in_use_goes_back_to_the_kernel() {
        let resident_pages = || -> u64 {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            text.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let is_most_released = |_| {
            // Blocks of the heap, not mappings of their own; each is written, so that it is resident.
            let mut blocks: Vec<Vec<u8>> = (0..2048).map(|_| vec![1; 32 << 10]).collect();
            // It keeps the end of the heap in use.
            let last = blocks.pop().unwrap();
            drop(blocks);
            let before = resident_pages();
            assert!(release());
            let after = resident_pages();
            assert_eq!(last.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 32 << 10);
            let page_bytes = 4096;
            before.saturating_sub(after) * page_bytes > 32 << 20
        };
        // 64 MB are freed each time. Other tests take memory meanwhile.
        assert!((0..20).any(is_most_released));
    }
}
