//! The results of `serve tcp` and `load tcp`, as `--json` prints them and the lab reads them.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::clock;
use crate::limit::Limit;
use crate::quantiles::Quantiles;
use crate::tally::{Shared, Tally};
use crate::tcp::connection::{ConnectionResult, TcpSummary};
use crate::usage::{ThreadUsage, UsageMeter};
use crate::workload::of_results;

/// `result` of `serve tcp`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServeResult {
    /// First byte or transaction to last.
    pub duration_s: f64,
    /// Payload bytes read by this process; preambles are not counted.
    pub delivered_bytes: u64,
    /// Bits per second of `duration_s`.
    pub delivered_bps: f64,
    /// Payload bytes that this side's kernel took.
    pub sent_bytes: u64,
    /// Bits per second of `duration_s`.
    pub sent_bps: f64,
    /// Responses sent whole.
    pub transactions_total: u64,
    /// Per second of `duration_s`.
    pub achieved_tps: f64,
    /// Connections accepted, control connections included.
    pub connections_total: u64,
    /// Connections refused, by reason: `stranger`, `version`, `malformed`, `silent`.
    pub refused_total: BTreeMap<String, u64>,
    /// Connections that ended with an error, by errno name; `EOF` = in the middle of a request.
    pub connection_errors_total: BTreeMap<String, u64>,
    /// Failed accept calls, by errno name; after `EMFILE` the listener pauses for a moment.
    pub accept_errors_total: BTreeMap<String, u64>,
    /// Payloads that differ from the data that the client declared.
    pub mismatches: Vec<Mismatch>,
    /// Bytes that were mapped instead of copied, with `--receive zerocopy`.
    pub mapped_bytes: Option<u64>,
    /// The same as a share of the delivered bytes.
    pub mapped_ratio: Option<f64>,
    /// User CPU time of the process.
    pub cpu_user_s: f64,
    /// System CPU time of the process, including softirqs that interrupted it.
    pub cpu_system_s: f64,
    /// Which side was the limit, as far as this side can tell.
    pub limit: Limit,
    /// `TCP_INFO` of all connections except those of single transactions.
    pub tcp: Option<TcpSummary>,
    /// One entry per thread.
    pub threads: Vec<ThreadResult>,
    /// The first 64 connections, except those of single transactions.
    pub connections: Vec<ConnectionResult>,
}

/// A payload that differs from the sent data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mismatch {
    /// The connection: its client's address and port, then the server's.
    pub connection: String,
    /// Offset of the first wrong byte in that direction of the connection.
    pub offset_bytes: u64,
}

/// One direction of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Direction {
    /// Accepted by the sending kernel.
    pub sent_bytes: u64,
    /// Read by the receiving program; `None` when the server did not report.
    pub delivered_bytes: Option<u64>,
    /// Bits per second between the receiver's first read and its last.
    pub delivered_bps: Option<f64>,
}

/// `result` of `load tcp stream`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamResult {
    /// First byte to last, at this side.
    pub duration_s: f64,
    /// Bytes accepted by the sending kernels, both directions.
    pub sent_bytes: u64,
    /// Bits per second of `duration_s`.
    pub sent_bps: f64,
    /// Bytes read by the receiving programs, both directions; the server's reads as it reported them.
    pub delivered_bytes: Option<u64>,
    /// Sum of the rates of both directions.
    pub delivered_bps: Option<f64>,
    /// `--bitrate`.
    pub target_bps: Option<f64>,
    /// From here to the server.
    pub to_server: Option<Direction>,
    /// From the server to here.
    pub to_client: Option<Direction>,
    /// Connections that were lost, by errno name; `EOF` = closed by the server.
    pub connection_errors_total: BTreeMap<String, u64>,
    /// Whether all connections were lost before the end.
    pub peer_lost: bool,
    /// With `--send zerocopy`.
    pub zerocopy: Option<ZerocopyResult>,
    /// Bytes that were mapped instead of copied, with `--receive zerocopy`.
    pub mapped_bytes: Option<u64>,
    /// The same as a share of the delivered bytes.
    pub mapped_ratio: Option<f64>,
    /// Whether payloads were checked.
    pub verified: bool,
    /// Wrong payloads found by this side; those found by the server are in `server`.
    pub mismatches: Vec<Mismatch>,
    /// User CPU time of the process.
    pub cpu_user_s: f64,
    /// System CPU time of the process; on a default veth the receive softirq is in it.
    pub cpu_system_s: f64,
    /// Which side was the limit.
    pub limit: Limit,
    /// `TCP_INFO` of this side's ends.
    pub tcp: Option<TcpSummary>,
    /// What the server says about this run.
    pub server: Option<ServerReport>,
    /// One entry per thread.
    pub threads: Vec<ThreadResult>,
    /// The first 64 connections.
    pub connections: Vec<ConnectionResult>,
}

