//! The diagnosis from outside: full verdicts for hand-made evidence, and what holds for any evidence.

// Helpers of tests are tests; the allowance in clippy.toml stops at functions marked `#[test]`.
#![allow(clippy::expect_used, clippy::format_push_string)]

mod arbitrary;
mod live;
mod made;
mod paired;
mod properties;
mod silence;
mod tcp;
mod two_machines;
mod verdicts;
mod watched;
mod watched_groups;
mod watched_readers;
