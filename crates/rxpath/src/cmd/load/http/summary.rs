//! The summary of an HTTP load in wrk's well-known form, and what wrk leaves out.

use rxpath_load::http::load::options::{LoadSettings, Loop};
use rxpath_load::http::load::result::{Interval, LoadResult, Spread};
use rxpath_load::quantiles::Quantiles;

use crate::cmd::conduct::block;
use crate::cmd::values::{cpu_time, quantiles};
use crate::output::rates::{CounterDelta, RateColumn, Rows, grouped, rows};

/// A number in three digits with the largest unit that fits, as wrk prints it.
fn scaled(value: f64, units: &[&str], base: f64) -> String {
    let mut value = value;
    let last = units.len().saturating_sub(1);
    for (at, unit) in units.iter().enumerate() {
        if value < base || at == last {
            return format!("{value:.2}{unit}");
        }
        value /= base;
    }
    String::new()
}

/// `612.40us`, `1.25ms`, `2.00s`.
fn time(us: f64) -> String {
    if us >= 60e6 { format!("{:.2}m", us / 60e6) } else { scaled(us, &["us", "ms", "s"], 1000.0) }
}

/// `14.52k`.
fn count(value: f64) -> String {
    scaled(value, &["", "k", "M", "G"], 1000.0)
}

/// `3.20MB`: binary, as in wrk.
fn bytes(value: f64) -> String {
    scaled(value, &["B", "KB", "MB", "GB", "TB"], 1024.0)
}

fn spread(name: &str, spread: &Spread, show: fn(f64) -> String) -> String {
    format!(
        "    {name:<10}{:>9} {:>9} {:>9} {:>8.2}%\n",
        show(spread.mean),
        show(spread.stdev),
        show(spread.max),
        100.0 * spread.within_stdev_ratio,
    )
}

/// The whole summary.
pub fn summary(r: &LoadResult, s: &LoadSettings) -> String {
    let mut text = format!(
        "Running {:.2}s test @ {}\n  {} threads and {} connections\n",
        r.duration_s, s.url, s.threads.count, s.connections_count
    );
    text += "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n";
    text += &spread("Latency", &r.summary.response_time_us, time);
    text += &spread("Req/Sec", &r.summary.thread_rps, count);
    let read = bytes(r.received_bytes as f64);
    text += &format!("  {} requests in {:.2}s, {read} read\n", r.requests_total, r.duration_s);
    text += &errors(r);
    text += &format!("Requests/sec: {:>10.2}\n", r.achieved_rps);
    text += &format!("Transfer/sec: {:>10}\n\n", bytes(r.received_bps / 8.0));
    text += &times(r, s);
    text + "\n" + &block("more", &rest(r))
}

/// wrk's two lines about errors, where there are any.
fn errors(r: &LoadResult) -> String {
    let of = |kind: &str| r.errors_total.get(kind).copied().unwrap_or(0);
    let mut text = String::new();
    let sockets = ["connect", "read", "write", "timeout"];
    let (malformed, status) = (of("malformed"), of("status"));
    if sockets.iter().any(|kind| of(kind) > 0) || malformed > 0 {
        let each = sockets.map(|kind| format!("{kind} {}", of(kind))).join(", ");
        text += &format!("  Socket errors: {each}\n");
    }
    if malformed > 0 {
        text += &format!("  Malformed replies: {malformed}\n");
    }
    if status > 0 {
        text += &format!("  Replies with status 400 and above: {status}\n");
    }
    text
}

/// Percentiles with their two ends.
fn times(r: &LoadResult, s: &LoadSettings) -> String {
    let head = ["mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
    let mut text = format!("{:<16}", "time");
    text += &head.map(|name| format!("{name:>10}")).concat();
    text.push('\n');
    let mut row = |name: &str, q: &Option<Quantiles>| {
        let Some(q) = q else { return };
        let values = [q.mean, q.p50, q.p90, q.p99, q.p999, q.p9999, q.max];
        text += &format!("{name:<16}{}\n", values.map(|us| format!("{:>10}", time(us))).concat());
    };
    row("service", &r.service_time_us);
    if s.r#loop == Loop::Open || !s.keepalive {
        row("response", &r.response_time_us);
    }
    row("connect", &r.connect_time_us);
    text += "  service: request handed to the kernel, to the last byte of its reply\n";
    if s.r#loop == Loop::Open {
        text += "  response: instant at which the schedule wanted it sent, to the last byte of its reply\n";
    } else if !s.keepalive {
        text += "  response: its connection begun, to the last byte of its reply\n";
    } else {
        text += "  Latency above: the same (a closed loop has no schedule to be late for)\n";
    }
    text + "  connect: connection begun, to its being usable\n"
}

