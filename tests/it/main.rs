//! Tests of the built program that need no root.

// Helpers beside the test functions may unwrap too: a panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench_rows;
mod between_hosts;
mod capacity;
mod capture;
mod causes;
mod check;
mod check_faults;
mod check_formats;
mod check_summary;
mod ci_jobs;
mod circles;
mod commands;
mod compare;
mod corpus;
mod dependency_rule;
mod diagnose;
mod docs;
#[path = "../support/executable.rs"]
mod executable;
mod export;
mod export_faults;
mod export_promises;
mod export_service;
mod fleet;
mod forbidden;
mod halves;
#[path = "../support/handlers.rs"]
mod handlers;
mod hosts;
mod http;
mod kept;
mod list;
mod model;
mod modules;
mod monitoring;
mod not_utf_8;
mod packaged;
mod parsers;
mod printed;
mod processes;
#[path = "../support/program.rs"]
mod program;
#[path = "../support/readers.rs"]
mod readers;
mod reading;
mod refusals;
mod refused_by_host;
mod report_browser;
mod report_command;
mod reproduce;
#[path = "../support/schema.rs"]
mod schema;
mod schemas;
#[path = "../support/scraper.rs"]
mod scraper;
mod sent_builds;
mod serve_http;
mod setup;
#[path = "../support/skip.rs"]
mod skip;
mod starting;
mod static_build;
mod steered;
#[path = "../support/stripped.rs"]
mod stripped;
mod tcp;
mod test_groups;
mod traps;
mod tune;
mod type_names;
mod udp;
mod watch;
mod wording;
