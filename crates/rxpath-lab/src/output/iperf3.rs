//! `iperf3 -J`, client or server, TCP or UDP.
//!
//! **Source** `iperf_print_results` with JSON output of iperf 3.12 (src/iperf_api.c). **Caveat** with UDP,
//! `sum_received.packets` counts up to the highest sequence number: what came is that less `lost_packets`.

use rxpath_core::IntoMap;
use serde_json::Value;

use super::json::document;
use super::{Metrics, form};

/// What a result shows, by metric: packets only with UDP, retransmits only with TCP.
fn figures(value: &Value) -> [(&'static str, Option<f64>); 12] {
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_f64);
    let duration = number("/end/sum_received/seconds").or_else(|| number("/end/sum/seconds"));
    // A server writes zeros where only the client knows.
    let sent = |name: &str| number(&format!("/end/sum_sent/{name}")).filter(|sent| *sent > 0.0);
    let lost = number("/end/sum_received/lost_packets");
    let came = number("/end/sum_received/packets").zip(lost).map(|(seen, lost)| seen - lost);
    let came_in = came.zip(duration.filter(|seconds| *seconds > 0.0));
    [
        ("duration_s", duration),
        ("sent_bytes", sent("bytes")),
        ("sent_bps", sent("bits_per_second")),
        ("sent_packets", sent("packets")),
        ("delivered_bytes", number("/end/sum_received/bytes")),
        ("delivered_bps", number("/end/sum_received/bits_per_second")),
        ("delivered_packets", came),
        ("delivered_pps", came_in.map(|(came, seconds)| came / seconds)),
        ("lost_packets", lost),
        ("jitter_us", number("/end/sum_received/jitter_ms").map(|jitter| jitter * 1e3)),
        ("retransmits_count", number("/end/sum_sent/retransmits")),
        ("own_cpu_ratio", number("/end/cpu_utilization_percent/host_total").map(|cpu| cpu / 100.0)),
    ]
}

/// Metrics that a result can hold.
pub(super) fn names() -> Vec<String> {
    figures(&Value::Null).map(|(name, _)| name.to_owned()).into()
}

pub(super) fn read(text: &str) -> Result<Metrics, String> {
    let value = document("iperf3", text)?;
    if let Some(message) = value.get("error").and_then(Value::as_str) {
        return Err(format!("iperf3 failed: {message}"));
    }
    let figures = figures(&value);
    if figures[0].1.is_none() {
        return Err(form("iperf3", "there is no /end/sum_received; was -J given?", text));
    }
    Ok(figures.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).into_map())
}
