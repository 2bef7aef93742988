//! The CPUs as rows.

use rxpath_record::watch::{CpuRow, Frame};

use super::{Cell, Row, Sheet, number, per_s, percent, told, word};

pub(super) fn sheet(frame: &Frame) -> Sheet {
    Sheet {
        columns: vec![
            number("CPU", 4),
            number("node", 4),
            number("busy %", 7),
            number("softirq", 7),
            number("net rx", 7),
            number("steal", 6),
            number("packets/s", 9),
            number("squeeze/s", 9),
            number("drops/s", 8),
            word("busiest task", 14),
        ],
        rows: frame.cpus.iter().map(row).collect(),
        empty: "CPU times could not be read".into(),
    }
}

fn row(cpu: &CpuRow) -> Row {
    let busy = (1.0 - cpu.idle_ratio).clamp(0.0, 1.0);
    let node = cpu.node.map_or_else(|| "-".into(), |node| node.to_string());
    Row {
        id: format!("CPU {}", cpu.cpu),
        item: 0,
        cells: vec![
            Cell::number(cpu.cpu.into(), cpu.cpu.to_string()),
            Cell::text(node.clone()),
            Cell::filled(busy, 0.7, 0.95),
            Cell::share(cpu.softirq_ratio),
            Cell::fact(&cpu.net_softirq_ratio, Cell::share),
            Cell::filled(cpu.steal_ratio, 0.02, 0.1),
            Cell::rate(cpu.processed_pps),
            Cell::rate(cpu.squeezed_per_s),
            Cell::loss(cpu.dropped_pps),
            Cell::text(cpu.busiest_task.clone()),
        ],
        detail: vec![
            ("NUMA node".into(), node),
            ("user, by ticks".into(), percent(cpu.user_ratio)),
            ("system, by ticks".into(), percent(cpu.system_ratio)),
            ("softirq, by ticks".into(), percent(cpu.softirq_ratio)),
            ("hard irq, by ticks".into(), percent(cpu.irq_ratio)),
            ("network softirq, measured".into(), told(&cpu.net_softirq_ratio, |it| percent(*it))),
            ("taken by the hypervisor".into(), percent(cpu.steal_ratio)),
            ("idle".into(), percent(cpu.idle_ratio)),
            ("packets to the protocols".into(), per_s(cpu.processed_pps, "packets")),
            ("NET_RX ended with work left".into(), per_s(cpu.squeezed_per_s, "times")),
            ("dropped at its backlog".into(), per_s(cpu.dropped_pps, "packets")),
            ("busiest task".into(), cpu.busiest_task.clone()),
        ],
    }
}
