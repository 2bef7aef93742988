//! What a server reports while it runs and at its end.

use std::collections::BTreeMap;

use rxpath_core::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limit::Limit;
use crate::quantiles::Quantiles;
use crate::usage::ThreadUsage;
use crate::workload::of_results;

/// `result` of `serve http`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServeResult {
    /// First request read to last reply written.
    pub duration_s: f64,
    /// Requests whose replies were written completely, refusals included.
    pub requests_total: u64,
    /// Per second of `duration_s`, or of the time after the warm-up.
    pub achieved_rps: f64,
    /// Replies written, by status.
    pub replies_total: BTreeMap<String, u64>,
    /// TCP payload read.
    pub received_bytes: u64,
    /// TCP payload written.
    pub sent_bytes: u64,
    /// From the call that read a request to the return of the call that wrote its reply; with io_uring, between the
    /// completions of both.
    pub read_to_reply_us: Option<Quantiles>,
    /// What became of the connections.
    pub connections: Connections,
    /// System calls of the threads: waits, accepts, reads, writes, closes, changes of the set.
    pub calls_total: u64,
    /// User CPU time of the process.
    pub cpu_user_s: f64,
    /// System CPU time of the process, including softirqs that interrupted it.
    pub cpu_system_s: f64,
    /// Whether busy polling was possible and happened, if requested.
    pub busy_poll: Option<BusyPollResult>,
    /// Whether this side was the limit.
    pub limit: Limit,
    /// One entry per thread.
    pub threads: Vec<ThreadResult>,
}

/// What became of the connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Accepted.
    pub accepted_total: u64,
    /// Sum over threads of the most connections open at a time.
    pub open_max_count: u64,
    /// Open at the end.
    pub open_count: u64,
    /// Closed, by reason.
    pub closed_total: BTreeMap<String, u64>,
    /// Times that accepting was delayed, by reason (`EMFILE`, `max-connections`, ...).
    pub pauses_total: BTreeMap<String, u64>,
    /// Connections lost between the accept queue and the server, by errno.
    pub accept_errors_total: BTreeMap<String, u64>,
}

/// Whether busy polling was possible, and happened. The kernel accepts the settings in any case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusyPollResult {
    /// Connections whose `SO_INCOMING_NAPI_ID` was read (the first of each thread).
    pub looked_at_count: u64,
    /// Of these, connections through a device with NAPI: only such a device can be polled.
    pub with_napi_count: u64,
    /// `TcpExt BusyPollRxPackets` of this network namespace while the server ran: packets that were polled.
    pub busy_poll_rx_packets: Fact<u64>,
}

/// One worker thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadResult {
    /// The thread and its CPU time.
    #[serde(flatten)]
    pub usage: ThreadUsage,
    /// Requests answered.
    pub requests_total: u64,
    /// TCP payload read.
    pub received_bytes: u64,
    /// TCP payload written.
    pub sent_bytes: u64,
    /// Connections accepted.
    pub accepted_total: u64,
    /// System calls.
    pub calls_total: u64,
    /// Waits for events.
    pub waits_total: u64,
    /// Events per wait, over the waits that returned any.
    pub events_per_wait: Option<Events>,
    /// Waits without an event: a timeout or a signal; nearly all waits with a timeout of 0.
    pub empty_waits_total: u64,
    /// Time within the waits.
    pub wait_s: f64,
    /// Time asleep: neither running nor waiting for a CPU (`/proc/thread-self/schedstat`); `None` where the
    /// kernel does not record it.
    pub blocked_s: Option<f64>,
    /// Time waiting for a CPU that another task used.
    pub runqueue_s: Option<f64>,
}

/// Number of events per wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Events {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Most.
    pub max: u64,
}

/// One line of `--interval`: cumulative, except for the open connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// `CLOCK_MONOTONIC` at the reading of the counters.
    pub t_ns: u64,
    /// Requests answered so far.
    pub requests_total: u64,
    /// TCP payload read so far.
    pub received_bytes: u64,
    /// TCP payload written so far.
    pub sent_bytes: u64,
    /// Connections accepted so far.
    pub accepted_total: u64,
    /// Connections open now.
    pub open_count: u64,
    /// Replies other than 200 so far.
    pub refused_total: u64,
    /// Requests answered so far per thread.
    pub thread_requests_total: Vec<u64>,
    /// CPU each thread is on now.
    pub thread_cpus: Vec<u32>,
}

of_results!(ThreadResult, Interval);
