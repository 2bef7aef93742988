//! The CPUs as a strip, one character each, grouped by NUMA node: readable with 2 and with 256.

use std::collections::BTreeMap;

use ratatui::text::{Line, Span};
use rxpath_core::CpuList;
use rxpath_record::watch::CpuRow;

use crate::tui::mark::Mark;
use crate::tui::palette::Palette;

/// From idle to busy: the height shows it, the colour repeats it.
const STEPS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Characters of a line before its CPUs: the node, then the CPU numbers.
const NODE: usize = 8;
const NUMBERS: usize = 9;
/// The longest useful list of numbers.
const NUMBERS_MOST: usize = 24;

/// The lines, in this width.
pub fn lines<'a>(cpus: &[CpuRow], width: u16, palette: Palette) -> Vec<Line<'a>> {
    let mut nodes: BTreeMap<Option<u32>, Vec<&CpuRow>> = BTreeMap::new();
    for cpu in cpus {
        nodes.entry(cpu.node).or_default().push(cpu);
    }
    // Rows have a power of two of CPUs: a CPU's number can be counted.
    let room = usize::from(width).saturating_sub(NODE + NUMBERS_MOST).max(8);
    let per_line = if room >= 64 { 64 } else { 32.min(room) };
    let parts: Vec<(String, String, &[&CpuRow])> = nodes
        .iter()
        .flat_map(|(node, cpus)| {
            let name = node.map_or_else(|| "CPUs".into(), |node| format!("node {node}"));
            cpus.chunks(per_line).enumerate().map(move |(at, part)| {
                (if at == 0 { name.clone() } else { String::new() }, numbers(part), part)
            })
        })
        .collect();
    let longest = parts.iter().map(|(_, numbers, _)| numbers.chars().count()).max().unwrap_or(0);
    let numbered = (longest + 1).max(NUMBERS);
    let line = |(name, numbers, part): (String, String, &[&CpuRow])| {
        let mut spans = vec![Span::raw(format!("{name:<NODE$}{numbers:<numbered$}"))];
        spans.extend(part.iter().map(|cpu| letter(cpu, palette)));
        Line::from(spans)
    };
    parts.into_iter().map(line).collect()
}

/// The CPU numbers: `0-31,64-95`. If the list is too long (every second one), the first ones and the last.
fn numbers(part: &[&CpuRow]) -> String {
    let all = CpuList(part.iter().map(|cpu| cpu.cpu).collect()).to_string();
    if all.len() < NUMBERS_MOST {
        return all;
    }
    let last = part.last().map_or(0, |cpu| cpu.cpu);
    let begin: Vec<&str> = all.split(',').take(3).collect();
    format!("{},…,{last}", begin.join(","))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(cpus: impl Iterator<Item = (u32, u32)>, width: u16) -> Vec<String> {
        let rows = cpus.map(|(cpu, node)| CpuRow {
            cpu,
            node: Some(node),
            idle_ratio: 1.0,
            ..CpuRow::default()
        });
        let rows: Vec<CpuRow> = rows.collect();
        lines(&rows, width, Palette { color: false }).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_line_names_the_cpus_that_are_in_it() {
        // Threads of a core are 64 numbers apart.
        let two_threads = || (0..128).map(|cpu| (cpu, cpu / 32 % 2));
        let wide = drawn(two_threads(), 200);
        assert!(wide[0].starts_with("node 0  0-31,64-95   ··"), "{wide:?}");
        let narrow = drawn(two_threads(), 80);
        assert!(narrow[0].starts_with("node 0  0-31 ") && narrow[1].starts_with("        64-95 "));
        let every_second = drawn((0..64).map(|cpu| (cpu, cpu % 2)), 80);
        assert!(every_second[1].starts_with("node 1  1,3,5,…,63 ·"), "{every_second:?}");
        assert!(narrow.iter().chain(&every_second).all(|line| line.chars().count() <= 80));
    }
}
