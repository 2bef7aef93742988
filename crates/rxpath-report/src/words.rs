//! The words for the record's enums: one place, so that page and Markdown say the same.

use rxpath_record::ledger::Place;
use rxpath_record::manifest::{LoopKind, Outcome, Status};
use rxpath_record::verdict::{Confidence, Stage};

/// Where a datagram was lost, as a noun with its side of the path.
pub(crate) fn place(place: Place) -> &'static str {
    match place {
        Place::SendCall => "refused by the send call",
        Place::EgressHook => "sender's egress hook",
        Place::Qdisc => "sender's qdisc",
        Place::Ring => "device ring (NAPI)",
        Place::Backlog => "RPS backlog",
        Place::IngressHook => "ingress hook",
        Place::Ip => "IP input",
        Place::ReversePath => "reverse path filter",
        Place::Netfilter => "netfilter",
        Place::NoListener => "no listener",
        Place::Checksum => "UDP checksum",
        Place::SocketBuffer => "socket receive buffer",
        Place::UdpMemory => "UDP memory limit",
        Place::UdpMemoryUncounted => "UDP memory, not counted by this kernel",
        Place::UdpOther => "other UDP errors",
    }
}

/// The stretch of the path that a place lies on; it picks the colour, the text still names the place.
pub(crate) fn stretch(place: Place) -> &'static str {
    match place {
        Place::SendCall | Place::EgressHook | Place::Qdisc => "sender",
        Place::Ring | Place::Backlog => "device",
        Place::IngressHook | Place::Ip | Place::ReversePath | Place::Netfilter => "protocol",
        Place::NoListener
        | Place::Checksum
        | Place::SocketBuffer
        | Place::UdpMemory
        | Place::UdpMemoryUncounted
        | Place::UdpOther => "socket",
    }
}

/// The limiting stage in two or three words.
pub(crate) fn stage(stage: Stage, cpu: Option<u32>) -> String {
    let word = match stage {
        Stage::Sender => "sender",
        Stage::SenderOrSoftirq => "sender or softirq",
        Stage::Softirq => "softirq",
        Stage::Backlog => "RPS backlog",
        Stage::Ring => "device ring",
        Stage::Filter => "a filter",
        Stage::SocketQueue => "socket queue",
        Stage::Application => "application",
        Stage::ApplicationDescheduled => "application off its CPU",
        Stage::Livelock => "receive livelock",
        Stage::Checksum => "bad checksums",
        Stage::NoListener => "no listener",
        Stage::Nothing => "nothing",
        Stage::Unknown => "undecided",
    };
    match cpu {
        Some(cpu) => format!("{word}, CPU {cpu}"),
        None => word.into(),
    }
}

/// How sure a verdict is.
pub(crate) fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Weak => "weak evidence",
        Confidence::Fair => "fair evidence",
        Confidence::Strong => "strong evidence",
    }
}

/// The statistical word of a comparison.
pub(crate) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::Same => "same",
        Outcome::Inconclusive => "inconclusive",
    }
}

/// How a run ended.
pub(crate) fn status(status: Status) -> &'static str {
    match status {
        Status::Running => "not ended",
        Status::Complete => "complete",
        Status::Interrupted => "interrupted",
        Status::Failed => "failed",
    }
}

/// Whose pace a trial had.
pub(crate) fn loop_kind(kind: LoopKind) -> &'static str {
    match kind {
        LoopKind::Open => "open",
        LoopKind::Closed => "closed",
    }
}

/// A metric's name as a phrase that says whose number it is.
pub(crate) fn metric(name: &str) -> String {
    match name {
        "delivered_pps" => "delivered rate".into(),
        "offered_pps" => "offered rate".into(),
        "sent_pps" => "sent rate".into(),
        "loss_ratio" => "loss (of offered)".into(),
        "receiver_cpu_ns_per_packet" => "receiver CPU time per delivered datagram".into(),
        "sender_cpu_ns_per_packet" => "sender CPU time per sent datagram".into(),
        other => other.replace('_', " "),
    }
}
