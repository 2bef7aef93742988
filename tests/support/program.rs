//! The built program, run to its end.

use std::process::{Command, Output};

/// Runs it with these words.
pub fn rxpath(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rxpath")).args(words).output().unwrap()
}
