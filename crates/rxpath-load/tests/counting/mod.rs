//! An allocator that counts the allocations of all threads but the exempt ones.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

struct Counting;

/// Windows at most.
const WINDOWS: u32 = 5;

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

/// The fewest allocations of the other threads in one of several windows. `run` lasts for a window.
///
/// A thread makes its buffers once, and a busy machine may let it begin in a window. What a loop allocates for each call is in
/// all windows.
pub fn in_quietest(mut run: impl FnMut()) -> u64 {
    let mut fewest = u64::MAX;
    for _ in 0..WINDOWS {
        let before = allocations();
        run();
        fewest = fewest.min(allocations() - before);
        if fewest == 0 {
            break;
        }
    }
    fewest
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
