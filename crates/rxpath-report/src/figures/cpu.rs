//! Who used which CPU in the measured window.

use rxpath_record::evidence::CpuUse;

use super::per_variant::names;
use crate::plot::{Axis, COLOURS, Chart, Curve};
use crate::prelude::*;

/// What a bar is made of, from the left: name and colour.
const PARTS: [(&str, &str); 5] = [
    ("user", COLOURS[0]),
    ("system", COLOURS[5]),
    ("softirq", COLOURS[1]),
    ("hardirq", COLOURS[4]),
    ("steal", COLOURS[3]),
];

fn parts(cpu: &CpuUse) -> [f64; 5] {
    [cpu.user_ratio, cpu.system_ratio, cpu.softirq_ratio, cpu.irq_ratio, cpu.steal_ratio]
}

struct Row<'a> {
    name: String,
    variant: &'a str,
    trial: u32,
    cpu: &'a CpuUse,
}

/// CPU time by kind, for each variant and CPU.
pub(super) fn time(run: &Run) -> Option<Figure> {
    let mut rows = Vec::new();
    for (variant, trial) in run.shown() {
        rows.extend(trial.evidence.cpus.iter().map(|cpu| Row {
            name: format!("{} · CPU {}", cut(&variant.name, 20), cpu.cpu),
            variant: &variant.name,
            trial: trial.trial,
            cpu,
        }));
    }
    (!rows.is_empty()).then(|| Figure {
        title: "CPU time in the measured window".into(),
        caption: "Share of each CPU's wall time, the median trial of each variant. The split of busy time is counted in \
                  timer ticks and can be wrong by half; the busy total is exact. On a default veth the receive \
                  softirq runs inside the sender's system call and is counted there."
            .into(),
        keys: PARTS.iter().map(|(name, colour)| Key::block(colour, 8.0, name)).collect(),
        panels: vec![Panel::by_width("cpu", |size| chart(&rows, size))],
        table: table(&rows),
    })
}

fn chart(rows: &[Row], size: (&str, f64)) -> Chart {
    let mut curves = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let mut from = 0.0;
        for (share, (_, colour)) in parts(row.cpu).into_iter().zip(PARTS) {
            let to = (from + share.max(0.0)).min(1.0);
            if to > from {
                curves.push(Curve::bar((from, to), (rows.len() - at) as f64, colour, 12.0));
            }
            from = to;
        }
    }
    let names = names(rows.iter().map(|row| row.name.as_str()), size.1);
    let x = Axis::to(1.0, "share of the CPU's wall time", |v| format!("{:.0} %", v * 100.0));
    Chart { curves, ..Chart::of_rows(size, "CPU time by variant and CPU", names, 24.0, x) }
}

fn table(rows: &[Row]) -> Table {
    let heads = "variant | #trial | #CPU | #user | #system | #softirq | #hardirq | #steal | \
                 #idle | #foreign threads";
    let rows = rows.iter().map(|row| {
        let share = |value: f64| number::percent(value, 1.0);
        let mut cells =
            vec![row.variant.to_owned(), row.trial.to_string(), row.cpu.cpu.to_string()];
        cells.extend(parts(row.cpu).map(share));
        cells.push(share(row.cpu.idle_ratio));
        cells.push(row.cpu.foreign_ratio.map_or("not read".into(), share));
        cells
    });
    Table::of(heads, rows)
}