fn rest(r: &LoadResult) -> Vec<(&'static str, String)> {
    let per_request = |n: f64| n / r.requests_total.max(1) as f64;
    let [sent, answered] = [r.sent_requests_total, r.requests_total].map(grouped);
    let [lost, in_flight] = [r.lost_requests_total, r.in_flight_requests_total].map(grouped);
    let text = format!(
        "{sent} requests: {answered} answered; in no percentile: {lost} lost, {in_flight} in flight at the end"
    );
    let mut rows = vec![("sent", text)];
    if let Some(target) = r.target_rps {
        let [all, unsent] = [r.target_requests_total, r.unsent_requests_total].map(grouped);
        let target = grouped(target.round() as u64);
        rows.push(("schedule", format!("{all} requests at {target}/s, {unsent} never sent")));
    }
    let late = r.lateness_us.as_ref();
    rows.extend(late.map(|it| ("lateness", quantiles(it.p50, it.p99, it.max))));
    rows.push(("opened", format!("{} connections", grouped(r.connections_opened_total))));
    let each_us = per_request((r.cpu_user_s + r.cpu_system_s) * 1e6);
    let cpu = cpu_time(r.cpu_user_s, r.cpu_system_s);
    rows.push(("CPU time", format!("{cpu}: {each_us:.2} us a request")));
    let (calls, each) = (r.system_calls_total, per_request(r.system_calls_total as f64));
    rows.push(("system calls", format!("{}, {each:.2} a request", grouped(calls))));
    rows.push(("limit", r.limit.to_string()));
    rows
}

/// The line per second; with `split` each thread has a line of its own, too.
pub fn load_rows(split: bool) -> Rows<Interval> {
    rows::<Interval>("", columns, split, |it| it.parts("thread", |c| &c.thread_requests_total))
}

fn columns(between: &CounterDelta<'_, Interval>) -> Vec<RateColumn> {
    let quantile = |of: fn(&Quantiles) -> f64| {
        between.now.response_time_us.as_ref().map_or_else(|| "-".into(), |q| time(of(q)))
    };
    vec![
        ("requests/s", 13, between.rate(|c| c.requests_total)),
        ("MiB/s", 9, between.mib_per_s(|c| c.received_bytes)),
        ("p50", 10, quantile(|q| q.p50)),
        ("p99", 10, quantile(|q| q.p99)),
        ("errors", 8, between.delta(|c| c.errors_total).to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_like_wrks() {
        assert_eq!(
            (time(612.4), time(1250.0), time(2e6)),
            ("612.40us".into(), "1.25ms".into(), "2.00s".into())
        );
        assert_eq!(time(90e6), "1.50m");
        assert_eq!((count(14_520.0), count(7.0)), ("14.52k".into(), "7.00".into()));
        assert_eq!((bytes(512.0), bytes(3_355_443.2)), ("512.00B".into(), "3.20MB".into()));
    }

    #[test]
    fn a_row_is_the_difference_of_two_readings() {
        let mut row = load_rows(true);
        let start = rxpath_load::engine::clock::now_ns();
        let at = |s: u64, requests: u64| Interval {
            t_ns: start + s * 1_000_000_000,
            requests_total: requests,
            received_bytes: requests << 20,
            errors_total: requests / 100,
            thread_requests_total: vec![requests],
            response_time_us: Some(Quantiles { p50: 61.0, p99: 2500.0, ..Quantiles::default() }),
            ..Interval::default()
        };
        let first = row(&at(1, 1000)).unwrap();
        assert!(first.contains("requests/s"), "{first}");
        let second = row(&at(3, 5000)).unwrap();
        for wanted in [" 2,000 ", "2000.00", "61.00us", "2.50ms", "40\n", "thread 0:     2,000/s"] {
            assert!(second.contains(wanted), "{wanted}: {second}");
        }
        assert!(row(&at(3, 5000)).is_none());
    }
}
