//! What a workload reports at its end, decoded once into the type of its protocol.

use std::collections::BTreeMap;

use rxpath_load::limit::Limit;
use rxpath_load::quantiles::Quantiles;
use rxpath_load::usage::ThreadUsage;
use rxpath_load::{http, tcp, udp};
use rxpath_record::manifest::Trial;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::LabError;
use crate::scenario::spec::Protocol;

/// The result of one side of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(untagged)]
pub enum WorkloadResult {
    /// Nothing ran on this side.
    #[default]
    None,
    /// A third-party program.
    External(ExternalResult),
    /// `load udp`.
    UdpLoad(udp::result::LoadResult),
    /// `serve udp`.
    UdpServe(udp::result::ServeResult),
    /// `load tcp stream`.
    Stream(tcp::result::StreamResult),
    /// `load tcp rr` and `load tcp crr`.
    Transactions(tcp::result::TransactionsResult),
    /// `serve tcp`.
    TcpServe(tcp::result::ServeResult),
    /// `load http`.
    HttpLoad(http::load::result::LoadResult),
    /// `serve http`.
    HttpServe(http::serve::result::ServeResult),
}

/// What a sender was to offer and what it offered, per second. A sender that kept its schedule says so in its limit.
#[derive(Clone, Copy, Debug)]
pub struct OfferedRates<'a> {
    /// The target rate.
    pub target: f64,
    /// What was attempted.
    pub offered: f64,
    /// What both count.
    pub unit: &'static str,
    /// What limited the sender.
    pub limit: &'a Limit,
}

/// What was read from the output of a third-party program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExternalResult {
    /// Metrics by name.
    pub metrics: Option<BTreeMap<String, f64>>,
    /// Why there are none.
    pub problem: Option<String>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// A server of UDP as a run recorded it.
#[derive(Clone, Debug, Deserialize)]
pub struct UdpServer {
    /// Its settings.
    pub settings: udp::serve::options::ServeSettings,
    /// Its result.
    pub result: udp::result::ServeResult,
}

impl UdpServer {
    /// Reads it from the record of a trial; `None` when the receiver was another program.
    pub fn recorded(trial: &Trial) -> Option<Self> {
        let mut record = trial.workloads.get("serve")?.clone();
        // Between hosts the record has an alias in place of the address.
        *record.pointer_mut("/settings/addr")? = "0.0.0.0:0".into();
        Self::deserialize(record).ok()
    }
}

impl WorkloadResult {
    /// The result that a workload of this program printed.
    ///
    /// # Errors
    /// [`LabError::Internal`] when it is not of the protocol's form.
    pub fn decode(protocol: Protocol, is_server: bool, value: Value) -> Result<Self, LabError> {
        Ok(match (protocol, is_server) {
            (Protocol::Udp, false) => Self::UdpLoad(typed(value)?),
            (Protocol::Udp, true) => Self::UdpServe(typed(value)?),
            (Protocol::TcpStream, false) => Self::Stream(typed(value)?),
            (Protocol::TcpRr | Protocol::TcpCrr, false) => Self::Transactions(typed(value)?),
            (Protocol::TcpStream | Protocol::TcpRr | Protocol::TcpCrr, true) => {
                Self::TcpServe(typed(value)?)
            }
            (Protocol::Http, false) => Self::HttpLoad(typed(value)?),
            (Protocol::Http, true) => Self::HttpServe(typed(value)?),
        })
    }

    /// The result of one side as a trial recorded it; `None` when another program ran there, and of a UDP sender to several
    /// receivers between hosts, in whose record aliases stand for addresses.
    pub fn recorded(trial: &Trial, protocol: Protocol, is_server: bool) -> Option<Self> {
        let record = trial.workloads.get(if is_server { "serve" } else { "load" })?;
        Self::decode(protocol, is_server, record["result"].clone()).ok()
    }

    /// The result of `load udp`, when it is one.
    pub fn udp_load(&self) -> Option<&udp::result::LoadResult> {
        match self {
            Self::UdpLoad(result) => Some(result),
            _ => None,
        }
    }

    /// The result of `serve udp`, when it is one.
    pub fn udp_serve(&self) -> Option<&udp::result::ServeResult> {
        match self {
            Self::UdpServe(result) => Some(result),
            _ => None,
        }
    }

    /// `TCP_INFO` of this side's sockets, when it is a workload of TCP that read it.
    pub fn tcp(&self) -> Option<&tcp::connection::TcpSummary> {
        match self {
            Self::Stream(result) => result.tcp.as_ref(),
            Self::Transactions(result) => result.tcp.as_ref(),
            Self::TcpServe(result) => result.tcp.as_ref(),
            _ => None,
        }
    }

    /// Service and response time of a client, where it measured them.
    pub fn times(&self) -> [Option<&Quantiles>; 2] {
        match self {
            Self::Transactions(it) => [it.service_time_us.as_ref(), it.response_time_us.as_ref()],
            Self::HttpLoad(it) => [it.service_time_us.as_ref(), it.response_time_us.as_ref()],
            _ => [None, None],
        }
    }

    /// What a client completed in the whole trial, and its errors: of a stream the bytes that were read. `None` of anything
    /// else.
    pub fn done(&self) -> Option<(Option<u64>, u64)> {
        let (done, errors) = match self {
            Self::Stream(it) => (it.delivered_bytes, &it.connection_errors_total),
            Self::Transactions(it) => (Some(it.transactions_total), &it.errors_total),
            Self::HttpLoad(it) => (Some(it.requests_total), &it.errors_total),
            _ => return None,
        };
        Some((done, errors.values().sum()))
    }

    /// The rates of a sender with a target rate.
    pub fn rates(&self) -> Option<OfferedRates<'_>> {
        let (target, offered, unit, limit) = match self {
            Self::UdpLoad(it) => {
                let offered = it.offered_packets as f64 / it.duration_s.max(f64::EPSILON);
                (it.target_pps, offered, "/s", &it.limit)
            }
            Self::Stream(it) => (it.target_bps, it.sent_bps, "b/s", &it.limit),
            Self::Transactions(it) => (it.target_tps, it.achieved_tps, "/s", &it.limit),
            Self::HttpLoad(it) => (it.target_rps, it.achieved_rps, "/s", &it.limit),
            Self::UdpServe(_) | Self::TcpServe(_) | Self::HttpServe(_) => return None,
            Self::None | Self::External(_) => return None,
        };
        Some(OfferedRates { target: target?, offered, unit, limit })
    }

    /// The worker threads that it lists; none of a third-party program.
    pub fn workers(&self) -> Vec<&ThreadUsage> {
        fn of<T: AsRef<ThreadUsage>>(threads: &[T]) -> Vec<&ThreadUsage> {
            threads.iter().map(AsRef::as_ref).collect()
        }
        match self {
            Self::None | Self::External(_) => Vec::new(),
            Self::UdpLoad(it) => of(&it.threads),
            Self::UdpServe(it) => of(&it.threads),
            Self::Stream(it) => of(&it.threads),
            Self::Transactions(it) => of(&it.threads),
            Self::TcpServe(it) => of(&it.threads),
            Self::HttpLoad(it) => of(&it.threads),
            Self::HttpServe(it) => of(&it.threads),
        }
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, LabError> {
    serde_json::from_value(value)
        .map_err(|e| LabError::internal(format!("a workload's result can't be read: {e}")))
}
