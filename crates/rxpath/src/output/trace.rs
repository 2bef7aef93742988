//! The tables of `rxpath trace`.

use rxpath_bpf::devices::DevicePolls;
use rxpath_bpf::polls::timeline::{Event, EventKind};
use rxpath_bpf::trace::{CpuTrace, TracePart, TraceReading};
use rxpath_core::measured::{IrqLine, NapiPolls, StageTimes};
use rxpath_core::number::{self, grouped};
use rxpath_core::{Bytes, CpuList, Log2, Nanos};

use super::steal::cost;
use super::table::Grid;

/// Everything but the timeline.
pub fn text(traced: &TraceReading, top: usize) -> String {
    let seconds = traced.duration_s;
    let mut out = format!(
        "window {seconds:.3} s; quantiles are upper bucket bounds: powers of two, for latencies sixteenths of them\n\n"
    );
    out += &cpus(&traced.cpus, seconds);
    out += &devices(&traced.devices, top);
    out += &napis(&traced.napis, top);
    out += &irqs(&traced.irqs, seconds, top);
    let part = |part, name: &str, shown: &dyn Fn() -> String| {
        if traced.left_out.contains(&part) {
            format!("\n{name}: not traced (--without)\n")
        } else {
            shown()
        }
    };
    out += &part(TracePart::Drops, "drops", &|| drops(traced, top));
    out += &part(TracePart::Stages, "stages", &|| stages(traced));
    out += &part(TracePart::Sockets, WAITING, &|| sockets(traced, top));
    out + "\n" + &cost(&traced.probe_cost)
}

const WAITING: &str = "sockets with waiting data";

/// A titled table of the first rows, with the number of the others.
fn section<T, R: IntoIterator<Item = String>>(
    name: &str,
    rows: &[T],
    top: usize,
    mut table: Grid,
    row: impl Fn(&T) -> R,
) -> String {
    if rows.is_empty() {
        return format!("\n{name}: none\n");
    }
    rows.iter().take(top).for_each(|one| table.row(row(one)));
    let more = rows.len().saturating_sub(top);
    let rest = if more > 0 { format!("{more} more (--top, --json)\n") } else { String::new() };
    format!("\n{name}\n{}{rest}", table.shown())
}

/// The upper end of the bucket in which a quantile lies.
fn upper(histogram: &Log2, q: f64) -> Option<u64> {
    histogram.quantile(q).map(|(_, high)| high)
}

fn time(histogram: &Log2, q: f64) -> String {
    time_up_to(histogram, q, u64::MAX)
}

/// The upper end of a bucket lies after the longest time seen; no quantile may.
fn time_up_to(histogram: &Log2, q: f64, longest_ns: u64) -> String {
    upper(histogram, q).map_or_else(|| "-".into(), |ns| Nanos(ns.min(longest_ns)).to_string())
}

fn packets(histogram: &Log2) -> String {
    match (upper(histogram, 0.5), upper(histogram, 0.99)) {
        (Some(middle), Some(high)) => format!("{middle} / {high}"),
        _ => "-".into(),
    }
}

fn percent(part: u64, whole: f64) -> String {
    if whole > 0.0 { number::percent(part as f64 / whole, 1) } else { "-".into() }
}

fn cpus(cpus: &[CpuTrace], seconds: f64) -> String {
    let head = "CPU | dev irqs | other irqs | irq time | NET_RX runs | NET_RX time | run p50 | run max | polls | \
                packets | per poll p50/p99 | budget used up | squeezed | ksoftirqd";
    let mut table = Grid::new(1, head.split(" | "));
    for cpu in cpus {
        let polls = &cpu.polls;
        let (runs, ns) = polls.net_rx();
        table.row([
            polls.cpu.to_string(),
            grouped(polls.device_interrupts_count),
            grouped(polls.other_interrupts_count),
            percent(polls.hardirq_ns, seconds * 1e9),
            grouped(runs),
            percent(ns, seconds * 1e9),
            time_up_to(&polls.net_rx_run_ns, 0.5, polls.longest_net_rx_ns),
            Nanos(polls.longest_net_rx_ns).to_string(),
            grouped(polls.polls_count),
            grouped(polls.packets),
            packets(&polls.packets_per_poll),
            grouped(polls.exhausted_count),
            cpu.time_squeeze_count.map_or_else(|| "?".into(), grouped),
            percent(polls.ksoftirqd_ns, ns as f64),
        ]);
    }
    table.shown()
}

