//! `rxpath serve http`: the options, and the result for people.

use std::collections::BTreeMap;

use rxpath_core::{Bytes, CpuList, Nanos};
use rxpath_load::http::serve::Serve;
use rxpath_load::http::serve::options::ServeOptions;
use rxpath_load::http::serve::result::{BusyPollResult, Interval, ServeResult, ThreadResult};
use rxpath_load::workload::WorkloadHandle;

use crate::cmd::conduct::{ConductArgs, EndArgs, Shown, block, conduct};
use crate::cmd::values::{cpu_time, quantiles, value_name};
use crate::cmd::workload_text::placed;
use crate::exit::Outcome;
use crate::output::known;
use crate::output::rates::{CounterDelta, RateColumn, Rows, grouped, rows};

/// `rxpath serve http …`
#[derive(Debug, clap::Args)]
pub struct ServeHttp {
    #[command(flatten)]
    options: ServeOptions,
    #[command(flatten)]
    end: EndArgs,
    #[command(flatten)]
    conduct: ConductArgs,
}

impl ServeHttp {
    /// Serves to the end.
    pub fn run(self) -> Outcome {
        conduct(Serve::open(self.options), &self.conduct, self.conduct.ends(self.end))
    }
}

impl Shown for Serve {
    fn settings_text(&self) -> String {
        let s = WorkloadHandle::settings(self);
        let wait = match s.timeout_ms {
            0 => "never sleeps".to_owned(),
            ms => format!("sleeps up to {ms} ms"),
        };
        let engine = match s.trigger {
            Some(trigger) => format!("epoll, {} triggered", value_name(&trigger)),
            None => "io_uring, multishot accept and receive".into(),
        };
        let idle = match s.idle_timeout_ns {
            0 => "idle connections stay open".into(),
            ns => format!("closed after {} idle", Nanos(ns)),
        };
        let (head, body) = (Bytes(s.max_request_bytes as u64), Bytes(s.max_body_bytes));
        let [most, limit] = [s.max_connections_count, s.descriptors_limit_count].map(grouped);
        let mut rows = vec![
            ("threads", placed(&s.threads)),
            ("engine", format!("{engine}, up to {} events a wait, {wait}", s.events)),
            ("listeners", value_name(&s.sockets)),
            ("reply", format!("{} bytes of TCP payload, body {}", s.reply_bytes, s.body_bytes)),
            ("requests", format!("head up to {head}, body up to {body}")),
            ("connections", format!("up to {most}, RLIMIT_NOFILE is {limit}; {idle}")),
        ];
        if let Some(poll) = &s.busy_poll {
            let waits = known(&poll.waits, |waits| format!("{} us", waits.poll_us));
            let text = format!(
                "sockets {} us, prefer {}; waits {waits}",
                poll.socket.poll_us, poll.socket.prefer
            );
            rows.push(("busy poll", text));
        }
        rows.extend((s.work_ns > 0).then(|| ("work", format!("{} ns a request", s.work_ns))));
        block(&format!("serve http {}", s.addr), &rows)
    }

    fn result_text(&self, r: &ServeResult) -> String {
        let [read, written] = [r.received_bytes, r.sent_bytes].map(grouped);
        let of = &r.connections;
        let [accepted, most, open] =
            [of.accepted_total, of.open_max_count, of.open_count].map(grouped);
        let closed = counts(&of.closed_total);
        let mut rows = vec![
            ("requests", format!("{} in {:.3} s", grouped(r.requests_total), r.duration_s)),
            ("rate", format!("{} requests/s", grouped(r.achieved_rps.round() as u64))),
            ("replies", counts(&r.replies_total)),
            ("bytes", format!("{read} read, {written} written")),
            (
                "connections",
                format!(
                    "{accepted} accepted, at most {most} at a time, {open} open; closed: {closed}"
                ),
            ),
        ];
        let times = r.read_to_reply_us.as_ref();
        rows.extend(times.map(|it| ("read to reply", quantiles(it.p50, it.p99, it.max))));
        rows.extend(r.threads.iter().map(|thread| ("waits", waits(thread))));
        // Without requests, nothing can be divided by their number.
        let per_request = |count: f64, unit: &str| match r.requests_total {
            0 => String::new(),
            requests => format!(" ({:.2}{unit} a request)", count / requests as f64),
        };
        let calls = per_request(r.calls_total as f64, "");
        rows.push(("system calls", format!("{}{calls}", grouped(r.calls_total))));
        let cpu = per_request((r.cpu_user_s + r.cpu_system_s) * 1e6, " us");
        rows.push(("CPU time", cpu_time(r.cpu_user_s, r.cpu_system_s) + &cpu));
        rows.extend(r.busy_poll.as_ref().map(|poll| ("busy poll", polled(poll))));
        rows.push(("limit", r.limit.to_string()));
        block("result", &rows)
    }

    fn set_rate(result: &mut ServeResult, rps: f64) {
        result.achieved_rps = rps;
    }

    fn rows(&self, split: bool) -> Rows<Interval> {
        rows::<Interval>("", columns, split, |it| it.parts("thread", |c| &c.thread_requests_total))
    }
}

fn columns(between: &CounterDelta<'_, Interval>) -> Vec<RateColumn> {
    vec![
        ("requests/s", 11, between.rate(|c| c.requests_total)),
        ("MiB/s in", 9, between.mib_per_s(|c| c.received_bytes)),
        ("MiB/s out", 9, between.mib_per_s(|c| c.sent_bytes)),
        ("accepted/s", 10, between.rate(|c| c.accepted_total)),
        ("open", 8, grouped(between.now.open_count)),
        ("refused/s", 9, between.rate(|c| c.refused_total)),
    ]
}

/// `200: 5, 400: 1`, or `none`.
fn counts(counts: &BTreeMap<String, u64>) -> String {
    if counts.is_empty() {
        return "none".into();
    }
    let parts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name}: {}", grouped(*count))).collect();
    parts.join(", ")
}

fn waits(thread: &ThreadResult) -> String {
    let events = thread.events_per_wait.as_ref().map_or("no events".into(), |events| {
        format!("{:.1} events each (p99 {}, max {})", events.mean, events.p99, events.max)
    });
    let asleep = thread.blocked_s.map_or(String::new(), |s| format!(", asleep {s:.3} s"));
    let cpus = CpuList(thread.usage.seen_cpus.clone());
    let [all, empty] = [thread.waits_total, thread.empty_waits_total].map(grouped);
    format!("CPU {cpus}: {all} ({empty} empty), {events}{asleep}")
}

fn polled(poll: &BusyPollResult) -> String {
    let packets = known(&poll.busy_poll_rx_packets, |packets| {
        format!("{} packets polled", grouped(*packets))
    });
    format!(
        "{packets}; {} of {} connections came through NAPI",
        poll.with_napi_count, poll.looked_at_count
    )
}
