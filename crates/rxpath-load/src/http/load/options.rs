//! Requested and effective settings of an HTTP load.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use rxpath_core::{ItemCount, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pool::Threads;
use crate::values::{count, number, seconds};

pub use crate::http::Engine;
pub use crate::pace::Pacing;

/// What is asked for: the options of `rxpath load http`.
#[derive(Clone, Debug, clap::Args)]
pub struct LoadOptions {
    /// The URL to request.
    #[arg(help = "URL to request: http://HOST[:PORT][/PATH]")]
    pub url: String,
    /// Connections over all threads, kept open
    #[arg(short, long, value_name = "N", default_value = "10", value_parser = count)]
    pub connections: usize,
    /// The worker threads.
    #[command(flatten)]
    pub threads: Threads,
    /// Requests per second over all threads (50k, 1.2Mrps), by an absolute schedule (open loop); without it, each reply
    /// triggers the next request (closed loop)
    #[arg(long = "rate", value_name = "RATE", value_parser = number::<Rate>)]
    pub rate_rps: Option<u64>,
    /// How to wait for the next scheduled send
    #[arg(long, value_enum, default_value = "auto", requires = "rate_rps")]
    pub pacing: Pacing,
    /// Stop after exactly this many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = number::<ItemCount>)]
    pub requests: Option<u64>,
    /// Requests in flight at once on each connection
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub pipeline: usize,
    /// Method (default GET; POST with a body)
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub method: Option<String>,
    /// A header of the request, `Name: value`; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Body of the request
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    pub body: Option<String>,
    /// Body of the request, from a file
    #[arg(long, value_name = "FILE")]
    pub body_file: Option<PathBuf>,
    /// Give up a request and its connection after this long
    #[arg(long = "timeout", value_name = "TIME", value_parser = seconds, default_value = "2s")]
    pub timeout_ns: u64,
    /// Use a new connection for each request
    #[arg(long)]
    pub no_keepalive: bool,
    /// Local address to connect from
    #[arg(long, value_name = "IP")]
    pub source: Option<IpAddr>,
    /// How the threads do their I/O (default: uring where the kernel allows it)
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
    /// Stop after this long.
    #[arg(skip)]
    pub duration_ns: Option<u64>,
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
