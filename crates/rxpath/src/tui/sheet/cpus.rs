//! The CPUs as rows.

use rxpath_record::watch::{CpuRow, WatchFrame};

use super::{Cell, Columns, Sheet, Told, number, per_s, percent, told, word};

const COLUMNS: Columns<CpuRow, 10> = [
    (number("CPU", 4), |it| Cell::number(it.cpu.into(), it.cpu.to_string())),
    (number("node", 4), |it| Cell::text(node(it))),
    (number("busy %", 7), |it| Cell::filled((1.0 - it.idle_ratio).clamp(0.0, 1.0), 0.7, 0.95)),
    (number("softirq", 7), |it| Cell::share(it.softirq_ratio)),
    (number("net rx", 7), |it| Cell::fact(&it.net_softirq_ratio, Cell::share)),
    (number("steal", 6), |it| Cell::filled(it.steal_ratio, 0.02, 0.1)),
    (number("packets/s", 9), |it| Cell::rate(it.processed_pps)),
    (number("squeeze/s", 9), |it| Cell::rate(it.squeezed_per_s)),
    (number("drops/s", 8), |it| Cell::loss(it.dropped_pps)),
    (word("busiest task", 14), |it| Cell::text(it.busiest_task.clone())),
];

pub(super) fn sheet(frame: &WatchFrame) -> Sheet {
    Sheet::of(&frame.cpus, COLUMNS, row, "CPU times could not be read")
}

fn node(cpu: &CpuRow) -> String {
    cpu.node.map_or_else(|| "-".into(), |node| node.to_string())
}

fn row(cpu: &CpuRow) -> Told {
    let detail = vec![
        ("NUMA node", node(cpu)),
        ("user, by ticks", percent(cpu.user_ratio, 2)),
        ("system, by ticks", percent(cpu.system_ratio, 2)),
        ("softirq, by ticks", percent(cpu.softirq_ratio, 2)),
        ("hard irq, by ticks", percent(cpu.irq_ratio, 2)),
        ("NET_RX, measured", told(&cpu.net_softirq_ratio, |it| percent(*it, 2))),
        ("taken by the hypervisor", percent(cpu.steal_ratio, 2)),
        ("idle", percent(cpu.idle_ratio, 2)),
        ("packets to the protocols", per_s(cpu.processed_pps, "packets")),
        ("NET_RX ended with work left", per_s(cpu.squeezed_per_s, "times")),
        ("dropped at its backlog", per_s(cpu.dropped_pps, "packets")),
        ("busiest task", cpu.busiest_task.clone()),
    ];
    (format!("CPU {}", cpu.cpu), detail)
}
