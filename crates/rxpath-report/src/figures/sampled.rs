//! The sampled memory of the receiving sockets over time, stacked; shaded where the reader got no CPU.

use rxpath_core::PathSide;
use rxpath_record::samples::{SampleSeries, TrialSamples};

use super::roof;
use crate::plot::{Axis, COLOURS, Curve, DASHES};
use crate::prelude::*;

/// Points of a curve that fit in a small picture. Each is the largest value of its stretch.
pub(super) const POINTS: usize = 240;
/// Two ticks of the slowest clock: a running thread's time may stay the same for that long (schedstat).
const STILL_NS: i64 = 9_000_000;

/// One variant's stack: unread payload, then the rest of the receive memory, then the backlog, summed from below.
struct Stack {
    variant: String,
    trial: u32,
    layers: [Vec<(f64, f64)>; 3],
    away: Vec<(f64, f64)>,
    end_s: f64,
    cost: String,
    peaks: [u64; 3],
}

/// Socket memory over time of each variant's median trial; nothing without samples.
pub(super) fn queues(run: &Run) -> Option<Figure> {
    let stacks: Vec<Stack> = of_variants(run)
        .filter_map(|(variant, samples)| stack(variant, samples))
        .filter(|stack| stack.layers.iter().flatten().any(|(_, bytes)| *bytes > 0.0))
        .collect();
    (!stacks.is_empty()).then(|| Figure {
        title: "Receive memory of the sockets, sampled".into(),
        caption: "The first receiving sockets of the median trial of each variant, inside the measured window, stacked: payload \
                  that the reader has not read yet, the rest of sk_rmem_alloc (overhead, and segments out of order), and \
                  the backlog of sockets that their owner held. Each point is the largest value of its stretch. Shaded: \
                  a reader thread that got no CPU. Each picture has its own scale."
            .into(),
        keys: vec![
            Key::stroke(COLOURS[0], DASHES[0], "unread payload"),
            Key::stroke(COLOURS[1], DASHES[1], "+ overhead and out of order (sk_rmem_alloc)"),
            Key::stroke(COLOURS[2], DASHES[2], "+ backlog"),
            Key::block("var(--window)", 8.0, "a reader off its CPU"),
        ],
        panels: stacks.iter().enumerate().map(|(at, stack)| panel(stack, at)).collect(),
        table: table(&stacks),
    })
}

/// The samples of each variant's median trial, if it was sampled.
pub(super) fn of_variants(run: &Run) -> impl Iterator<Item = (&str, &TrialSamples)> {
    run.shown().into_iter().filter_map(|(variant, trial)| {
        let samples = run.samples.iter().find(|samples| samples.trial == trial.trial)?;
        Some((variant.name.as_str(), samples))
    })
}

/// A metric of one receiving entity.
pub(super) fn series<'a>(
    samples: &'a TrialSamples,
    entity: &str,
    metric: &str,
) -> Option<&'a SampleSeries> {
    let fits =
        |s: &&SampleSeries| s.side == PathSide::Rx && s.entity == entity && s.metric == metric;
    samples.series.iter().find(fits)
}

fn stack(variant: &str, samples: &TrialSamples) -> Option<Stack> {
    let column = |metric| series(samples, "all", metric).map(|series| series.values.as_slice());
    let (unread, rmem) = (column("unread_bytes")?, column("rmem_bytes")?);
    let backlog = column("backlog_bytes")?;
    let start = *samples.t_ns.first()?;
    let second = |t: i64| (t - start) as f64 / 1e9;
    let value = |column: &[Option<u64>], at: usize| column.get(at).copied().flatten().unwrap_or(0);
    let peak = |column: &[Option<u64>]| column.iter().flatten().copied().max().unwrap_or(0);
    let sums = |at: usize| {
        let (unread, rmem) = (value(unread, at), value(rmem, at));
        // Payload is part of the memory; read at two moments, it may appear slightly larger.
        [unread.min(rmem), rmem, rmem + value(backlog, at)].map(|bytes| bytes as f64)
    };
    let mut layers = [Vec::new(), Vec::new(), Vec::new()];
    let step = samples.t_ns.len().div_ceil(POINTS).max(1);
    for from in (0..samples.t_ns.len()).step_by(step) {
        let to = (from + step).min(samples.t_ns.len());
        let top =
            (from..to).map(sums).fold([0.0; 3], |a, b| [0, 1, 2].map(|i| f64::max(a[i], b[i])));
        for (layer, bytes) in layers.iter_mut().zip(top) {
            layer.push((second(samples.t_ns[from]), bytes));
        }
    }
    let cost = &samples.cost;
    let share = number::percent(cost.cpu_s, cost.span_s);
    Some(Stack {
        variant: variant.to_owned(),
        trial: samples.trial,
        layers,
        away: away(samples, &second),
        end_s: second(*samples.t_ns.last()?),
        cost: format!(
            "{} samples, {} missed, {share} of CPU {}; {} sockets not followed",
            cost.samples_count,
            cost.missed_count,
            cost.cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            cost.unfollowed_sockets_count
        ),
        peaks: [peak(unread), peak(rmem), peak(backlog)],
    })
}

