//! The evidence: the figures of a run, and the numbers behind each.

mod capacity;
mod cpu;
mod over_time;
mod per_variant;
mod ring;
mod sampled;
mod sockets;
mod stacked;
mod swept;

use rxpath_record::axes::Axes;

use crate::page::part::Figure;
use crate::prelude::Run;

/// Every figure that this run has the data for, in the report's order.
pub(crate) fn all(run: &Run) -> Vec<Figure> {
    [
        capacity::search(run),
        swept::over_setting(run),
        per_variant::throughput(run),
        per_variant::gains(run),
        over_time::rates(run),
        sockets::split(run),
        over_time::queues(run),
        ring::occupancy(run),
        sampled::queues(run),
        cpu::time(run),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The figure of the run in a book, with ids of its own.
pub(crate) fn of_book(run: &Run, axes: Axes, id: &str) -> Option<Figure> {
    let metrics = || swept::over_setting(run).or_else(|| per_variant::throughput(run));
    let mut figure = match axes {
        Axes::Metrics => metrics(),
        Axes::Queues => sampled::queues(run).or_else(metrics),
        Axes::Ring => ring::occupancy(run).or_else(metrics),
    }?;
    for panel in &mut figure.panels {
        for chart in std::iter::once(&mut panel.wide).chain(&mut panel.narrow) {
            chart.id = format!("{id}-{}", chart.id);
        }
    }
    Some(figure)
}

/// The top of an axis that starts at zero: the largest value and some space.
fn roof(values: impl Iterator<Item = f64>) -> f64 {
    let top = values.filter(|v| v.is_finite()).fold(0.0, f64::max);
    if top > 0.0 { top * 1.08 } else { 1.0 }
}

/// The interval of a median as text, or why there is none.
pub(crate) fn interval_text(metric: &str, interval: Option<[f64; 2]>) -> String {
    match interval {
        Some(ends) => format!("95 % interval {}", crate::number::between(metric, ends)),
        None => "too few trials for an interval".into(),
    }
}
