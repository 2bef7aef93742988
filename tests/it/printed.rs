//! What the program prints when it succeeds.

use crate::program;

/// Its output with these words.
pub fn rxpath(words: &[&str]) -> String {
    let done = program::rxpath(words);
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}