/// The columns that tables of polls have in common.
const POLLED: [&str; 5] = ["polls", "packets", "per poll p50/p99", "budget used up", "time"];

/// Their cells, of a device or a NAPI.
macro_rules! polled {
    ($of:expr) => {
        [
            grouped($of.polls_count),
            grouped($of.packets),
            packets(&$of.packets_per_poll),
            grouped($of.exhausted_count),
            Nanos($of.poll_ns).to_string(),
        ]
    };
}

fn devices(devices: &[DevicePolls], top: usize) -> String {
    let table = Grid::new(1, [&["device", "NAPIs", "CPUs"][..], &POLLED].concat());
    section("devices", devices, top, table, |of| {
        let who = [of.dev.clone(), grouped(of.napis_count), CpuList(of.cpus.clone()).to_string()];
        who.into_iter().chain(polled!(of))
    })
}

fn napis(napis: &[NapiPolls], top: usize) -> String {
    let table = Grid::new(1, [&["device", "queue", "NAPI", "CPU"][..], &POLLED].concat());
    section("NAPI polls", napis, top, table, |of| {
        let who = [
            of.dev.clone(),
            of.queue.map_or_else(|| "-".into(), |queue| format!("rx-{queue}")),
            if of.napi_id == 0 { "-".into() } else { of.napi_id.to_string() },
            of.cpu.to_string(),
        ];
        who.into_iter().chain(polled!(of))
    })
}

fn irqs(irqs: &[IrqLine], seconds: f64, top: usize) -> String {
    let table =
        Grid::new(2, ["irq", "handler", "CPU", "interrupts", "per s", "interval p50", "p99"]);
    section("interrupts of devices", irqs, top, table, |irq| {
        [
            irq.irq.to_string(),
            irq.name.clone(),
            irq.cpu.to_string(),
            grouped(irq.interrupts_count),
            grouped((irq.interrupts_count as f64 / seconds).round() as u64),
            time(&irq.interval_ns, 0.5),
            time(&irq.interval_ns, 0.99),
        ]
    })
}

fn drops(traced: &TraceReading, top: usize) -> String {
    let head = ["reason", "place", "packets", "device", "protocol", "port", "process"];
    let table = Grid::new(2, head).text(&[3, 4, 6]);
    section("drops", &traced.drops, top, table, |drop| {
        let transport = drop.transport.as_ref().map(|t| format!(" {t}"));
        [
            drop.reason.clone(),
            drop.place.clone(),
            grouped(drop.packets),
            drop.dev.clone().unwrap_or_else(|| "-".into()),
            drop.protocol.clone() + &transport.unwrap_or_default(),
            match drop.port {
                _ if drop.folded => "many".into(),
                0 => "-".into(),
                port => port.to_string(),
            },
            if drop.processes.is_empty() { "-".into() } else { drop.processes.join(", ") },
        ]
    })
}

fn sockets(traced: &TraceReading, top: usize) -> String {
    let head = ["protocol", "port", "process", "most", "of its limit", "mean", "waited in"];
    section(WAITING, &traced.sockets, top, Grid::new(3, head), |socket| {
        let waited = percent(socket.waiting_count, socket.looks_count as f64);
        [
            socket.protocol.clone(),
            socket.port.to_string(),
            if socket.processes.is_empty() { "-".into() } else { socket.processes.join(", ") },
            Bytes(socket.max_bytes).to_string(),
            percent(socket.max_bytes, socket.limit_bytes as f64),
            Bytes(socket.mean_bytes as u64).to_string(),
            format!("{waited} of {} samples", grouped(socket.looks_count)),
        ]
    })
}

/// A stage without latencies has neither a mean nor a longest.
fn seen(stage: &StageTimes, ns: u64) -> String {
    if stage.latencies_count == 0 { "-".into() } else { Nanos(ns).to_string() }
}

