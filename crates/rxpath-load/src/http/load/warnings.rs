//! Checks of a result: which side was the limit, and whether something other than the network stack was measured.

use rxpath_core::Warning;
use rxpath_core::number::counted;
use rxpath_host::Root;
use rxpath_host::read::kernel_config;

use crate::http::load::options::LoadSettings;
use crate::http::load::result::LoadResult;
use crate::http::load::target::PORTS_CURE;
use crate::limit::{Limit, Who, any_busy, busy_text};
use crate::ports;
use crate::schedule::{KEPT_RATIO, not_kept};
use crate::workload::listed;

/// Two times this close count as equal.
const NEAR_RATIO: f64 = 0.05;
/// If a thread waited for a CPU for this share of the time, the result measures the scheduler.
const WAITED_RATIO: f64 = 0.05;
/// Sends on an idle connection later than this are the client's fault.
const LATE_US: f64 = 1000.0;
/// Shortest delayed acknowledgement. **Source** `TCP_DELACK_MIN` (HZ/25), include/net/tcp.h.
const DELAYED_ACK_US: f64 = 40_000.0;

/// The kernel's tick.
pub(super) fn tick_hz() -> Option<u32> {
    kernel_config::read(&Root::host()).ok()?.hz()
}

fn is_near(value: f64, to: f64) -> bool {
    (value - to).abs() <= to * NEAR_RATIO
}

pub(super) fn limit(result: &LoadResult, settings: &LoadSettings) -> Limit {
    let busy = busy_text(&result.threads, result.duration_s);
    if result.requests_total == 0 {
        return Limit::new(Who::NotHere, format!("no reply came; {busy}"));
    }
    let connections = settings.connections_count;
    let Some(target_rps) = settings.target_rps else {
        if any_busy(&result.threads, result.duration_s) {
            let why =
                "on veth and loopback its system calls contain the server's receive path, too";
            return Limit::new(Who::Sender, format!("{busy} ({why})"));
        }
        let evidence = format!("{busy}; all {connections} connections waited for replies");
        return Limit::new(Who::NotHere, evidence);
    };
    let kept = kept(result);
    let percent = 100.0 * kept;
    if kept >= KEPT_RATIO {
        let evidence = format!("{percent:.2} % of {target_rps} requests/s answered");
        return Limit::new(Who::Schedule, evidence);
    }
    let late = result.lateness_us.as_ref().map_or(0.0, |late| late.p99);
    if late > LATE_US {
        let what = format!(
            "{percent:.2} % of the schedule kept; requests were sent up to {late:.0} us late (p99) on free connections, {busy}"
        );
        // Late sends alone do not say why: a thread that had CPU time left was held up by something else.
        return match no_cpu_time(result) {
            Some(why) => Limit::new(Who::Sender, format!("{what}: {why}")),
            None => Limit::new(Who::NotHere, format!("{what}: its threads had CPU time left")),
        };
    }
    let why = format!("all {connections} connections were busy; {busy}");
    Limit::new(Who::NotHere, format!("{percent:.2} % of the schedule kept: {why}"))
}

/// The share of the schedule that was answered.
fn kept(result: &LoadResult) -> f64 {
    result.requests_total as f64 / result.target_requests_total.max(1) as f64
}

/// Why the client's threads could not do more, if they could not.
fn no_cpu_time(result: &LoadResult) -> Option<String> {
    if any_busy(&result.threads, result.duration_s) {
        return Some("its threads had no CPU time left".into());
    }
    let waited = most_waited(result);
    (waited >= WAITED_RATIO)
        .then(|| format!("a thread waited for its CPU {:.0} % of the time", 100.0 * waited))
}

/// The largest share of the time that a thread was runnable but waited for a CPU.
fn most_waited(result: &LoadResult) -> f64 {
    let ratio =
        |wait_s: f64| if result.duration_s > 0.0 { wait_s / result.duration_s } else { 0.0 };
    result.threads.iter().filter_map(|t| t.runnable_wait_s).map(ratio).fold(0.0, f64::max)
}

