//! Adding up what the threads saw.

use std::collections::BTreeMap;

use rxpath_core::number::grouped;
use rxpath_core::{Fact, Warning};
use rxpath_host::read::procfs::snmp;
use rxpath_host::{HostError, Root};

use crate::LoadError;
use crate::busy_poll;
use crate::http::serve::Serve;
use crate::http::serve::options::Engine;
use crate::http::serve::reply::Kind;
use crate::http::serve::result::{BusyPollResult, Connections, ServeResult};
use crate::http::serve::worker_state::Report;
use crate::limit::{BUSY_RATIO, Limit, Who, busy_text, uneven};
use crate::quantiles::{Quantiles, merged};
use crate::workload::Finished;

/// A thread that spends no more than this share of its time waiting has none left.
const SPARE_RATIO: f64 = 0.1;

pub(super) fn finish(serve: &mut Serve) -> Result<Finished<ServeResult>, LoadError> {
    let reports = serve.pool.join()?;
    let (duration_s, cpu) = (serve.pool.shared.span_s(), serve.pool.shared.cpu_time());
    let latency = merged(reports.iter().map(|report| &report.counts.latency));
    let requests: u64 = reports.iter().map(|report| report.thread.requests_total).sum();
    let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum();
    let mut result = ServeResult {
        duration_s,
        requests_total: requests,
        achieved_rps: if duration_s > 0.0 { requests as f64 / duration_s } else { 0.0 },
        replies_total: replies(&reports),
        received_bytes: sum(|report| report.counts.received_bytes),
        sent_bytes: sum(|report| report.counts.sent_bytes),
        read_to_reply_us: Quantiles::of(&latency),
        connections: connections(&reports),
        calls_total: sum(|report| report.counts.calls),
        cpu_user_s: cpu.user_ns as f64 / 1e9,
        cpu_system_s: cpu.system_ns as f64 / 1e9,
        busy_poll: serve.options.busy_poll.map(|_| busy_poll(serve, &reports)),
        limit: Limit::default(),
        threads: reports.iter().map(|report| report.thread.clone()).collect(),
    };
    result.limit = limit(serve, &reports, &result);
    let mut warnings = serve.warnings.clone();
    warnings.extend(notice(serve, &result));
    serve.open.extend(reports.into_iter().map(|report| report.connections));
    Ok(Finished { result, warnings, histograms: vec![("read_to_reply", latency)] }.with_samples())
}

fn replies(reports: &[Report]) -> BTreeMap<String, u64> {
    let mut replies = BTreeMap::new();
    for report in reports {
        let counted = Kind::ALL.iter().zip(report.counts.done).filter(|(_, count)| *count > 0);
        for (kind, count) in counted {
            *replies.entry(kind.status().to_string()).or_default() += count;
        }
    }
    replies
}

fn connections(reports: &[Report]) -> Connections {
    let mut all = Connections::default();
    let add = |to: &mut BTreeMap<String, u64>, from: &BTreeMap<String, u64>| {
        for (name, count) in from {
            *to.entry(name.clone()).or_default() += count;
        }
    };
    for report in reports {
        all.accepted_total += report.counts.accepted;
        all.open_max_count += report.counts.open_max;
        all.open_count += report.connections.count() as u64;
        add(&mut all.pauses_total, &report.counts.pauses);
        add(&mut all.accept_errors_total, &report.counts.accept_errors);
        for (reason, count) in report.counts.closed_by_reason() {
            *all.closed_total.entry(reason.to_owned()).or_default() += count;
        }
    }
    all
}

/// `TcpExt.BusyPollRxPackets` of this network namespace.
pub(super) fn busy_poll_rx_packets() -> Fact<u64> {
    match snmp::read_one(&Root::host(), snmp::NETSTAT, "TcpExt.BusyPollRxPackets") {
        Ok(packets) => Fact::ok(packets),
        Err(error @ HostError::Denied { .. }) => Fact::denied(error.to_string()),
        Err(error) => Fact::absent(error.to_string()),
    }
}

fn busy_poll(serve: &Serve, reports: &[Report]) -> BusyPollResult {
    let after = busy_poll_rx_packets();
    let polled = match (&serve.polled_before, after) {
        (Fact::Ok { value: before }, Fact::Ok { value: after }) => {
            Fact::ok(after.saturating_sub(*before))
        }
        (Fact::Ok { .. }, gap) => gap,
        (gap, _) => gap.clone(),
    };
    BusyPollResult {
        looked_at_count: reports.iter().map(|report| report.counts.napi.0).sum(),
        with_napi_count: reports.iter().map(|report| report.counts.napi.1).sum(),
        busy_poll_rx_packets: polled,
    }
}

