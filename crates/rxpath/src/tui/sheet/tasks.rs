//! The tasks as rows: their CPU time and what was taken from them.

use rxpath_core::{CpuList, Fact};
use rxpath_record::watch::{TaskRow, WatchFrame};

use super::{Cell, Columns, Sheet, Told, number, percent, told, word};

const COLUMNS: Columns<TaskRow, 9> = [
    (number("pid", 7), |it| Cell::number(it.pid.into(), it.pid.to_string())),
    (word("task", 16), |it| Cell::text(it.comm.clone())),
    (word("kind", 9), |it| Cell::text(it.kind.clone())),
    (word("CPU", 5), |it| Cell::text(CpuList(it.cpus.clone()).to_string())),
    (number("on CPU", 7), |it| Cell::share(it.on_cpu_ratio)),
    (number("own", 6), |it| Cell::fact(&it.own_ratio, Cell::share)),
    (number("taken", 7), |it| Cell::fact(&it.taken_ratio, |taken| Cell::filled(taken, 0.05, 0.2))),
    (number("waits", 6), |it| Cell::fact(&it.waiting_ratio, Cell::share)),
    (word("taken by", 14), |it| Cell::text(it.taken_by.clone())),
];

pub(super) fn sheet(frame: &WatchFrame) -> Sheet {
    Sheet::of(&frame.tasks, COLUMNS, row, "no task ran, or none is visible")
}

fn row(task: &TaskRow) -> Told {
    let share = |fact: &Fact<f64>| told(fact, |it| percent(*it, 2));
    let detail = vec![
        ("kind", task.kind.clone()),
        ("CPUs", CpuList(task.cpus.clone()).to_string()),
        ("on a CPU", percent(task.on_cpu_ratio, 2)),
        ("own work", share(&task.own_ratio)),
        ("taken from it", share(&task.taken_ratio)),
        ("of that network softirqs", share(&task.taken_net_ratio)),
        ("of that interrupt entry and exit (estimated)", share(&task.irq_entry_ratio)),
        ("of that the hypervisor", share(&task.hypervisor_ratio)),
        ("softirqs of its own calls", share(&task.own_softirq_ratio)),
        ("waited for a CPU", share(&task.waiting_ratio)),
        ("taken most by", task.taken_by.clone()),
    ];
    (format!("{} ({})", task.comm, task.pid), detail)
}
