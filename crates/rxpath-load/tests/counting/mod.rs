//! An allocator that counts the allocations of all threads but the exempt ones.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_EXEMPT: Cell<bool> = const { Cell::new(false) };
}

/// The allocations of the calling thread count no more.
pub fn exempt_this_thread() {
    IS_EXEMPT.set(true);
}

/// Allocations of the other threads so far.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(SeqCst)
}

fn note() {
    if !IS_EXEMPT.try_with(Cell::get).unwrap_or(true) {
        ALLOCATIONS.fetch_add(1, SeqCst);
    }
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
