//! Properties of each stage, in one table: the compiler requires a row for every new stage.

use rxpath_record::ledger::LedgerUnit;
use rxpath_record::verdict::Stage;

/// Whose packets a verdict about a stage covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageProtocol {
    /// UDP alone.
    Udp,
    /// TCP alone.
    Tcp,
    /// All of them.
    Any,
    /// The rule's sentence says it.
    Said,
}

/// What follows if a stage is the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageInfo {
    /// Whose packets it is about.
    pub protocol: StageProtocol,
    /// The sending threads are the limit, or a part of it.
    pub sends: bool,
    /// The reading threads are the limit, or a part of it.
    pub reads: bool,
    /// The receive softirq is the limit, or a part of it.
    pub in_softirq: bool,
    /// Ids of the rules of `rxpath check` about its settings, the most telling first; `rxpath explain ID` explains each.
    pub check_rules: &'static [&'static str],
}

const fn of(protocol: StageProtocol, check_rules: &'static [&'static str]) -> StageInfo {
    StageInfo { protocol, sends: false, reads: false, in_softirq: false, check_rules }
}

impl StageInfo {
    const fn sends(self) -> Self {
        Self { sends: true, ..self }
    }

    const fn reads(self) -> Self {
        Self { reads: true, ..self }
    }

    const fn in_softirq(self) -> Self {
        Self { in_softirq: true, ..self }
    }
}

/// The rules of `rxpath check` to name with a stage: where segments were counted, none that is about UDP.
pub fn check_rules(stage: Stage, unit: LedgerUnit) -> Vec<String> {
    let fits = |id: &&&str| unit == LedgerUnit::Datagram || !id.starts_with("udp-");
    info(stage).check_rules.iter().filter(fits).map(|id| (*id).to_owned()).collect()
}

/// The properties of a stage.
#[rustfmt::skip]
pub const fn info(stage: Stage) -> StageInfo {
    use StageProtocol::{Any, Said, Tcp, Udp};
    match stage {
        Stage::Sender => of(Udp, &[]).sends(),
        Stage::SenderOrSoftirq => of(Udp, &["rps-cpus", "channels-combined", "iptables-legacy-chains", "nf-hooks"]).sends().in_softirq(),
        Stage::Softirq => of(Any, &["rps-cpus", "channels-combined", "iptables-legacy-chains", "nf-hooks"]).in_softirq(),
        Stage::OneCpu => of(Any, &["rps-cpus", "rss-indirection", "rss-fields-udp4", "channels-vs-cpus"]).in_softirq(),
        Stage::RpsMissing => of(Any, &["rps-cpus", "channels-combined"]).in_softirq(),
        Stage::RpsPointless => of(Any, &["rps-cpus", "rss-fields-udp4"]).in_softirq(),
        Stage::Backlog => of(Any, &["backlog-max", "backlog-threads", "rps-cpus"]).in_softirq(),
        Stage::Network => of(Any, &["flow-control-pause", "mtu-jumbo"]),
        Stage::Ring => of(Any, &["ring-rx", "napi-threaded", "channels-combined"]).in_softirq(),
        Stage::Filter => of(Any, &["nf-hooks", "iptables-legacy-chains", "rp-filter", "tc-ingress", "xdp-attached"]),
        Stage::Refused => of(Any, &["mtu-jumbo", "nic-stats-drop-counters", "nic-promisc-rxall"]),
        Stage::ConntrackFull => of(Any, &["conntrack-sizing", "conntrack-active"]),
        Stage::SocketQueue => of(Udp, &["socket-rcvbuf-actual", "rmem-max", "rmem-default", "udp-mem"]),
        Stage::Application => of(Udp, &["udp-gro-socket", "reader-placement"]).reads(),
        Stage::SocketLock => of(Udp, &["reuseport-incoming-cpu", "udp-gro-socket"]).reads(),
        Stage::ReuseportImbalance => of(Udp, &["reuseport-incoming-cpu"]).reads(),
        Stage::ApplicationDescheduled => of(Udp, &["other-load", "reader-placement", "cgroup-throttle"]).reads(),
        Stage::Livelock => of(Udp, &["reader-placement", "napi-threaded", "rps-cpus"]).reads().in_softirq(),
        Stage::Checksum => of(Udp, &["offload-rx-csum"]),
        Stage::NoListener => of(Udp, &[]),
        Stage::AcceptQueue => of(Tcp, &["somaxconn", "syn-backlog"]),
        Stage::TcpReceive => of(Tcp, &["tcp-rmem", "tcp-mem", "tcp-moderate-rcvbuf"]),
        Stage::TcpReader => of(Tcp, &["reader-placement", "tcp-rmem", "tcp-moderate-rcvbuf"]).reads(),
        Stage::TcpRetransmit => of(Tcp, &["ring-rx", "tcp-rmem"]),
        Stage::Victim => of(Any, &["irq-affinity", "rps-cpus", "isolcpus-nohz-full", "napi-threaded"]),
        Stage::TickArtefact => of(Any, &["irq-time-accounting", "hz"]),
        Stage::Nothing | Stage::Unknown => of(Said, &[]),
    }
}
