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

/// Work that a stage may be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageWork {
    /// Of the sending threads.
    Sending,
    /// Of the reading threads.
    Reading,
    /// Of the receive softirq.
    Softirq,
}

/// What follows if a stage is the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageInfo {
    /// Whose packets it is about.
    pub protocol: StageProtocol,
    /// The work that is the limit, or a part of it.
    pub work: &'static [StageWork],
    /// Ids of the rules of `rxpath check` about its settings, the most telling first; `rxpath explain ID` explains each.
    pub check_rules: &'static [&'static str],
}

const fn of(
    protocol: StageProtocol,
    work: &'static [StageWork],
    check_rules: &'static [&'static str],
) -> StageInfo {
    StageInfo { protocol, work, check_rules }
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
    use StageWork::{Reading, Sending, Softirq};
    match stage {
        Stage::Sender => of(Udp, &[Sending], &[]),
        Stage::SenderOrSoftirq => of(Udp, &[Sending, Softirq], &["rps-cpus", "channels-combined", "iptables-legacy-chains", "nf-hooks"]),
        Stage::Softirq => of(Any, &[Softirq], &["rps-cpus", "channels-combined", "iptables-legacy-chains", "nf-hooks"]),
        Stage::OneCpu => of(Any, &[Softirq], &["rps-cpus", "rss-indirection", "rss-fields-udp4", "channels-vs-cpus"]),
        Stage::RpsMissing => of(Any, &[Softirq], &["rps-cpus", "channels-combined"]),
        Stage::RpsPointless => of(Any, &[Softirq], &["rps-cpus", "rss-fields-udp4"]),
        Stage::Backlog => of(Any, &[Softirq], &["backlog-max", "backlog-threads", "rps-cpus"]),
        Stage::Network => of(Any, &[], &["flow-control-pause", "mtu-jumbo"]),
        Stage::Ring => of(Any, &[Softirq], &["ring-rx", "napi-threaded", "channels-combined"]),
        Stage::Filter => of(Any, &[], &["nf-hooks", "iptables-legacy-chains", "rp-filter", "tc-ingress", "xdp-attached"]),
        Stage::Refused => of(Any, &[], &["mtu-jumbo", "nic-stats-drop-counters", "nic-promisc-rxall"]),
        Stage::ConntrackFull => of(Any, &[], &["conntrack-sizing", "conntrack-active"]),
        Stage::SocketQueue => of(Udp, &[], &["socket-rcvbuf-actual", "rmem-max", "rmem-default", "udp-mem"]),
        Stage::Application => of(Udp, &[Reading], &["udp-gro-socket", "reader-placement"]),
        Stage::SocketLock => of(Udp, &[Reading], &["reuseport-incoming-cpu", "udp-gro-socket"]),
        Stage::ReuseportImbalance => of(Udp, &[Reading], &["reuseport-incoming-cpu"]),
        Stage::ApplicationDescheduled => of(Udp, &[Reading], &["other-load", "reader-placement", "cgroup-throttle"]),
        Stage::Livelock => of(Udp, &[Reading, Softirq], &["reader-placement", "napi-threaded", "rps-cpus"]),
        Stage::Checksum => of(Udp, &[], &["offload-rx-csum"]),
        Stage::NoListener => of(Udp, &[], &[]),
        Stage::AcceptQueue => of(Tcp, &[], &["somaxconn", "syn-backlog"]),
        Stage::TcpReceive => of(Tcp, &[], &["tcp-rmem", "tcp-mem", "tcp-moderate-rcvbuf"]),
        Stage::TcpReader => of(Tcp, &[Reading], &["reader-placement", "tcp-rmem", "tcp-moderate-rcvbuf"]),
        Stage::TcpRetransmit => of(Tcp, &[], &["ring-rx", "tcp-rmem"]),
        Stage::Victim => of(Any, &[], &["irq-affinity", "rps-cpus", "isolcpus-nohz-full", "napi-threaded"]),
        Stage::TickArtefact => of(Any, &[], &["irq-time-accounting", "hz"]),
        Stage::Nothing | Stage::Unknown => of(Said, &[], &[]),
    }
}
