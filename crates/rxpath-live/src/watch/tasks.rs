//! The tasks of a window: measured with what was taken from them where BPF runs, else by the scheduler's times alone.

use rxpath_bpf::steal::Steal;
use rxpath_core::Fact;
use rxpath_core::measured::{TaskKind, TaskTime};
use rxpath_host::Root;
use rxpath_host::read::thread::usage::{Sample, Usage};
use rxpath_record::watch::TaskRow;

use super::Window;

/// Rows of a frame at most.
const ROWS: usize = 100;

/// CPU time of everybody at the beginning of a window; read only where no probe measures it better.
#[derive(Debug)]
pub struct Everybody {
    before: Option<Result<Sample, String>>,
}

/// CPU time of everybody over a window.
#[derive(Debug, Default)]
pub struct Used {
    pub usage: Option<Usage>,
    /// Why there is none although it was asked for.
    pub gap: Option<String>,
}

impl Everybody {
    pub fn start(root: &Root, measured: bool) -> Self {
        let take = || Sample::take(root).map_err(|error| error.to_string());
        Self { before: (!measured).then(take) }
    }

    pub fn until_now(&mut self, root: &Root) -> Used {
        let Some(before) = &self.before else { return Used::default() };
        let (used, next) = match before {
            // Threads that rest are many and cost the most.
            Ok(sample) => match sample.movers_until_now(root) {
                Ok((usage, next)) => (Used { usage: Some(usage), gap: None }, Ok(next)),
                Err(error) => (gap(&error.to_string()), Err(error.to_string())),
            },
            Err(why) => (gap(why), Sample::take(root).map_err(|error| error.to_string())),
        };
        self.before = Some(next);
        used
    }
}

fn gap(why: &str) -> Used {
    Used { usage: None, gap: Some(why.to_owned()) }
}

/// The rows, those that lost most first.
pub(super) fn rows(window: &Window<'_>) -> Vec<TaskRow> {
    let steal = window.seen.ok().and_then(|seen| seen.steal.as_ref());
    let Some(steal) = steal else { return by_scheduler(window) };
    let tasks = steal.tasks.iter().map(|task| &task.row);
    let tasks = tasks.filter(|task| task.kind != TaskKind::Idle).take(ROWS);
    tasks.map(|task| measured(task, steal)).collect()
}

fn measured(task: &TaskTime, steal: &Steal) -> TaskRow {
    let (time, window_s) = (&task.time, steal.window_s.max(1e-3));
    let of = |seconds: f64| Fact::ok(seconds / window_s);
    let most = task.taken_by.iter().max_by(|a, b| a.net_s.total_cmp(&b.net_s));
    TaskRow {
        pid: task.pid,
        process: task.tgid,
        comm: task.comm.clone(),
        kind: task.kind.word().into(),
        cpus: task.cpus.clone(),
        on_cpu_ratio: time.on_cpu_s / window_s,
        waiting_ratio: of(time.preempted_s),
        own_ratio: of(time.own_s),
        taken_ratio: of(time.taken_s()),
        taken_net_ratio: of(time.net_rx_s + time.net_tx_s + time.mixed_softirq_s),
        irq_entry_ratio: match steal.calibration.kind {
            Some(_) => of(time.irq_entry_estimated_s),
            None => Fact::absent(steal.calibration.source.clone()),
        },
        own_softirq_ratio: of(time.own_softirq_s),
        hypervisor_ratio: of(time.hypervisor_steal_s),
        taken_by: most.map_or_else(String::new, |by| {
            format!("{} ({:.1} %)", by.dev, 100.0 * by.net_s / window_s)
        }),
    }
}

fn by_scheduler(window: &Window<'_>) -> Vec<TaskRow> {
    let Some(usage) = &window.used.usage else { return Vec::new() };
    let why = window.seen.err().unwrap_or("not measured");
    let span_ns = usage.span_ns.max(1) as f64;
    let row = |thread: &rxpath_host::read::thread::usage::ThreadCpuTime| TaskRow {
        pid: thread.tid as u32,
        process: thread.pid as u32,
        comm: thread.comm.clone(),
        cpus: vec![thread.last_cpu],
        on_cpu_ratio: thread.run_ns as f64 / span_ns,
        waiting_ratio: Fact::absent(why),
        own_ratio: Fact::absent(why),
        taken_ratio: Fact::absent(why),
        taken_net_ratio: Fact::absent(why),
        irq_entry_ratio: Fact::absent(why),
        own_softirq_ratio: Fact::absent(why),
        hypervisor_ratio: Fact::absent(why),
        ..TaskRow::default()
    };
    usage.threads.iter().take(ROWS).map(row).collect()
}
