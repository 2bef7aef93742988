//! Tests that need root: namespaces, devices, counters. Each has a `/run` of its own, so that they run in parallel;
//! those in `alone` run one at a time.
//!
//! Tests begin in the order of their names: a module of long ones has an early name, so that the last ones to run are short.

// Helpers beside the test functions may unwrap too: a panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alone;
mod apart;
mod arena;
mod auto_tune;
mod background;
mod bed;
mod bundled;
mod bypass;
mod capabilities;
mod capacity;
mod check;
mod cleanup;
#[path = "../support/counters.rs"]
mod counters;
mod counters_only;
#[path = "../support/executable.rs"]
mod executable;
mod experiment;
mod export_panels;
mod export_socket;
mod exporter;
mod faults;
mod filter;
mod flows;
mod foreign;
#[path = "../support/handlers.rs"]
mod handlers;
mod ioctl_groups;
mod kept_apart;
mod killed_probes;
mod kills;
mod lab_lock;
mod landing;
mod live_causes;
mod load_http;
mod locks;
mod losses;
mod model;
mod namespace;
mod observed;
mod over_ssh;
mod over_tcp;
mod planted;
mod probe_messages;
#[path = "../support/program.rs"]
mod program;
mod queues;
mod raw_bpf;
#[path = "../support/readers.rs"]
mod readers;
mod reads;
mod ring;
#[path = "../support/schema.rs"]
mod schema;
mod scope;
#[path = "../support/scraper.rs"]
mod scraper;
mod selftest;
mod serve_http;
mod service;
mod several_receivers;
#[path = "../support/skip.rs"]
mod skip;
mod sockets;
mod sole_exporter;
mod stolen;
#[path = "../support/stripped.rs"]
mod stripped;
mod tcp;
mod terminal;
#[path = "../support/there_and_back.rs"]
mod there_and_back;
mod thread_netns;
mod traced_namespace;
mod tune;
mod verified;
mod waits;
mod watched_from_outside;
