//! Rules over made hosts: a healthy one, and that one with a few facts changed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod auto;
mod captured;
mod cases;
mod changes;
mod coverage;
mod fingerprint;
mod fixture;
mod following;
mod missing;
mod order;
mod scope;
