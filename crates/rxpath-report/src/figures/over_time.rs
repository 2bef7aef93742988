//! What happened inside a trial: rates and queues over time, one small picture per variant.

use rxpath_record::manifest::{Trial, VariantSummary};

use super::roof;
use crate::plot::{Axis, COLOURS, Curve, DASHES, INK, MUTED, Mark};
use crate::prelude::*;
use crate::series::{Samples, Series};

/// One variant's curves with what belongs to them.
struct Shown<'a> {
    variant: &'a VariantSummary,
    trial: &'a Trial,
    window: Option<(f64, f64)>,
    series: Vec<Series>,
}

/// Collects the series of every variant's typical trial; variants without samples are left out.
fn shown(run: &Run, pick: impl Fn(&Samples) -> Vec<Series>) -> Vec<Shown<'_>> {
    let mut all = Vec::new();
    for (variant, trial) in run.shown() {
        let samples = Samples::of(&run.events, trial.trial);
        let Some(start) = samples.start_ns() else { continue };
        let series = pick(&samples);
        let at = |t: i64| (t - start) as f64 / 1e9;
        let [from, to] = trial.window_ns;
        let window = (to > from).then(|| (at(from), at(to)));
        if series.iter().any(|s| s.points.len() > 1) {
            all.push(Shown { variant, trial, window, series });
        }
    }
    all
}

/// Cumulative counters of the load's side, by protocol.
const SENT: [&str; 5] = [
    "offered_packets",
    "sent_packets",
    "sent_bytes",
    "answered_transactions_total",
    "answered_requests_total",
];
/// The same of the server's side.
const TAKEN: [&str; 4] =
    ["delivered_packets", "delivered_bytes", "served_transactions_total", "served_requests_total"];

/// What each side did per second over the trial.
pub(super) fn rates(run: &Run) -> Option<Figure> {
    let named = |samples: &Samples, metric: &str| {
        samples.rate(metric).map(|series| Series { entity: metric.into(), ..series })
    };
    let all = shown(run, |samples| {
        let first = |names: &[&str]| names.iter().find_map(|name| named(samples, name));
        first(&SENT).into_iter().chain(first(&TAKEN)).collect()
    });
    if all.is_empty() {
        return None;
    }
    let top = roof(points(&all).map(|(_, v)| v));
    let (unit, by_sender, by_receiver): (&str, &str, &str) = match run.main_metric() {
        "delivered_bps" => ("bytes/s", "sent by the sender", "delivered to the application"),
        "achieved_rps" => ("requests/s", "answered, as the client counts", "served"),
        "achieved_tps" => ("transactions/s", "answered, as the client counts", "served"),
        _ => ("packets/s", "offered by the sender", "delivered to the application"),
    };
    let form = if unit == "packets/s" { number::pps } else { number::short };
    let panels = all.iter().enumerate().map(|(at, shown)| {
        let curves = shown.series.iter().map(|series| {
            let delivered = TAKEN.contains(&series.entity.as_str());
            Curve {
                points: series.points.clone(),
                colour: if delivered { COLOURS[0] } else { MUTED },
                width: if delivered { 2.2 } else { 1.6 },
                dash: if delivered { "" } else { "5 3" },
                fill: false,
            }
        });
        panel(shown, ("rate", at), curves.collect(), Axis::to(top, unit, number::short))
    });
    Some(Figure {
        title: "Rates over the trial".into(),
        caption: "The median trial of each variant; each point is the mean rate since the sample before. The measured \
                  window is tinted; what lies outside is ramp, settling and draining. All pictures share one scale."
            .into(),
        keys: vec![
            Key::stroke(MUTED, "5 3", by_sender),
            Key::stroke(COLOURS[0], "", by_receiver),
        ],
        panels: panels.collect(),
        table: series_table(&all, unit, form),
    })
}

/// Bytes in each socket's receive queue over the trial.
pub(super) fn queues(run: &Run) -> Option<Figure> {
    let all = shown(run, |samples| samples.gauges("rmem_bytes"));
    if all.is_empty() {
        return None;
    }
    let most = all.iter().map(|shown| shown.series.len()).max().unwrap_or(1);
    let panels = all.iter().enumerate().map(|(at, shown)| {
        let limit = shown.trial.evidence.sockets.iter().map(|s| s.rcvbuf_bytes).max();
        let limit = limit.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64);
        let top = roof(shown.series.iter().flat_map(|s| &s.points).map(|(_, v)| *v).chain(limit));
        let numbered = shown.series.iter().enumerate();
        let curves = numbered.map(|(n, series)| Curve::nth(series.points.clone(), n, 1.8));
        let y = Axis::bytes(top, "bytes queued");
        let mut panel = panel(shown, ("queue", at), curves.collect(), y);
        panel.wide.marks.extend(limit.map(|at| Mark { at, vertical: false, dash: "1 3" }));
        panel
    });
    let mut keys: Vec<Key> = (0..most.min(8))
        .map(|n| Key::stroke(COLOURS[n], DASHES[n], &format!("socket {n}")))
        .collect();
    keys.push(Key::stroke(INK, "1 3", "sk_rcvbuf: the queue is full"));
    Some(Figure {
        title: "Socket receive queue over the trial".into(),
        caption: "sk_rmem_alloc of each receiving socket, sampled; the median trial of each variant. A queue that \
                  stands at its limit drops; one that stays near zero waits for packets. Each picture has its own scale."
            .into(),
        keys,
        panels: panels.collect(),
        table: series_table(&all, "bytes", number::bytes),
    })
}

fn points<'a>(all: &'a [Shown]) -> impl Iterator<Item = (f64, f64)> + 'a {
    all.iter().flat_map(|shown| &shown.series).flat_map(|series| series.points.iter().copied())
}

fn panel(shown: &Shown, id: (&str, usize), curves: Vec<Curve>, y: Axis) -> Panel {
    let end = shown.series.iter().flat_map(|s| &s.points).map(|(t, _)| *t).fold(0.0, f64::max);
    let end = if end > 0.0 { end } else { 1.0 };
    let window = shown.window.map(|(from, to)| (from.clamp(0.0, end), to.clamp(0.0, end)));
    let x = Axis::to(end, "seconds since the first sample", number::plain);
    let mut panel = Panel::over_time(id, &shown.variant.name, x, y);
    panel.wide.curves = curves;
    panel.wide.shades.extend(window.filter(|(from, to)| to > from));
    panel
}

/// Most rows that a table of samples shows; the rest is in `events.jsonl`.
const ROWS: usize = 400;

fn series_table(all: &[Shown], unit: &str, format: fn(f64) -> String) -> Table {
    let mut table = Table::new(&format!("variant | #trial | series | #t, s | #{unit}"));
    for shown in all {
        for series in &shown.series {
            table.rows.extend(series.points.iter().map(|(t, value)| {
                vec![
                    shown.variant.name.clone(),
                    shown.trial.trial.to_string(),
                    series.entity.replace('_', " "),
                    format!("{t:.3}"),
                    format(*value),
                ]
            }));
        }
    }
    if table.rows.len() > ROWS {
        let left_out = table.rows.len() - ROWS;
        table.rows.truncate(ROWS);
        let note = format!("{left_out} more rows are in events.jsonl");
        table.rows.push(vec![note, String::new(), String::new(), String::new(), String::new()]);
    }
    table
}
