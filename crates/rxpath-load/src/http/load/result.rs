//! The result of `load http`, as `--json` prints it and the lab reads it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limit::Limit;
use crate::quantiles::Quantiles;
use crate::udp::result::Lateness;
use crate::usage::ThreadUsage;
use crate::workload::of_results;

/// `result` of `load http`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadResult {
    /// Start to the end of the last thread.
    pub duration_s: f64,
    /// Requests by the schedule of `--rate`; without one, those begun.
    pub target_requests_total: u64,
    /// Requests that were sent (each counted once).
    pub sent_requests_total: u64,
    /// Complete replies, of any status.
    pub requests_total: u64,
    /// Requests in flight, or waiting for their connection, at the end; no percentile includes them.
    pub in_flight_requests_total: u64,
    /// Requests lost with their connection (connect, read, write, timeout or malformed); no percentile includes them.
    pub lost_requests_total: u64,
    /// Requests that were due but never got a free connection; no percentile includes them.
    pub unsent_requests_total: u64,
    /// Whether a run with `--requests` and without `--duration` ended early because every request failed.
    #[serde(default)]
    pub gave_up: bool,
    /// Requests that were sent again, because the server closed the connection before their turn (pipelining).
    pub resent_requests_total: u64,
    /// Complete replies per second of `duration_s`.
    pub achieved_rps: f64,
    /// `--rate`, or `None` in a closed loop.
    pub target_rps: Option<f64>,
    /// Errors by kind: `connect`, `read`, `write`, `timeout`, `status` (400 and above; these are also complete
    /// replies), `malformed`.
    pub errors_total: BTreeMap<String, u64>,
    /// Their causes, where the kernel gave one: `connect ECONNREFUSED`.
    pub error_causes_total: BTreeMap<String, u64>,
    /// From the first byte of the request passed to the kernel to the last byte of the reply read.
    pub service_time_us: Option<Quantiles>,
    /// From the intended send time of the request to the last byte of the reply read. In a closed loop the intended
    /// time is the arrival of the previous reply (without keep-alive: the start of its connection).
    pub response_time_us: Option<Quantiles>,
    /// From the start of connecting until the connection is usable.
    pub connect_time_us: Option<Quantiles>,
    /// From the intended send time (or, if all connections were busy, from when one became free) to the send.
    pub lateness_us: Option<Lateness>,
    /// Bytes of requests accepted by the kernel.
    pub sent_bytes: u64,
    /// Bytes of replies read, heads included.
    pub received_bytes: u64,
    /// Received bits per second.
    pub received_bps: f64,
    /// Connections that were opened.
    pub connections_opened_total: u64,
    /// User CPU time of the process.
    pub cpu_user_s: f64,
    /// System CPU time of the process; on a default veth and on loopback the server's receive path is in it.
    pub cpu_system_s: f64,
    /// System calls of the threads' loops.
    pub system_calls_total: u64,
    /// The columns of wrk's summary.
    pub summary: ThreadStats,
    /// Which side was the limit, as far as this side can tell.
    pub limit: Limit,
    /// One entry per thread.
    pub threads: Vec<ThreadResult>,
}

/// What wrk calls thread statistics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadStats {
    /// Of the response time of every request. **Unit** us.
    pub response_time_us: Spread,
    /// Of each thread's replies per second, taken every 100 ms.
    pub thread_rps: Spread,
}

/// Mean, deviation, largest, and the share of values within one deviation of the mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stdev: f64,
    /// Largest.
    pub max: f64,
    /// Share of values within one standard deviation of the mean.
    pub within_stdev_ratio: f64,
}

/// One worker thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadResult {
    /// The thread and its CPU time.
    #[serde(flatten)]
    pub usage: ThreadUsage,
    /// Its connections.
    pub connections_count: usize,
    /// Complete replies.
    pub requests_total: u64,
    /// System calls of its loop.
    pub system_calls_total: u64,
    /// Time that it was runnable but waited for a CPU (schedstat); `None` where the kernel does not record it.
    pub runnable_wait_s: Option<f64>,
}

/// One line of `--interval`: cumulative counters, and the percentiles since the previous line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// `CLOCK_MONOTONIC` at the reading of the counters.
    pub t_ns: u64,
    /// Complete replies so far.
    pub requests_total: u64,
    /// Requests sent so far.
    pub sent_requests_total: u64,
    /// Errors so far, of all kinds.
    pub errors_total: u64,
    /// Bytes of replies so far.
    pub received_bytes: u64,
    /// Complete replies so far, per thread.
    pub thread_requests_total: Vec<u64>,
    /// CPU each thread is on now.
    pub thread_cpus: Vec<u32>,
    /// Response time since the previous line; `None` when no reply arrived.
    pub response_time_us: Option<Quantiles>,
}

of_results!(ThreadResult, Interval);
