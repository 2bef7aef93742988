//! Tests that need root: namespaces, devices, counters. Run one at a time.

mod thread_netns;
