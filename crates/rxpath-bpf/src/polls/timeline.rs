//! Events one by one: interrupts, softirqs and polls in the order of time, as spans for a viewer.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SOFTIRQS;
use crate::bytes::Fields;

/// Interrupts that are no device's, in the order of `enum vector`.
const VECTORS: [&str; 5] =
    ["local_timer", "call_function", "call_function_single", "reschedule", "irq_work"];

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A device's interrupt handler begins.
    IrqEntry,
    /// It ends.
    IrqExit,
    /// Another interrupt begins (x86).
    VectorEntry,
    /// It ends.
    VectorExit,
    /// A softirq begins.
    SoftirqEntry,
    /// It ends.
    SoftirqExit,
    /// A NAPI poll has ended.
    NapiPoll,
    /// Of a kind that this reader does not know.
    Unknown,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// CPU.
    pub cpu: u32,
    /// What.
    pub what: EventKind,
    /// Name: softirq, handler, vector or device.
    pub name: String,
    /// Interrupt number, softirq number or NAPI id.
    pub number: u32,
    /// Packets of the poll.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub work: Option<i32>,
    /// Most packets that the poll might take.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub budget: Option<i32>,
    /// Thread in whose time it happened.
    pub pid: u32,
    /// Its name.
    pub comm: String,
}

/// `struct event`.
pub(super) fn event(bytes: &[u8]) -> Event {
    let mut f = Fields::of(bytes);
    let (t_ns, cpu, kind, number) = (f.u64(), f.u32(), f.u32(), f.u32());
    let (work, budget, pid) = (f.u32() as i32, f.u32() as i32, f.u32());
    let (comm, name) = (f.text(16), f.text(16));
    let listed = |names: &[&str]| names.get(number as usize).map_or("?", |name| name).to_owned();
    let (what, name) = match kind {
        0 => (EventKind::IrqEntry, name),
        1 => (EventKind::IrqExit, name),
        2 => (EventKind::VectorEntry, listed(&VECTORS)),
        3 => (EventKind::VectorExit, listed(&VECTORS)),
        4 => (EventKind::SoftirqEntry, listed(&SOFTIRQS)),
        5 => (EventKind::SoftirqExit, listed(&SOFTIRQS)),
        6 => (EventKind::NapiPoll, if name.is_empty() { "backlog".into() } else { name }),
        _ => (EventKind::Unknown, name),
    };
    let poll = what == EventKind::NapiPoll;
    let (work, budget) = (poll.then_some(work), poll.then_some(budget));
    Event { t_ns, cpu, what, name, number, work, budget, pid, comm }
}

/// A stretch of time on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineSpan {
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// CPU.
    pub cpu: u32,
    /// `irq`, `softirq` or `napi`.
    pub category: &'static str,
    /// What it shows.
    pub name: String,
    /// The event that ended it.
    pub last: Event,
}

/// Entries joined with their exits, in the order of their starts. Entries without an exit and exits without an entry,
/// at the ends of the window or where events were lost, are left out.
///
/// A poll has no entry of its own: it lasts from the softirq's entry, or the poll before in it, to its event. Of a poll
/// outside a softirq (threaded NAPI, busy polling) the start is not known: it has no span.
pub fn spans(events: &[Event]) -> Vec<TimelineSpan> {
    let mut open: HashMap<(u32, EventKind), &Event> = HashMap::new();
    let mut polled: HashMap<u32, u64> = HashMap::new();
    let mut spans = Vec::new();
    for event in events {
        let (entry, category) = match event.what {
            EventKind::IrqExit => (EventKind::IrqEntry, "irq"),
            EventKind::VectorExit => (EventKind::VectorEntry, "irq"),
            EventKind::SoftirqExit => (EventKind::SoftirqEntry, "softirq"),
            EventKind::NapiPoll => {
                if let Some(start_ns) = polled.get_mut(&event.cpu) {
                    let start_ns = std::mem::replace(start_ns, event.t_ns);
                    spans.push(span(start_ns, event, "napi", event.name.clone()));
                }
                continue;
            }
            entry => {
                if entry == EventKind::SoftirqEntry {
                    polled.insert(event.cpu, event.t_ns);
                }
                open.insert((event.cpu, entry), event);
                continue;
            }
        };
        if category == "softirq" {
            polled.remove(&event.cpu);
        }
        // The exit of an interrupt does not carry its handler's name.
        if let Some(begun) = open.remove(&(event.cpu, entry))
            && begun.number == event.number
        {
            spans.push(span(begun.t_ns, event, category, begun.name.clone()));
        }
    }
    spans.sort_by_key(|span| (span.start_ns, std::cmp::Reverse(span.end_ns)));
    spans
}

fn span(start_ns: u64, last: &Event, category: &'static str, name: String) -> TimelineSpan {
    TimelineSpan { start_ns, end_ns: last.t_ns, cpu: last.cpu, category, name, last: last.clone() }
}

/// The Trace Event Format that Perfetto's and Chrome's viewers open: one row of nested spans for each CPU.
///
/// **Source** "Trace Event Format" of the Chromium project: complete events (`ph: X`) with `ts` and `dur` in
/// microseconds, metadata events (`ph: M`) that name processes and threads.
pub fn chrome_trace(events: &[Event]) -> ChromeTrace {
    let spans = spans(events);
    let mut cpus: Vec<u32> = events.iter().map(|event| event.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let named = |name: &str, cpu: u32, text: String| ChromeEvent {
        name: name.into(),
        ph: "M".into(),
        ts: 0.0,
        dur: None,
        pid: 1,
        tid: cpu,
        cat: "__metadata".into(),
        args: ChromeArgs { name: Some(text), ..ChromeArgs::default() },
    };
    let mut out = vec![named("process_name", 0, "CPUs".into())];
    out.extend(cpus.iter().map(|cpu| named("thread_name", *cpu, format!("CPU {cpu}"))));
    out.extend(spans.iter().map(|span| ChromeEvent {
        name: span.name.clone(),
        ph: "X".into(),
        ts: span.start_ns as f64 / 1e3,
        dur: Some(span.end_ns.saturating_sub(span.start_ns) as f64 / 1e3),
        pid: 1,
        tid: span.cpu,
        cat: span.category.into(),
        args: ChromeArgs {
            name: None,
            work: span.last.work,
            budget: span.last.budget,
            task: Some(format!("{} ({})", span.last.comm, span.last.pid)),
        },
    }));
    ChromeTrace { trace_events: out, display_time_unit: "ns".into() }
}

/// A file in the Trace Event Format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChromeTrace {
    /// The events.
    pub trace_events: Vec<ChromeEvent>,
    /// Unit that viewers show.
    pub display_time_unit: String,
}

/// One event of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChromeEvent {
    /// Name.
    pub name: String,
    /// Phase: `X` complete, `M` metadata.
    pub ph: String,
    /// Start, in us.
    pub ts: f64,
    /// Length, in us.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dur: Option<f64>,
    /// Group of rows.
    pub pid: u32,
    /// Row: the CPU.
    pub tid: u32,
    /// Category.
    pub cat: String,
    /// Details.
    pub args: ChromeArgs,
}

/// Details of an event of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChromeArgs {
    /// Name of a row.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Packets of a poll.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub work: Option<i32>,
    /// Its budget.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub budget: Option<i32>,
    /// The task in whose time it happened.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub task: Option<String>,
}

#[cfg(test)]
mod tests;
