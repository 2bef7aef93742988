//! The diagnosis from outside: full verdicts for hand-made evidence, and what holds for any evidence.

mod made;
mod paired;
mod properties;
mod silence;
mod verdicts;
