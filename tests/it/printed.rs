//! What the program prints when it succeeds.

use crate::program;

/// Its output with these words.
pub fn rxpath(words: &[&str]) -> String {
    program::rxpath(words).ok()
}
