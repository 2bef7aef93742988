//! Which rules of `rxpath check` look at the settings that a verdict is about.
//!
//! Ids only: what a rule says of a host is the business of those who read its facts.

use rxpath_record::verdict::Stage;

/// Ids of the rules about a stage's settings, the most telling first; `rxpath explain ID` explains each.
pub fn rules(stage: Stage) -> &'static [&'static str] {
    match stage {
        Stage::Softirq | Stage::SenderOrSoftirq => {
            &["rps-cpus", "channels-combined", "iptables-legacy-chains", "nf-hooks"]
        }
        Stage::OneCpu => &["rps-cpus", "rss-indirection", "rss-fields-udp4", "channels-vs-cpus"],
        Stage::RpsMissing => &["rps-cpus", "channels-combined"],
        Stage::RpsPointless => &["rps-cpus", "rss-fields-udp4"],
        Stage::Backlog => &["backlog-max", "backlog-threads", "rps-cpus"],
        Stage::Ring => &["ring-rx", "napi-threaded", "channels-combined"],
        Stage::Filter => {
            &["nf-hooks", "iptables-legacy-chains", "rp-filter", "tc-ingress", "xdp-attached"]
        }
        Stage::Refused => &["mtu-jumbo", "nic-stats-drop-counters", "nic-promisc-rxall"],
        Stage::ConntrackFull => &["conntrack-sizing", "conntrack-active"],
        Stage::SocketQueue => &["socket-rcvbuf-actual", "rmem-max", "rmem-default", "udp-mem"],
        Stage::Application => &["udp-gro-socket", "reader-placement"],
        Stage::SocketLock => &["reuseport-incoming-cpu", "udp-gro-socket"],
        Stage::ReuseportImbalance => &["reuseport-incoming-cpu"],
        Stage::ApplicationDescheduled => &["other-load", "reader-placement", "cgroup-throttle"],
        Stage::Livelock => &["reader-placement", "napi-threaded", "rps-cpus"],
        Stage::Checksum => &["offload-rx-csum"],
        Stage::Victim => &["irq-affinity", "rps-cpus", "isolcpus-nohz-full", "napi-threaded"],
        Stage::TickArtefact => &["irq-time-accounting", "hz"],
        Stage::AcceptQueue => &["somaxconn", "syn-backlog"],
        Stage::TcpReceive => &["tcp-rmem", "tcp-mem", "tcp-moderate-rcvbuf"],
        Stage::TcpReader => &["reader-placement", "tcp-rmem", "tcp-moderate-rcvbuf"],
        Stage::TcpRetransmit => &["ring-rx", "tcp-rmem"],
        Stage::Sender | Stage::NoListener | Stage::Nothing | Stage::Unknown => &[],
    }
}
