//! `iperf3 -J`, client or server, TCP or UDP.
//!
//! **Source** `iperf_print_results` with JSON output of iperf 3.12 (src/iperf_api.c). **Caveat** with UDP,
//! `sum_received.packets` counts up to the highest sequence number: what came is that less `lost_packets`.

use serde_json::Value;

use super::json::document;
use super::{Metrics, OutputError, form};

/// Metrics that a result can hold; packets only with UDP, retransmits only with TCP.
pub(super) const NAMES: &[&str] = &[
    "duration_s",
    "sent_bytes",
    "sent_bps",
    "sent_packets",
    "delivered_bytes",
    "delivered_bps",
    "delivered_packets",
    "delivered_pps",
    "lost_packets",
    "jitter_us",
    "retransmits_count",
    "own_cpu_ratio",
];

pub(super) fn read(text: &str) -> Result<Metrics, OutputError> {
    let value = document("iperf3", text)?;
    if let Some(message) = value.get("error").and_then(Value::as_str) {
        return Err(OutputError::Failed { program: "iperf3", message: message.into() });
    }
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_f64);
    let Some(duration) = number("/end/sum_received/seconds").or_else(|| number("/end/sum/seconds"))
    else {
        return Err(form("iperf3", "there is no /end/sum_received; was -J given?", text));
    };
    let mut metrics = Metrics::from([("duration_s".to_owned(), duration)]);
    let mut put = |name: &str, found: Option<f64>| {
        if let Some(found) = found {
            metrics.insert(name.into(), found);
        }
    };
    // A server writes zeros where only the client knows.
    let sent = |name: &str| number(&format!("/end/sum_sent/{name}")).filter(|sent| *sent > 0.0);
    put("sent_bytes", sent("bytes"));
    put("sent_bps", sent("bits_per_second"));
    put("sent_packets", sent("packets"));
    put("delivered_bytes", number("/end/sum_received/bytes"));
    put("delivered_bps", number("/end/sum_received/bits_per_second"));
    let lost = number("/end/sum_received/lost_packets");
    let came = number("/end/sum_received/packets").zip(lost).map(|(seen, lost)| seen - lost);
    put("delivered_packets", came);
    put("delivered_pps", came.filter(|_| duration > 0.0).map(|came| came / duration));
    put("lost_packets", lost);
    put("jitter_us", number("/end/sum_received/jitter_ms").map(|jitter| jitter * 1e3));
    put("retransmits_count", number("/end/sum_sent/retransmits"));
    put("own_cpu_ratio", number("/end/cpu_utilization_percent/host_total").map(|cpu| cpu / 100.0));
    Ok(metrics)
}
