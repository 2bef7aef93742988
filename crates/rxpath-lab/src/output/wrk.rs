//! The summary that wrk prints.
//!
//! **Source** `print_stats` and `format_time_us` of wrk 4.1 (src/wrk.c, src/units.c).

use regex_lite::Regex;

use super::{Metrics, bad, form};

/// What each summary has: a line with numbers for each N, and their metrics.
const LINES: &[(&str, &[&str])] = &[
    (r"Latency\s+N\s+N\s+N", &["latency_mean_us", "latency_stdev_us", "latency_max_us"]),
    (r"Req/Sec\s+N", &["thread_mean_rps"]),
    (r"N requests in N, N read", &["requests_total", "duration_s", "received_bytes"]),
    (r"Requests/sec:\s+N", &["mean_rps"]),
    (r"Transfer/sec:\s+N", &["transfer_bytes_per_s"]),
];

/// Percentiles, which wrk prints if it is asked to.
const PERCENTILES: &[(&str, &str)] = &[
    ("50%", "latency_p50_us"),
    ("75%", "latency_p75_us"),
    ("90%", "latency_p90_us"),
    ("99%", "latency_p99_us"),
];

/// Counts, each the sum of a line that wrk prints if it is not zero.
const COUNTS: &[(&str, &str)] = &[
    (
        r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)",
        "socket_errors_count",
    ),
    (r"Non-2xx or 3xx responses: (\d+)", "non_2xx_count"),
];

/// A number with wrk's suffix.
const NUMBER: &str = r"([0-9.]+[a-zA-Z]*)";

/// Metrics that a summary can hold.
pub(super) fn names() -> Vec<String> {
    let of_lines = LINES.iter().flat_map(|(_, names)| names.iter());
    let others = PERCENTILES.iter().chain(COUNTS).map(|(_, name)| name);
    of_lines.chain(others).map(|name| (*name).to_owned()).collect()
}

pub(super) fn read(text: &str) -> Result<Metrics, String> {
    if let Some(line) = text.lines().find(|line| line.starts_with("unable to connect")) {
        return Err(format!("wrk failed: {}", line.trim()));
    }
    if !text.contains("Thread Stats") {
        return Err(form("wrk", "there is no `Thread Stats`", text));
    }
    let mut metrics = Metrics::new();
    for (pattern, names) in LINES {
        let found = captures(text, &pattern.replace('N', NUMBER));
        if found.len() != names.len() {
            return Err(form("wrk", format!("no line with {}", names.join(", ")), text));
        }
        for (name, value) in names.iter().zip(found) {
            metrics.insert((*name).into(), quantity(value, name)?);
        }
    }
    for (percent, name) in PERCENTILES {
        let found = captures(text, &format!(r"(?m)^\s+{percent}\s+{NUMBER}"));
        if let Some(value) = found.first() {
            metrics.insert((*name).into(), quantity(value, name)?);
        }
    }
    for (pattern, name) in COUNTS {
        let counts = captures(text, pattern);
        let all: f64 = counts.iter().filter_map(|count| count.parse::<f64>().ok()).sum();
        metrics.insert((*name).into(), all.max(0.0));
    }
    Ok(metrics)
}

/// The groups of the first match; none when there is no match.
fn captures<'t>(text: &'t str, pattern: &str) -> Vec<&'t str> {
    let Some(found) = Regex::new(pattern).ok().and_then(|regex| regex.captures(text)) else {
        return Vec::new();
    };
    found.iter().skip(1).flatten().map(|group| group.as_str()).collect()
}

/// A number in the unit of its metric.
fn quantity(text: &str, metric: &str) -> Result<f64, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(split);
    let second = if metric.ends_with("_us") { 1e6 } else { 1.0 };
    let factor = match suffix {
        "" | "B" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        // `format_binary`: powers of 1024 under the short names.
        "KB" => 1024.0,
        "MB" => 1_048_576.0,
        "GB" => 1_073_741_824.0,
        "us" => second / 1e6,
        "ms" => second / 1e3,
        "s" => second,
        "m" => second * 60.0,
        "h" => second * 3600.0,
        _ => f64::NAN,
    };
    let value = digits.parse::<f64>().unwrap_or(f64::NAN) * factor;
    if value.is_finite() {
        return Ok(value);
    }
    Err(bad(metric, format!("`{text}` is not a quantity")))
}
