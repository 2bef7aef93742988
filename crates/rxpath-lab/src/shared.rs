//! What threads share: locks that only short sections hold, and the last lines that a program printed.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines kept of what a program printed.
const LAST_WORDS: usize = 20;

/// Locks what only short sections hold.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The last lines that a program printed.
#[derive(Default)]
pub struct LastWords(Mutex<VecDeque<String>>);

impl LastWords {
    /// Keeps a line, instead of the first one where that is one too many.
    pub fn add(&self, line: String) {
        let mut kept = locked(&self.0);
        if kept.len() == LAST_WORDS {
            kept.pop_front();
        }
        kept.push_back(line);
    }

    /// All that are kept.
    pub fn text(&self) -> String {
        locked(&self.0).iter().cloned().collect::<Vec<_>>().join(" | ")
    }
}
