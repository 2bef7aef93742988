//! Properties of each stage, in one place: the compiler requires them for every new stage.

use rxpath_record::verdict::Stage;

/// Whose packets a verdict about a stage covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
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
    pub protocol: Protocol,
    /// The sending threads are the limit, or a part of it.
    pub sends: bool,
    /// The reading threads are the limit, or a part of it.
    pub reads: bool,
    /// The receive softirq is the limit, or a part of it.
    pub in_softirq: bool,
}

const fn of(protocol: Protocol) -> StageInfo {
    StageInfo { protocol, sends: false, reads: false, in_softirq: false }
}

/// The properties of a stage.
pub const fn info(stage: Stage) -> StageInfo {
    let (udp, tcp, any) = (of(Protocol::Udp), of(Protocol::Tcp), of(Protocol::Any));
    match stage {
        Stage::Sender => StageInfo { sends: true, ..udp },
        Stage::SenderOrSoftirq => StageInfo { sends: true, in_softirq: true, ..udp },
        Stage::Softirq
        | Stage::OneCpu
        | Stage::RpsMissing
        | Stage::RpsPointless
        | Stage::Backlog
        | Stage::Ring => StageInfo { in_softirq: true, ..any },
        Stage::Filter
        | Stage::Refused
        | Stage::ConntrackFull
        | Stage::Victim
        | Stage::TickArtefact => any,
        Stage::SocketQueue | Stage::Checksum | Stage::NoListener => udp,
        Stage::Application
        | Stage::SocketLock
        | Stage::ReuseportImbalance
        | Stage::ApplicationDescheduled => StageInfo { reads: true, ..udp },
        Stage::Livelock => StageInfo { reads: true, in_softirq: true, ..udp },
        Stage::AcceptQueue | Stage::TcpReceive | Stage::TcpRetransmit => tcp,
        Stage::TcpReader => StageInfo { reads: true, ..tcp },
        Stage::Nothing | Stage::Unknown => of(Protocol::Said),
    }
}