fn stages(traced: &TraceReading) -> String {
    let (stages, looked) = (&traced.stages, traced.stages_looked_s);
    let mut table = Grid::new(1, ["latency", "packets", "mean", "p50", "p99", "p99.9", "max"]);
    for stage in stages {
        table.row([
            stage.stage.title().into(),
            grouped(stage.latencies_count),
            seen(stage, stage.mean_ns as u64),
            time_up_to(&stage.latency_ns, 0.5, stage.max_ns),
            time_up_to(&stage.latency_ns, 0.99, stage.max_ns),
            time_up_to(&stage.latency_ns, 0.999, stage.max_ns),
            seen(stage, stage.max_ns),
        ]);
    }
    // A hundredth: attaching and reading take time.
    let part = if looked < traced.duration_s * 0.99 {
        format!(", sampled: {looked:.3} s of the window (--every-packet traces all)")
    } else {
        String::new()
    };
    let mut out = format!("\nstages{part}\n{}", table.shown());
    for stage in stages {
        if stage.untimed_count > 0 {
            let missing = grouped(stage.untimed_count);
            out += &format!(
                "  not timed: {missing} packets reached their socket, but their entry was not seen\n"
            );
        }
        if stage.unread_count > 0 {
            let (unread, oldest) = (grouped(stage.unread_count), Nanos(stage.longest_unread_ns));
            out += &format!("  not read at the end: {unread} packets, the oldest for {oldest}\n");
        }
        for it in stage.outliers.iter().take(3) {
            let (latency, at) = (Nanos(it.latency_ns), format!("CPU {}, port {}", it.cpu, it.port));
            out += &format!("  outlier: {latency} on {at}, {}\n", it.task);
        }
    }
    out
}

/// One line per event, in the form of `perf script`: time in s, CPU, event, task.
pub fn timeline(events: &[Event]) -> String {
    let mut out = String::from("\ntimeline\n");
    let mut before = None;
    for event in events {
        let step = before.map_or(0, |t| event.t_ns.saturating_sub(t));
        before = Some(event.t_ns);
        let what = match event.what {
            EventKind::IrqEntry => {
                format!("irq_handler_entry irq={} name={}", event.number, event.name)
            }
            EventKind::IrqExit => format!("irq_handler_exit irq={}", event.number),
            EventKind::VectorEntry => format!("{}_entry", event.name),
            EventKind::VectorExit => format!("{}_exit", event.name),
            EventKind::SoftirqEntry => format!("softirq_entry {}", event.name),
            EventKind::SoftirqExit => format!("softirq_exit {}", event.name),
            EventKind::NapiPoll => format!(
                "napi_poll dev={} napi_id={} work={} budget={}",
                event.name,
                event.number,
                event.work.unwrap_or(0),
                event.budget.unwrap_or(0)
            ),
            EventKind::Unknown => format!("event of an unknown kind, number {}", event.number),
        };
        out += &format!(
            "{:>14.6} [{:03}] +{:>9.3} us  {:<16} {what}\n",
            event.t_ns as f64 / 1e9,
            event.cpu,
            step as f64 / 1e3,
            format!("{}-{}", event.comm, event.pid)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(t_ns: u64, what: EventKind, name: &str, number: u32) -> Event {
        let poll = what == EventKind::NapiPoll;
        Event {
            t_ns,
            cpu: 3,
            what,
            name: name.into(),
            number,
            work: poll.then_some(27),
            budget: poll.then_some(64),
            pid: 7,
            comm: "victim".into(),
        }
    }

    #[test]
    fn a_quantile_is_not_longer_than_the_longest() {
        let one = Log2::of(&[0, 0, 0, 1]);
        assert_eq!((time(&one, 0.99), time_up_to(&one, 0.99, 5)), ("7ns".into(), "5ns".into()));
    }

    #[test]
    fn each_kind_of_event_has_its_line() {
        let events = [
            event(1_500_000_000, EventKind::IrqEntry, "eth0-rx", 30),
            event(1_500_001_250, EventKind::IrqExit, "", 30),
            event(1_500_002_000, EventKind::SoftirqEntry, "NET_RX", 3),
            event(1_500_009_000, EventKind::VectorEntry, "local_timer", 0),
            event(1_500_010_000, EventKind::VectorExit, "local_timer", 0),
            event(1_500_042_000, EventKind::NapiPoll, "eth0", 8193),
            event(1_500_043_000, EventKind::SoftirqExit, "NET_RX", 3),
            event(2_500_043_000, EventKind::Unknown, "", 99),
        ];
        insta::assert_snapshot!("trace-timeline", timeline(&events));
    }
}
