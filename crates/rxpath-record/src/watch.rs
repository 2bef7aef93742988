//! One sample of the live receive path, as `rxpath watch` shows it, prints it as JSON and records it.
//!
//! A frame is complete: a view draws it without reading the host, today or on another machine. Rates are differences of
//! cumulative counters over [`WatchFrame::window_s`]; what could not be read is a gap with its reason.

mod change;
mod line;
mod packed;
mod recording;
mod rows;
mod slice;
mod totals;

use std::collections::BTreeMap;

use rxpath_core::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use line::{WatchSettings, head_line, tail_line};
pub use packed::Packer;
pub use recording::{Recorded, RecordingError, parse};
pub use rows::{
    CpuRow, DropRow, LatencyRow, LossRow, ProbeDutyCycle, ProbeShare, QueueRow, SocketRow, TaskRow,
};
pub use slice::TrafficSlice;
pub use totals::{PollSizes, PortName, StageLatency, TakenTime, VictimName, WindowTotals};

use crate::ledger::Place;
use crate::verdict::{DiagnosisVerdict, Stage};

/// A place on the path, from left to right.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PathStage {
    /// Device and its ring.
    Nic,
    /// Hard interrupt and NAPI poll.
    Irq,
    /// Merging of segments.
    Gro,
    /// The per-CPU backlog: RPS, loopback, devices without NAPI.
    Backlog,
    /// Packet filter and IP.
    Ip,
    /// Socket queues.
    Socket,
    /// Reading programs.
    Application,
}

impl PathStage {
    /// All, from left to right.
    pub const ALL: [Self; 7] =
        [Self::Nic, Self::Irq, Self::Gro, Self::Backlog, Self::Ip, Self::Socket, Self::Application];

    /// Where a diagnosis' stage lies on the path; `None` for verdicts that name no place of this host.
    pub fn of(stage: Stage) -> Option<Self> {
        match stage {
            Stage::Ring => Some(Self::Nic),
            Stage::Softirq
            | Stage::SenderOrSoftirq
            | Stage::OneCpu
            | Stage::RpsMissing
            | Stage::RpsPointless
            | Stage::Livelock => Some(Self::Irq),
            Stage::Backlog => Some(Self::Backlog),
            Stage::Filter | Stage::Refused | Stage::ConntrackFull | Stage::Checksum => {
                Some(Self::Ip)
            }
            Stage::SocketQueue
            | Stage::SocketLock
            | Stage::NoListener
            | Stage::AcceptQueue
            | Stage::TcpReceive => Some(Self::Socket),
            Stage::Application
            | Stage::ReuseportImbalance
            | Stage::ApplicationDescheduled
            | Stage::TcpReader => Some(Self::Application),
            // Somewhere on the network.
            Stage::TcpRetransmit
            | Stage::Sender
            | Stage::Network
            | Stage::Victim
            | Stage::TickArtefact
            | Stage::Nothing
            | Stage::Unknown => None,
        }
    }

    /// Where a place of loss lies on the path; `None` for those of a sender.
    pub fn at(place: Place) -> Option<Self> {
        match place {
            Place::SendCall
            | Place::Output
            | Place::EgressHook
            | Place::Qdisc
            | Place::SendingDevice => None,
            Place::Network | Place::Ring | Place::DeviceRefused => Some(Self::Nic),
            Place::Backlog => Some(Self::Backlog),
            Place::IngressHook
            | Place::Ip
            | Place::ReversePath
            | Place::Routing
            | Place::Fragments
            | Place::Netfilter
            | Place::ReasonOnly => Some(Self::Ip),
            Place::XdpSocket
            | Place::IpsecPolicy
            | Place::SocketFilter
            | Place::NoListener
            | Place::Checksum
            | Place::SocketBuffer
            | Place::UdpMemory
            | Place::UdpMemoryUncounted
            | Place::UdpOther
            | Place::ListenQueue
            | Place::SocketBacklog
            | Place::TcpReceiveQueue
            | Place::TcpOutOfOrder
            | Place::TcpSequence
            | Place::TcpOther => Some(Self::Socket),
        }
    }
}

/// One stage over the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageRow {
    /// Which.
    pub stage: PathStage,
    /// How many of `unit` passed, per second.
    pub rate_per_s: Fact<f64>,
    /// What `rate_per_s` counts: `packets`, `interrupts`, `datagrams read`.
    pub unit: String,
    /// The counters behind it.
    pub rate_source: String,
    /// Packets lost here, per second.
    pub drops_pps: Fact<f64>,
    /// The counters behind it.
    pub drops_source: String,
    /// CPU time spent here, in CPUs: 0.5 is half of one CPU.
    pub cpu_ratio: Fact<f64>,
    /// Further information: `12.3 packets a poll`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WatchFrame {
    /// Number of the sample, from 1.
    pub number: u64,
    /// End of the window, Unix time.
    pub at_unix_s: f64,
    /// Length of the window that all rates are about.
    pub window_s: f64,
    /// The path, from left to right.
    pub stages: Vec<StageRow>,
    /// The limit of reception over UDP and TCP.
    pub verdict: Option<DiagnosisVerdict>,
    /// Packets per second that softirqs handled for other network namespaces, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere_pps: Option<f64>,
    /// CPUs that are online.
    pub cpus: Vec<CpuRow>,
    /// Receive queues.
    pub queues: Vec<QueueRow>,
    /// Sockets with queued data, drops or traffic; the fullest first.
    pub sockets: Vec<SocketRow>,
    /// All sockets, those without a row included.
    pub sockets_count: u64,
    /// Tasks, those that lost most first.
    pub tasks: Vec<TaskRow>,
    /// Drops, the most first.
    pub drops: Vec<DropRow>,
    /// Packets lost, each at one place, also those that lost none; places whose losses this host does not count have no row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<LossRow>,
    /// Latency between stages.
    pub latency: Vec<LatencyRow>,
    /// What could not be read, with the reason.
    pub gaps: BTreeMap<String, String>,
    /// CPU time of rxpath itself over the window, in CPUs, its BPF programs not included.
    pub own_cpu_ratio: f64,
    /// Power of the processor packages and their memory, where the machine counts it. **Unit** W.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// BPF probes that count only part of the time, because counting all the time would cost too much; empty if all
    /// count without a break.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<ProbeDutyCycle>,
    /// The cost of its BPF programs, as last measured; none without them.
    pub probe_cost: Option<ProbeShare>,
}

impl WatchFrame {
    /// The gap of a frame without any BPF probe.
    pub const ALL_PROBES: &'static str = "BPF probes";
    /// How a gap begins whose reader costs so much that it is asked seldom.
    pub const READ_SELDOM: &'static str = "read once in ";
    /// That of a frame without an estimate of what entering and leaving an interrupt costs.
    pub const ENTRY: &'static str = "entry and exit of interrupts";
    /// That of a frame whose estimate of this cost is wrong by 20 % or more.
    pub const EXACT_ENTRY: &'static str = "estimate of interrupt entry and exit";
    /// That of verdicts which rest on what no frame has.
    pub const VERDICT: &'static str = "verdict";

    /// The stage that limits, where the verdict names one.
    pub fn limit(&self) -> Option<PathStage> {
        PathStage::of(self.verdict.as_ref()?.stage)
    }
}
