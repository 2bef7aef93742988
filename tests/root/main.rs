//! Tests that need root: namespaces, devices, counters. Run one at a time.

// Helpers beside the test functions may unwrap too: a panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arena;
mod bed;
mod bundled;
mod capabilities;
mod check;
mod cleanup;
mod diagnose;
mod experiment;
mod faults;
mod filter;
mod flows;
mod ioctl_groups;
mod kept_apart;
mod kills;
mod landing;
mod live_limits;
mod load_http;
mod losses;
mod model;
mod namespace;
mod observed;
mod over_tcp;
mod probe_faults;
mod probes;
mod raw_bpf;
#[path = "../support/readers.rs"]
mod readers;
mod ring;
#[path = "../support/schema.rs"]
mod schema;
mod selftest;
mod serve_http;
#[path = "../support/skip.rs"]
mod skip;
mod sockets;
mod stolen;
mod tcp;
mod thread_netns;
mod timeline;
mod tune;
mod waits;
mod watch;