/// Stretches in which the first reader thread's CPU time did not change although data waited for it.
fn away(samples: &TrialSamples, second: &impl Fn(i64) -> f64) -> Vec<(f64, f64)> {
    let (Some(run), Some(unread)) =
        (series(samples, "thread0", "run_ns"), series(samples, "all", "unread_bytes"))
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut since: Option<usize> = None;
    let waits = |at: usize| unread.values.get(at).copied().flatten().is_some_and(|bytes| bytes > 0);
    for at in 1..samples.t_ns.len() {
        let still = run.values.get(at) == run.values.get(at - 1) && waits(at);
        match (still, since) {
            (true, None) => since = Some(at - 1),
            (false, Some(from)) => {
                found.push((samples.t_ns[from], samples.t_ns[at - 1]));
                since = None;
            }
            _ => {}
        }
    }
    found.retain(|(from, to)| to - from >= STILL_NS);
    found.into_iter().map(|(from, to)| (second(from), second(to))).collect()
}

fn panel(stack: &Stack, at: usize) -> Panel {
    let top = roof(stack.layers[2].iter().map(|(_, bytes)| *bytes));
    let curve = |n: usize| Curve { fill: true, ..Curve::nth(stack.layers[n].clone(), n, 1.6) };
    let x = Axis::to(stack.end_s.max(1e-3), "seconds of the window", number::plain);
    let mut panel = Panel::over_time(("sampled", at), &stack.variant, x, Axis::bytes(top, "bytes"));
    // From the top down, so that each lower layer covers the part that is its own.
    panel.wide.curves = vec![curve(2), curve(1), curve(0)];
    panel.wide.shades.clone_from(&stack.away);
    panel
}

fn table(stacks: &[Stack]) -> Table {
    let heads = "variant | #trial | #unread, most | #sk_rmem_alloc, most | #backlog, most | \
                 #reader off its CPU | #longest | the sampling itself";
    let rows = stacks.iter().map(|stack| {
        let spans = || stack.away.iter().map(|(from, to)| to - from);
        let mut row = vec![stack.variant.clone(), stack.trial.to_string()];
        row.extend(stack.peaks.map(|bytes| number::bytes(bytes as f64)));
        row.push(number::seconds(spans().sum()));
        row.push(number::seconds(spans().fold(0.0, f64::max)));
        row.push(stack.cost.clone());
        row
    });
    Table::of(heads, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rxpath_record::samples::SamplerCost;

    fn made(values: &[(u64, u64)]) -> TrialSamples {
        let series = |entity: &str, metric: &str, values: Vec<u64>| SampleSeries {
            side: PathSide::Rx,
            entity: entity.into(),
            metric: metric.into(),
            counter: false,
            values: values.into_iter().map(Some).collect(),
        };
        let of = |pick: fn(&(u64, u64)) -> u64| values.iter().map(pick).collect::<Vec<_>>();
        TrialSamples {
            t_ns: (0..values.len() as i64).map(|ms| ms * 1_000_000).collect(),
            series: vec![
                series("all", "unread_bytes", of(|v| v.0)),
                series("all", "rmem_bytes", of(|v| v.0 * 2)),
                series("all", "backlog_bytes", of(|_| 5)),
                series("thread0", "run_ns", of(|v| v.1)),
            ],
            cost: SamplerCost::default(),
            ..TrialSamples::default()
        }
    }

    #[test]
    fn layers_are_sums_and_a_peak_survives_the_thinning() {
        let mut values = vec![(10, 0); 5000];
        values[2501] = (1000, 0);
        let stack = stack("v", &made(&values)).unwrap();
        assert!(stack.layers[0].len() <= POINTS);
        let top = |layer: usize| stack.layers[layer].iter().map(|(_, v)| *v).fold(0.0, f64::max);
        assert_eq!([top(0), top(1), top(2)].map(|bytes| bytes as u64), [1000, 2000, 2005]);
        assert_eq!(stack.peaks, [1000, 2000, 5]);
    }

    #[test]
    fn a_reader_is_away_when_its_time_stands_still_and_something_waits() {
        // 20 ms on the CPU, 20 ms off it with bytes waiting, 20 ms idle with nothing to read.
        let values: Vec<(u64, u64)> = (0..60u64)
            .map(|ms| match ms {
                0..20 => (1, ms),
                20..40 => (9, 19),
                _ => (0, 19),
            })
            .collect();
        let stack = stack("v", &made(&values)).unwrap();
        assert_eq!(stack.away.len(), 1);
        let (from, to) = stack.away[0];
        assert!((from - 0.019).abs() < 1e-9 && (to - 0.039).abs() < 1e-9, "{from} {to}");
    }
}
