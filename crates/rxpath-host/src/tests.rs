//! Tests of many modules at once, and what tests of several modules need.

mod captured_hosts;
pub(crate) mod running_kernel;