/// Whether this side was the limit.
///
/// If a thread may sleep, high CPU time shows that it was the limit. A thread that never sleeps, or whose waits poll,
/// is always busy: there the time outside the waits decides.
fn limit(serve: &Serve, reports: &[Report], result: &ServeResult) -> Limit {
    if result.requests_total == 0 {
        return Limit::new(Who::NotHere, "no request arrived");
    }
    let busy = busy_text(&result.threads, result.duration_s);
    let descheduled: f64 = result.threads.iter().filter_map(|thread| thread.runqueue_s).sum();
    let share = descheduled / result.duration_s.max(1e-9) / result.threads.len().max(1) as f64;
    let lost = if share > 0.05 {
        format!(", {:.0} % of the time waiting for a CPU that another task used", 100.0 * share)
    } else {
        String::new()
    };
    let never_sleeps = serve.options.timeout_ms() == 0 || serve.options.busy_poll.is_some();
    if never_sleeps {
        let waiting = waiting_ratio(serve, reports, result.duration_s);
        let who = if waiting <= SPARE_RATIO { Who::Server } else { Who::NotHere };
        let evidence = format!(
            "{busy} (polling is always busy); {:.0} % of the time in waits{lost}",
            100.0 * waiting
        );
        return Limit::new(who, evidence);
    }
    let is_busy = result.threads.iter().any(|thread| {
        let awake_s = thread.usage.cpu_s() + thread.runqueue_s.unwrap_or(0.0);
        awake_s >= BUSY_RATIO * result.duration_s
    });
    let who = if is_busy { Who::Server } else { Who::NotHere };
    Limit::new(who, format!("{busy}{lost}"))
}

/// Share of the time between first request and last reply that the busiest thread waited for events.
fn waiting_ratio(serve: &Serve, reports: &[Report], duration_s: f64) -> f64 {
    let waited = |report: &Report| match serve.options.engine() {
        Engine::Epoll => report.counts.at_last.0,
        // The wait of io_uring does the sending: only the empty ones are idle.
        Engine::Uring => report.counts.at_last.1,
    };
    let least = reports
        .iter()
        .filter(|report| report.thread.requests_total > 0)
        .map(waited)
        .min()
        .unwrap_or(0);
    (least as f64 / 1e9 / duration_s.max(1e-9)).min(1.0)
}

fn notice(serve: &Serve, result: &ServeResult) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(exhausted(serve, result));
    warnings.extend(imbalance(result));
    warnings.extend(blind_polling(result));
    let errors: u64 = result.connections.accept_errors_total.values().sum();
    if errors > 0 {
        let names: Vec<&str> =
            result.connections.accept_errors_total.keys().map(String::as_str).collect();
        let text = format!("{} connections were lost during accept", grouped(errors));
        warnings.push(Warning::new("accept-errors", text).because(names.join(", ")));
    }
    warnings
}

fn exhausted(serve: &Serve, result: &ServeResult) -> Vec<Warning> {
    let open = grouped(result.connections.open_max_count);
    let one = |(why, times): (&String, &u64)| {
        let times = grouped(*times);
        if why == "max-connections" {
            let text = format!("{open} connections were open: accepting was delayed {times} times");
            Warning::new("connections-capped", text)
                .because(format!("--max-connections is {}", serve.settings.max_connections_count))
                .cure("raise it; until then clients wait in the listen backlog")
        } else {
            let text = format!(
                "{why} with {open} connections: accepting was delayed {times} times; \
                     open connections were still served"
            );
            Warning::new("descriptors-exhausted", text)
                .because(format!("RLIMIT_NOFILE is {}", serve.settings.descriptors_limit_count))
                .cure("raise the hard limit (ulimit -Hn), or use fewer connections")
        }
    };
    result.connections.pauses_total.iter().map(one).collect()
}

fn imbalance(result: &ServeResult) -> Option<Warning> {
    let counts: Vec<u64> = result.threads.iter().map(|thread| thread.requests_total).collect();
    let (most, least, mean) = uneven(&counts, result.requests_total)?;
    let [most, least, mean] = [most, least, mean.round() as u64].map(grouped);
    let text = format!("one thread answered {most} requests, another {least} (mean {mean})");
    Some(
        Warning::new("thread-imbalance", text)
        .because(
            "a shared listener gives a connection to any waiting thread, a SO_REUSEPORT group chooses by hash: \
             either may give one thread more",
        )
        .cure("use many more connections than threads, or try the other --sockets mode"),
    )
}

fn blind_polling(result: &ServeResult) -> Option<Warning> {
    let seen = result.busy_poll.as_ref()?;
    if seen.looked_at_count == 0 {
        return None;
    }
    if seen.with_napi_count == 0 {
        return Some(busy_poll::blind("connections"));
    }
    (seen.busy_poll_rx_packets == Fact::ok(0)).then(|| {
        Warning::new("busy-poll-idle", "busy polling had no effect")
            .because("TcpExt BusyPollRxPackets did not increase: no socket owner polled a packet")
            .cure("defer the device's interrupts: --prefer-busy-poll with napi_defer_hard_irqs")
    })
}