/// What to know before trusting the result.
pub(super) fn notice(result: &LoadResult, settings: &LoadSettings) -> Vec<Warning> {
    [
        nothing(result),
        gave_up(result),
        own_limit(result, settings),
        unkept(result, settings),
        tick(result, settings),
        delayed_ack(result),
        waited(result),
        errors(result),
        ports_exhausted(result),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn nothing(result: &LoadResult) -> Option<Warning> {
    (result.requests_total == 0).then(|| {
        Warning::new("no-replies", "no complete reply arrived: there is nothing to measure")
    })
}

fn gave_up(result: &LoadResult) -> Option<Warning> {
    result.gave_up.then(|| {
        Warning::new("gave-up", "every request failed: the remaining requests were not sent")
            .because("without --duration, a run ends only when --requests have been answered or lost")
            .cure("start the server, raise --timeout if the server is slow, or set --duration to keep trying for that time")
    })
}

fn own_limit(result: &LoadResult, settings: &LoadSettings) -> Option<Warning> {
    (result.limit.who == Who::Sender).then(|| {
        let text = format!("the load generator itself was the limit: {}", result.limit.evidence);
        Warning::new("client-limit", text)
            .because("its result is a lower bound of what the server can do")
            .cure(format!(
                "give it more threads and CPUs of their own (-t {} --cpu LIST), or a second host",
                2 * settings.threads.count
            ))
    })
}

fn unkept(result: &LoadResult, settings: &LoadSettings) -> Option<Warning> {
    let target_rps = settings.target_rps?;
    let (did, target, unsent) =
        (result.achieved_rps, target_rps as f64, result.unsent_requests_total);
    (kept(result) < KEPT_RATIO).then(|| not_kept(did, target, "requests/s were answered", unsent))
}

fn tick(result: &LoadResult, settings: &LoadSettings) -> Option<Warning> {
    let (hz, times) = (settings.tick_hz?, result.service_time_us.as_ref()?);
    let tick_us = 1e6 / f64::from(hz.max(1));
    is_near(times.p50, tick_us).then(|| {
        let text = format!("the median service time of {:.0} us equals one scheduler tick ({tick_us:.0} us at HZ={hz})", times.p50);
        Warning::new("tick-artefact", text)
            .because("a thread kept the CPU until the tick: this measures the scheduler, not the network stack")
            .cure("give client and server separate CPUs")
    })
}

fn delayed_ack(result: &LoadResult) -> Option<Warning> {
    let times = result.service_time_us.as_ref()?;
    is_near(times.p50, DELAYED_ACK_US).then(|| {
        let text = format!("the median service time of {:.1} ms is typical of a delayed acknowledgement", times.p50 / 1000.0);
        Warning::new("delayed-ack", text)
            .because("one side sends several small writes without TCP_NODELAY, and waits for the peer's acknowledgement")
            .cure("make the server write each reply in one call, or set TCP_NODELAY")
    })
}

fn waited(result: &LoadResult) -> Option<Warning> {
    let most = most_waited(result);
    (most >= WAITED_RATIO).then(|| {
        let text = format!(
            "a load thread was runnable but waited for a CPU {:.0} % of the time",
            100.0 * most
        );
        Warning::new("runnable-wait", text)
            .because(
                "another task ran on its CPU: the times include scheduling delay, not only the network",
            )
            .cure("pin it to an otherwise idle CPU (--cpu), not one of the server's")
    })
}

fn errors(result: &LoadResult) -> Option<Warning> {
    let kinds = listed(&result.errors_total);
    let causes = listed(&result.error_causes_total);
    (!kinds.is_empty()).then(|| {
        let warning = Warning::new("errors", format!("errors: {kinds}"));
        if causes.is_empty() { warning } else { warning.because(causes) }
    })
}

fn ports_exhausted(result: &LoadResult) -> Option<Warning> {
    let count = result.error_causes_total.get("connect EADDRNOTAVAIL")?;
    let text =
        format!("{} found no free local port (EADDRNOTAVAIL)", counted(*count, "connection"));
    Some(Warning::new("ports-exhausted", text).because(ports::why()).cure(PORTS_CURE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::load::result::ThreadResult;
    use crate::quantiles::Quantiles;
    use crate::udp::result::Lateness;
    use crate::usage::ThreadUsage;

    fn settings(target_rps: Option<u64>) -> LoadSettings {
        serde_json::from_value(serde_json::json!({
            "url": "http://h/", "to": "127.0.0.1:80", "resolved": [], "source": null,
            "connections_count": 10, "threads_count": 1, "cpus": [], "nice": null, "loop": "closed",
            "target_rps": target_rps, "pacing": null, "pipeline": 1, "keepalive": true, "request": "",
            "request_bytes": 44, "timeout_s": 2.0, "duration_s": null, "requests": null, "engine": "epoll",
            "descriptors_limit": 1024, "tick_hz": 250,
        }))
        .unwrap()
    }

    fn result(p50_us: f64, cpu_s: f64, wait_s: f64) -> LoadResult {
        LoadResult {
            duration_s: 10.0,
            target_requests_total: 1000,
            requests_total: 1000,
            service_time_us: Some(Quantiles { p50: p50_us, ..Quantiles::default() }),
            threads: vec![ThreadResult {
                usage: ThreadUsage { cpu_system_s: cpu_s, ..ThreadUsage::default() },
                runnable_wait_s: Some(wait_s),
                ..ThreadResult::default()
            }],
            ..LoadResult::default()
        }
    }

    fn codes(mut result: LoadResult, settings: &LoadSettings) -> Vec<String> {
        result.limit = limit(&result, settings);
        notice(&result, settings).into_iter().map(|warning| warning.code).collect()
    }

    #[test]
    fn the_tick_and_the_scheduler_are_recognised() {
        let closed = settings(None);
        assert_eq!(codes(result(4010.0, 1.0, 0.0), &closed), ["tick-artefact"]);
        assert_eq!(codes(result(3700.0, 1.0, 0.0), &closed), [""; 0]);
        assert_eq!(codes(result(41_000.0, 1.0, 0.0), &closed), ["delayed-ack"]);
        assert_eq!(codes(result(100.0, 1.0, 2.0), &closed), ["runnable-wait"]);
        assert_eq!(codes(result(100.0, 9.9, 0.0), &closed), ["client-limit"]);
        let unknown = LoadSettings { tick_hz: None, ..closed };
        assert_eq!(codes(result(4000.0, 1.0, 0.0), &unknown), [""; 0]);
    }

    #[test]
    fn a_schedule_is_kept_or_somebody_is_named() {
        let open = settings(Some(100));
        assert_eq!(limit(&result(10.0, 10.0, 0.0), &open).who, Who::Schedule);
        let behind = |cpu_s, wait_s, late_us| LoadResult {
            requests_total: 900,
            lateness_us: Some(Lateness { p50: 0.0, p99: late_us, max: 9000.0 }),
            ..result(10.0, cpu_s, wait_s)
        };
        assert_eq!(limit(&behind(1.0, 0.0, 100.0), &open).who, Who::NotHere);
        let told = unkept(&behind(1.0, 0.0, 100.0), &open).unwrap().to_string();
        assert!(told.contains("0 of 100 requests/s were answered; 0 were due"), "{told}");
        assert_eq!(codes(behind(1.0, 0.0, 100.0), &open), ["schedule-not-kept"]);
        assert_eq!(limit(&behind(9.9, 0.0, 5000.0), &open).who, Who::Sender);
        let busy = codes(behind(9.9, 0.0, 5000.0), &open);
        assert_eq!(busy, ["client-limit", "schedule-not-kept"]);
        let waiting = codes(behind(1.0, 2.0, 5000.0), &open);
        assert_eq!(waiting, ["client-limit", "schedule-not-kept", "runnable-wait"]);
    }

    #[test]
    fn a_client_with_cpu_time_left_is_not_blamed_for_late_sends() {
        let idle = LoadResult {
            requests_total: 900,
            lateness_us: Some(Lateness { p50: 0.0, p99: 5000.0, max: 9000.0 }),
            ..result(10.0, 0.1, 0.0)
        };
        let open = settings(Some(100));
        let found = limit(&idle, &open);
        assert_eq!(found.who, Who::NotHere, "{found}");
        assert!(found.evidence.ends_with("1 % busy: its threads had CPU time left"), "{found}");
        assert_eq!(codes(idle, &open), ["schedule-not-kept"]);
    }

    #[test]
    fn exhausted_ports_are_told_with_the_range() {
        let mut bad = result(10.0, 1.0, 0.0);
        bad.errors_total.insert("connect".into(), 3);
        bad.error_causes_total.insert("connect EADDRNOTAVAIL".into(), 3);
        let told = notice(&bad, &settings(None));
        assert_eq!(told.len(), 2);
        assert!(told[1].to_string().contains("ip_local_port_range is "), "{}", told[1]);
        assert!(told[0].to_string().contains("3 connect"), "{}", told[0]);
    }
}
