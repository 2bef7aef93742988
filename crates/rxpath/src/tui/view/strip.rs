//! The CPUs as a strip, a letter each, grouped by NUMA node: readable with 2 and with 256.

use std::collections::BTreeMap;

use ratatui::text::{Line, Span};
use rxpath_record::watch::CpuRow;

use crate::tui::palette::{Mark, Palette};

/// From idle to busy: the height says it, the colour only repeats it.
const STEPS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The lines, in this width.
pub fn lines<'a>(cpus: &[CpuRow], width: u16, palette: Palette) -> Vec<Line<'a>> {
    let mut nodes: BTreeMap<Option<u32>, Vec<&CpuRow>> = BTreeMap::new();
    for cpu in cpus {
        nodes.entry(cpu.node).or_default().push(cpu);
    }
    let mut lines = Vec::new();
    for (node, cpus) in nodes {
        let name = node.map_or_else(|| "CPUs".into(), |node| format!("node {node}"));
        // Rows of a power of two: a CPU's number can be counted.
        let room = usize::from(width).saturating_sub(18).max(8);
        let per_line = if room >= 64 { 64 } else { 32.min(room) };
        for (at, part) in cpus.chunks(per_line).enumerate() {
            let name = if at == 0 { name.as_str() } else { "" };
            let first = part.first().map_or(0, |cpu| cpu.cpu);
            let last = part.last().map_or(0, |cpu| cpu.cpu);
            let mut spans = vec![Span::raw(format!("{name:<8}{:<9}", format!("{first}-{last}")))];
            spans.extend(part.iter().map(|cpu| letter(cpu, palette)));
            lines.push(Line::from(spans));
        }
    }
    lines
}

fn letter<'a>(cpu: &CpuRow, palette: Palette) -> Span<'a> {
    let busy = (1.0 - cpu.idle_ratio).clamp(0.0, 1.0);
    let step = (busy * (STEPS.len() - 1) as f64).round() as usize;
    let mark = match busy {
        busy if busy >= 0.95 => Mark::Bad,
        busy if busy >= 0.7 => Mark::Warn,
        _ => Mark::Good,
    };
    Span::styled(STEPS[step.min(STEPS.len() - 1)].to_string(), palette.style(mark))
}
