//! Requested and effective settings of an HTTP load.

use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::load::url::Url;
use crate::pool::Threads;

pub use crate::http::Engine;
pub use crate::pace::Pacing;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The URL to request.
    pub url: Url,
    /// Connections over all threads, kept open throughout.
    pub connections: usize,
    /// The worker threads.
    pub threads: Threads,
    /// Stop after this long.
    pub duration_ns: Option<u64>,
    /// Stop after this many requests.
    pub requests: Option<u64>,
    /// Requests per second over all threads by schedule (open loop); `None` = each reply triggers the next (closed
    /// loop).
    pub rate_rps: Option<u64>,
    /// How to wait for the schedule.
    pub pacing: Pacing,
    /// Requests in flight at once on a connection.
    pub pipeline: usize,
    /// Method.
    pub method: String,
    /// Headers, each `Name: value`.
    pub headers: Vec<String>,
    /// Body of each request.
    pub body: Vec<u8>,
    /// Requests without a reply after this long are abandoned, and their connection is closed.
    pub timeout_ns: u64,
    /// Keep connections open; otherwise each request has one of its own.
    pub keepalive: bool,
    /// Local address to connect from.
    pub source: Option<IpAddr>,
    /// How the threads talk to the kernel.
    pub engine: Engine,
}

impl LoadOptions {
    /// wrk's defaults: 10 connections, GET, timeout 2 s; but one thread, and no end.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            connections: 10,
            threads: Threads::default(),
            duration_ns: None,
            requests: None,
            rate_rps: None,
            pacing: Pacing::Auto,
            pipeline: 1,
            method: "GET".into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout_ns: 2_000_000_000,
            keepalive: true,
            source: None,
            engine: Engine::Epoll,
        }
    }
}

/// What is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSettings {
    /// The requested URL.
    pub url: String,
    /// The address behind it: the first of its addresses that accepted a connection.
    pub to: SocketAddr,
    /// All addresses of its name.
    pub resolved: Vec<SocketAddr>,
    /// Local address that was asked for.
    pub source: Option<IpAddr>,
    /// Connections over all threads.
    pub connections_count: usize,
    /// Threads.
    #[serde(flatten)]
    pub threads: Threads,
    /// `open` (requests leave by schedule) or `closed` (each reply triggers the next request).
    pub r#loop: Loop,
    /// Requests per second by schedule; `None` = closed loop.
    pub target_rps: Option<u64>,
    /// How the schedule is waited for.
    pub pacing: Option<String>,
    /// Requests in flight at once on a connection.
    pub pipeline: usize,
    /// Whether connections are kept.
    pub keepalive: bool,
    /// The request's head, as it is sent.
    pub request: String,
    /// Bytes of a request with its body.
    pub request_bytes: usize,
    /// Requests are abandoned after this long.
    pub timeout_s: f64,
    /// Stop after this long.
    pub duration_s: Option<f64>,
    /// Stop after this many requests.
    pub requests: Option<u64>,
    /// How the threads talk to the kernel.
    pub engine: Engine,
    /// File descriptors that this process may open (`RLIMIT_NOFILE`, raised to its hard limit).
    pub descriptors_limit: u64,
    /// The kernel's tick (`CONFIG_HZ`), to recognise times caused by it; `None` where it cannot be read.
    pub tick_hz: Option<u32>,
}

/// What decides when a request leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Loop {
    /// The schedule: late replies do not slow it.
    Open,
    /// The replies: a slow server gets fewer requests.
    #[default]
    Closed,
}
