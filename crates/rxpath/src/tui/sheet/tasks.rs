//! The tasks as rows: their CPU time and what was taken from them.

use rxpath_core::CpuList;
use rxpath_record::watch::{Frame, TaskRow};

use super::{Cell, Row, Sheet, number, percent, told, word};

pub(super) fn sheet(frame: &Frame) -> Sheet {
    Sheet {
        columns: vec![
            number("pid", 7),
            word("task", 16),
            word("kind", 9),
            word("CPU", 5),
            number("on CPU", 7),
            number("own", 6),
            number("taken", 7),
            number("waits", 6),
            word("taken by", 14),
        ],
        rows: frame.tasks.iter().map(row).collect(),
        empty: "no task ran, or none is visible".into(),
    }
}

fn row(task: &TaskRow) -> Row {
    let cpus = CpuList(task.cpus.clone()).to_string();
    let share = |fact: &rxpath_core::Fact<f64>| Cell::fact(fact, Cell::share);
    Row {
        id: format!("{} ({})", task.comm, task.pid),
        item: 0,
        cells: vec![
            Cell::number(task.pid.into(), task.pid.to_string()),
            Cell::text(task.comm.clone()),
            Cell::text(task.kind.clone()),
            Cell::text(cpus.clone()),
            Cell::share(task.on_cpu_ratio),
            share(&task.own_ratio),
            Cell::fact(&task.taken_ratio, |ratio| Cell::filled(ratio, 0.05, 0.2)),
            share(&task.waiting_ratio),
            Cell::text(task.taken_by.clone()),
        ],
        detail: vec![
            ("kind".into(), task.kind.clone()),
            ("CPUs".into(), cpus),
            ("on a CPU".into(), percent(task.on_cpu_ratio)),
            ("own work".into(), told(&task.own_ratio, |it| percent(*it))),
            ("taken from it".into(), told(&task.taken_ratio, |it| percent(*it))),
            ("of that network softirqs".into(), told(&task.taken_net_ratio, |it| percent(*it))),
            ("of that the hypervisor".into(), told(&task.hypervisor_ratio, |it| percent(*it))),
            ("softirqs of its own calls".into(), told(&task.own_softirq_ratio, |it| percent(*it))),
            ("waited for a CPU".into(), told(&task.waiting_ratio, |it| percent(*it))),
            ("taken most by".into(), task.taken_by.clone()),
        ],
    }
}
