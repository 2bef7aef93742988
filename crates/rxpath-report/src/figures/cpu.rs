//! Who used which CPU in the measured window.

use rxpath_record::evidence::CpuUse;

use super::stacked::{Bar, panel, table};
use crate::plot::{Axis, COLOURS};
use crate::prelude::*;

/// What a bar is made of, from the left: name and colour.
const PARTS: [(&str, &str); 5] = [
    ("user", COLOURS[0]),
    ("system", COLOURS[5]),
    ("softirq", COLOURS[1]),
    ("hardirq", COLOURS[4]),
    ("steal", COLOURS[3]),
];

const HEADS: &str = "variant | #trial | #CPU | #user | #system | #softirq | #hardirq | #steal | #idle | \
                     #foreign threads";

/// CPU time by kind, for each variant and CPU.
pub(super) fn time(run: &Run) -> Option<Figure> {
    let mut bars = Vec::new();
    for (variant, trial) in run.shown() {
        let cpus = trial.evidence.cpus.iter();
        bars.extend(cpus.map(|cpu| bar(&variant.name, trial.trial, cpu)));
    }
    let x = Axis::to(1.0, "share of the CPU's wall time", |v| format!("{:.0} %", v * 100.0));
    (!bars.is_empty()).then(|| Figure {
        title: "CPU time in the measured window".into(),
        caption: "Share of each CPU's wall time, the median trial of each variant. The split of busy time is counted in \
                  timer ticks and can be wrong by half; the busy total is exact. On a default veth the receive \
                  softirq runs inside the sender's system call and is counted there."
            .into(),
        keys: PARTS.iter().map(|(name, colour)| Key::block(colour, 8.0, name)).collect(),
        panels: vec![panel("cpu", "CPU time by variant and CPU", &bars, &x)],
        table: table(HEADS, &bars),
    })
}

fn bar(variant: &str, trial: u32, cpu: &CpuUse) -> Bar {
    let shares =
        [cpu.user_ratio, cpu.system_ratio, cpu.softirq_ratio, cpu.irq_ratio, cpu.steal_ratio];
    let percent = |share: f64| number::percent(share, 1.0);
    let mut cells = vec![variant.to_owned(), trial.to_string(), cpu.cpu.to_string()];
    cells.extend(shares.map(percent));
    cells.push(percent(cpu.idle_ratio));
    cells.push(cpu.foreign_ratio.map_or("not read".into(), percent));
    Bar {
        name: format!("{} · CPU {}", cut(variant, 20), cpu.cpu),
        parts: shares.into_iter().zip(PARTS.map(|(_, colour)| colour)).collect(),
        cells,
    }
}
