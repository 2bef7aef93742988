//! The summary that wrk prints.
//!
//! **Source** `print_stats` and `format_time_us` of wrk 4.1 (src/wrk.c, src/units.c).

use regex_lite::Regex;

use super::{Metrics, OutputError, form};

/// Metrics that a summary holds. Errors and percentiles are there only when wrk prints them.
pub(super) const NAMES: &[&str] = &[
    "latency_mean_us",
    "latency_stdev_us",
    "latency_max_us",
    "latency_p50_us",
    "latency_p75_us",
    "latency_p90_us",
    "latency_p99_us",
    "thread_mean_rps",
    "requests_total",
    "duration_s",
    "received_bytes",
    "mean_rps",
    "transfer_bytes_per_s",
    "socket_errors_count",
    "non_2xx_count",
];

/// A number with wrk's suffix.
const NUMBER: &str = r"([0-9.]+[a-zA-Z]*)";

pub(super) fn read(text: &str) -> Result<Metrics, OutputError> {
    if let Some(line) = text.lines().find(|line| line.starts_with("unable to connect")) {
        return Err(OutputError::Failed { program: "wrk", message: line.trim().into() });
    }
    if !text.contains("Thread Stats") {
        return Err(form("wrk", "there is no `Thread Stats`", text));
    }
    let mut metrics = Metrics::new();
    let latency = [
        ("latency_mean_us", Unit::Micros),
        ("latency_stdev_us", Unit::Micros),
        ("latency_max_us", Unit::Micros),
    ];
    take(text, &format!(r"Latency\s+{NUMBER}\s+{NUMBER}\s+{NUMBER}"), &latency, &mut metrics)?;
    take(text, &format!(r"Req/Sec\s+{NUMBER}"), &[("thread_mean_rps", Unit::Count)], &mut metrics)?;
    let totals = [
        ("requests_total", Unit::Count),
        ("duration_s", Unit::Seconds),
        ("received_bytes", Unit::Bytes),
    ];
    let pattern = format!(r"{NUMBER} requests in {NUMBER}, {NUMBER} read");
    take(text, &pattern, &totals, &mut metrics)?;
    take(text, &format!(r"Requests/sec:\s+{NUMBER}"), &[("mean_rps", Unit::Count)], &mut metrics)?;
    let transfer = [("transfer_bytes_per_s", Unit::Bytes)];
    take(text, &format!(r"Transfer/sec:\s+{NUMBER}"), &transfer, &mut metrics)?;
    for percent in ["50", "75", "90", "99"] {
        let pattern = format!(r"(?m)^\s+{percent}%\s+{NUMBER}");
        let name = format!("latency_p{percent}_us");
        if let Some(found) = captures(text, &pattern).first() {
            metrics.insert(name.clone(), quantity(found, Unit::Micros, &name)?);
        }
    }
    let errors =
        captures(text, r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)");
    let errors: f64 = errors.iter().filter_map(|count| count.parse::<f64>().ok()).sum();
    metrics.insert("socket_errors_count".into(), errors.max(0.0));
    let refused = captures(text, r"Non-2xx or 3xx responses: (\d+)");
    let refused = refused.first().and_then(|count| count.parse().ok()).unwrap_or(0.0);
    metrics.insert("non_2xx_count".into(), refused);
    Ok(metrics)
}

#[derive(Clone, Copy)]
enum Unit {
    Count,
    Bytes,
    Micros,
    Seconds,
}

fn take(
    text: &str,
    pattern: &str,
    names: &[(&str, Unit)],
    metrics: &mut Metrics,
) -> Result<(), OutputError> {
    let found = captures(text, pattern);
    if found.len() != names.len() {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        return Err(form("wrk", format!("no line with {}", names.join(", ")), text));
    }
    for ((name, unit), value) in names.iter().zip(found) {
        metrics.insert((*name).into(), quantity(value, *unit, name)?);
    }
    Ok(())
}

/// The groups of the first match; none when there is no match.
fn captures<'t>(text: &'t str, pattern: &str) -> Vec<&'t str> {
    let Some(found) = Regex::new(pattern).ok().and_then(|regex| regex.captures(text)) else {
        return Vec::new();
    };
    found.iter().skip(1).flatten().map(|group| group.as_str()).collect()
}

fn quantity(text: &str, unit: Unit, metric: &str) -> Result<f64, OutputError> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(split);
    let factor = match (unit, suffix) {
        (Unit::Count | Unit::Bytes, "" | "B") | (Unit::Seconds, "s") | (Unit::Micros, "us") => 1.0,
        (Unit::Count, "k") | (Unit::Micros, "ms") => 1e3,
        (Unit::Count, "M") | (Unit::Micros, "s") => 1e6,
        (Unit::Count, "G") => 1e9,
        // `format_binary`: powers of 1024 under the short names.
        (Unit::Bytes, "KB") => 1024.0,
        (Unit::Bytes, "MB") => 1_048_576.0,
        (Unit::Bytes, "GB") => 1_073_741_824.0,
        (Unit::Micros, "m") => 60e6,
        (Unit::Micros, "h") => 3600e6,
        (Unit::Seconds, "us") => 1e-6,
        (Unit::Seconds, "ms") => 1e-3,
        (Unit::Seconds, "m") => 60.0,
        (Unit::Seconds, "h") => 3600.0,
        _ => f64::NAN,
    };
    let value = digits.parse::<f64>().unwrap_or(f64::NAN) * factor;
    if value.is_finite() {
        return Ok(value);
    }
    Err(OutputError::Metric { metric: metric.into(), why: format!("`{text}` is not a quantity") })
}