/// What became of `MSG_ZEROCOPY`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ZerocopyResult {
    /// Calls whose completion was read.
    pub completed_calls_count: u64,
    /// Of these, calls whose bytes the kernel copied anyway (`SO_EE_CODE_ZEROCOPY_COPIED`).
    pub copied_calls_count: u64,
    /// The same as a share.
    pub copied_ratio: f64,
    /// Times that `ENOBUFS` made a sender wait for completions.
    pub enobufs_count: u64,
}

/// `result` of `load tcp rr` and `load tcp crr`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransactionsResult {
    /// First request to last response.
    pub duration_s: f64,
    /// Completed transactions.
    pub transactions_total: u64,
    /// Per second of `duration_s`.
    pub achieved_tps: f64,
    /// `--rate`, or `None` when as fast as responses arrive.
    pub target_tps: Option<f64>,
    /// Transactions due by the schedule; without a schedule, those begun.
    #[serde(default)]
    pub target_transactions_total: u64,
    /// Due but never begun: no connection was free. No quantile includes them.
    #[serde(default)]
    pub unsent_transactions_total: u64,
    /// Begun but not complete at the end of the run. No quantile includes them.
    #[serde(default)]
    pub in_flight_transactions_total: u64,
    /// Begun but lost with their connection. No quantile includes them.
    #[serde(default)]
    pub lost_transactions_total: u64,
    /// Failed steps, by step and errno name: `connect EADDRNOTAVAIL`, `receive ECONNRESET`, `receive EOF`.
    pub errors_total: BTreeMap<String, u64>,
    /// Whether the server was lost before the end.
    pub peer_lost: bool,
    /// Request sent (crr: connecting begun) to response complete.
    pub service_time_us: Option<Quantiles>,
    /// Instant at which the request was due to response complete, with `--rate`.
    pub response_time_us: Option<Quantiles>,
    /// Start of connecting to connection established (crr).
    pub connect_time_us: Option<Quantiles>,
    /// Request bytes taken by this side's kernel.
    pub sent_bytes: u64,
    /// Response bytes read.
    pub delivered_bytes: u64,
    /// Whether payloads were checked.
    pub verified: bool,
    /// Wrong payloads found by this side; those found by the server are in `server`.
    pub mismatches: Vec<Mismatch>,
    /// User CPU time of the process.
    pub cpu_user_s: f64,
    /// System CPU time of the process; on a default veth the receive softirq is in it.
    pub cpu_system_s: f64,
    /// Which side was the limit.
    pub limit: Limit,
    /// `TCP_INFO` of this side's ends (rr).
    pub tcp: Option<TcpSummary>,
    /// What the server says about this run.
    pub server: Option<ServerReport>,
    /// One entry per thread.
    pub threads: Vec<ThreadResult>,
    /// The first 64 connections (rr).
    pub connections: Vec<ConnectionResult>,
}

