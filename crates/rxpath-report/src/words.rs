//! The words for the record's enums: one place, so that page and Markdown use the same.

use rxpath_record::comparison::Comparison;
use rxpath_record::manifest::{LoopKind, Status};
use rxpath_record::verdict::{Confidence, Stage};

/// The limiting stage in two or three words.
pub(crate) fn stage(stage: Stage, cpu: Option<u32>) -> String {
    let word = stage.words();
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

/// The scenario's expectation, and what became of it: `up: confirmed`.
pub(crate) fn expected(comparison: &Comparison) -> String {
    match (&comparison.expected, comparison.met()) {
        (Some(expected), Some(met)) => format!("{expected}: {}", met.word()),
        _ => "–".into(),
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

/// Whether a trial was open or closed loop.
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
        "receive_cpu_s_per_mpacket" => "CPU time of the receive path per million packets".into(),
        "service_time_p50_us" => "service time, median".into(),
        "service_time_p99_us" => "service time, 99th percentile".into(),
        "service_time_p999_us" => "service time, 99.9th percentile".into(),
        "response_time_p50_us" => "response time, median".into(),
        "response_time_p99_us" => "response time, 99th percentile".into(),
        "response_time_p999_us" => "response time, 99.9th percentile".into(),
        "one_way_delay_p50_us" => "one-way delay, median".into(),
        "one_way_delay_p99_us" => "one-way delay, 99th percentile".into(),
        "one_way_delay_bound_us" => "bound of the one-way delay".into(),
        "delay_above_least_p50_us" => "delay above the least, median".into(),
        "delay_above_least_p99_us" => "delay above the least, 99th percentile".into(),
        "delivered_bps" => "delivered rate".into(),
        "achieved_rps" => "answered requests".into(),
        "achieved_tps" => "transactions".into(),
        "server_cpu_us_per_request" => "server CPU time per request".into(),
        "client_cpu_us_per_request" => "client CPU time per request".into(),
        "server_cpu_us_per_transaction" => "server CPU time per transaction".into(),
        "client_cpu_us_per_transaction" => "client CPU time per transaction".into(),
        "receiver_cpu_ns_per_kib" => "receiver CPU time per KiB".into(),
        "sender_cpu_ns_per_kib" => "sender CPU time per KiB".into(),
        "victim_got_ratio" => "what the victim got (of asked)".into(),
        "victim_claimed_ratio" => "what the victim's command reports (of asked)".into(),
        "victim_taken_ratio" => "taken from the victim's CPU (of asked)".into(),
        "victim_taken_s_per_gbit" => "taken from the victim's CPU per Gb".into(),
        "victim_taken_s_per_mpacket" => "taken from the victim's CPU per million packets".into(),
        "network_cpu_s_per_gbit" => "CPU time of networking per Gb".into(),
        "network_cpu_s_per_mpacket" => "CPU time of networking per million packets".into(),
        "landed_on_victim_ratio" => "landed on the victim's CPU (of handled)".into(),
        other => other.replace('_', " "),
    }
}