/// The server's report on one client's run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerReport {
    /// Connections of the run, its control connection not included.
    pub connections_total: u64,
    /// Payload bytes read.
    pub delivered_bytes: u64,
    /// Payload bytes taken by the server's kernel.
    pub sent_bytes: u64,
    /// Responses sent whole.
    pub transactions_total: u64,
    /// First byte or transaction to last, at the server.
    pub duration_s: f64,
    /// Bytes that were mapped instead of copied; `None` when it does not try.
    pub mapped_bytes: Option<u64>,
    /// Payloads that differ from the client's pattern.
    pub mismatches: Vec<Mismatch>,
    /// Busy share of each server thread since the run's first byte.
    pub threads: Vec<ServerThread>,
    /// `TCP_INFO` of the server's ends.
    pub tcp: Option<TcpSummary>,
}

/// A server's thread as a client sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerThread {
    /// CPU it was on last.
    pub cpu: Option<u32>,
    /// CPU time divided by the time since the run's first byte, other clients' share included.
    pub busy_ratio: f64,
}

/// One worker thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadResult {
    /// The thread and its CPU time.
    #[serde(flatten)]
    pub usage: ThreadUsage,
    /// Payload bytes read.
    pub delivered_bytes: u64,
    /// Payload bytes taken by the kernel.
    pub sent_bytes: u64,
    /// Completed transactions.
    pub transactions_total: u64,
    /// System calls made to move them, waits included.
    pub calls_count: u64,
    /// Time neither running nor waiting for a CPU: blocked on sockets or on the schedule.
    pub blocked_s: f64,
    /// Longest intended pause of a server (`--sleep`); 0 for none.
    #[serde(default)]
    pub longest_away_us: f64,
}

/// One line of `--interval`: cumulative, so that any two lines give a rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// `CLOCK_MONOTONIC` at the reading of the counters.
    pub t_ns: u64,
    /// Payload bytes read so far.
    pub delivered_bytes: u64,
    /// Payload bytes taken by this side's kernel so far.
    pub sent_bytes: u64,
    /// Completed transactions so far.
    pub transactions_total: u64,
    /// Connections open now.
    pub connections_count: u64,
    /// Per thread.
    pub thread_delivered_bytes: Vec<u64>,
    /// Per thread.
    pub thread_sent_bytes: Vec<u64>,
    /// Per thread.
    pub thread_transactions_total: Vec<u64>,
    /// CPU each thread is on now.
    pub thread_cpus: Vec<u32>,
    /// `TCP_INFO` of this side's ends now, of the first 256 connections.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tcp: Option<TcpSummary>,
}

impl ThreadResult {
    /// Of the calling worker, at its end.
    pub(crate) fn of(usage: UsageMeter, tally: &Tally) -> Self {
        let (usage, blocked_s, _) = usage.end(tally);
        Self {
            usage,
            delivered_bytes: tally.received_bytes.get(),
            sent_bytes: tally.sent_bytes.get(),
            transactions_total: tally.units.get(),
            calls_count: tally.calls.get(),
            blocked_s: blocked_s.unwrap_or(0.0),
            longest_away_us: 0.0,
        }
    }
}

impl Interval {
    /// Counters of this moment, without what sockets say.
    pub(crate) fn of(shared: &Shared) -> Self {
        Self {
            t_ns: clock::now_ns(),
            delivered_bytes: shared.sum(|tally| &tally.received_bytes),
            sent_bytes: shared.sum(|tally| &tally.sent_bytes),
            transactions_total: shared.sum(|tally| &tally.units),
            connections_count: shared.sum(|tally| &tally.connections),
            thread_delivered_bytes: shared.each(|tally| &tally.received_bytes),
            thread_sent_bytes: shared.each(|tally| &tally.sent_bytes),
            thread_transactions_total: shared.each(|tally| &tally.units),
            thread_cpus: shared.cpus(),
            tcp: None,
        }
    }
}

of_results!(ThreadResult, Interval);

/// `CLIENT > SERVER`, the way both sides name a connection.
pub(crate) fn name(client: io::Result<SocketAddr>, server: io::Result<SocketAddr>) -> String {
    let text = |addr: io::Result<SocketAddr>| addr.map_or("?".into(), |addr| addr.to_string());
    format!("{} > {}", text(client), text(server))
}
