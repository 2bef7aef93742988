//! One row per variant: what was delivered, and what each step gained.

use rxpath_record::manifest::{Comparison, Manifest, Metric, VariantSummary};
use rxpath_record::metric;

use super::roof;
use crate::plot::{Axis, COLOURS, Chart, Curve, Dots, Form, INK, MUTED, Mark};
use crate::prelude::*;

const DELIVERED: &str = COLOURS[0];
const INTERVAL: &str = "var(--interval)";

/// The main metric: single trials, median, interval, and, of datagrams, what was offered.
pub(super) fn throughput(run: &Run) -> Option<Figure> {
    let (variants, main) = (&run.manifest.variants, run.main_metric());
    let rows: Vec<(&VariantSummary, &Metric)> =
        variants.iter().filter_map(|v| Some((v, v.metrics.get(main)?))).collect();
    if rows.is_empty() {
        return None;
    }
    let mut keys = vec![
        Key::marker(Form::Circle, DELIVERED, &format!("one trial, {}", metric::verb(main))),
        Key::marker(Form::Diamond, INK, "median"),
        Key::block(INTERVAL, 8.0, "95 % interval of the median"),
    ];
    let mut caption =
        "Each circle is one trial; the diamond is their median and the bar its 95 % interval \
                       (bootstrap over trials; none under five trials)."
            .to_owned();
    if main == DATAGRAMS {
        caption.push_str(
            " The cross is the median of what the sender offered: the distance to it is loss.",
        );
        keys.push(Key::marker(Form::Cross, MUTED, "median offered"));
    }
    Some(Figure {
        title: title(main),
        caption,
        keys,
        panels: vec![Panel::by_width("tp", |size| throughput_chart(&rows, main, size))],
        table: throughput_table(&rows, main),
    })
}

/// The main metric of datagrams, which also has an offered rate.
const DATAGRAMS: &str = "delivered_pps";

fn title(main: &str) -> String {
    match main {
        DATAGRAMS => "Delivered to the application, packets per second".into(),
        "delivered_bps" => "Delivered to the application, bits per second".into(),
        "achieved_rps" => "Answered requests per second".into(),
        "achieved_tps" => "Transactions per second".into(),
        other => words::metric(other),
    }
}

fn throughput_chart(rows: &[(&VariantSummary, &Metric)], main: &str, size: (&str, f64)) -> Chart {
    let offered = |v: &VariantSummary| v.median("offered_pps").filter(|_| main == DATAGRAMS);
    let top = roof(rows.iter().flat_map(|(v, m)| {
        m.values.iter().copied().chain([m.max]).chain(m.interval.map(|i| i[1])).chain(offered(v))
    }));
    let (mut curves, mut trials, mut medians, mut crosses) = (vec![], vec![], vec![], vec![]);
    for (at, (variant, metric)) in rows.iter().enumerate() {
        let y = (rows.len() - at) as f64;
        if let Some([low, high]) = metric.interval {
            curves.push(Curve::bar((low, high), y + 0.12, INTERVAL, 12.0));
        }
        trials.extend(metric.values.iter().map(|v| (*v, y - 0.24)));
        medians.push((metric.median, y + 0.12));
        crosses.extend(offered(variant).map(|v| (v, y + 0.12)));
    }
    let label = if main == DATAGRAMS { "packets per second" } else { metric::unit(main) };
    let names = names(rows.iter().map(|(v, _)| v.name.as_str()), size.1);
    let alt = format!("{} by variant", title(main));
    Chart {
        curves,
        dots: vec![
            Dots { points: crosses, colour: MUTED, radius: 4.0, form: Form::Cross },
            Dots { points: trials, colour: DELIVERED, radius: 3.6, form: Form::Circle },
            Dots { points: medians, colour: INK, radius: 4.6, form: Form::Diamond },
        ],
        ..Chart::of_rows(size, &alt, names, 44.0, Axis::to(top, label, number::short))
    }
}

/// Names from the bottom up, cut to the space in the picture.
pub(super) fn names<'a>(
    names: impl DoubleEndedIterator<Item = &'a str>,
    width: f64,
) -> Vec<String> {
    let limit = if width < 480.0 { 14 } else { 30 };
    names.rev().map(|name| cut(name, limit)).collect()
}

fn throughput_table(rows: &[(&VariantSummary, &Metric)], main: &str) -> Table {
    let mut table = Table::new(&format!(
        "variant | #trials | #{}, median | #95 % interval | #smallest | #largest | #offered, median | #loss, of offered, median",
        metric::verb(main)
    ));
    for (variant, metric) in rows {
        table.rows.push(vec![
            variant.name.clone(),
            variant.trials_count.to_string(),
            number::metric(main, metric.median),
            metric.interval.map_or("too few trials".into(), |ends| number::between(main, ends)),
            number::metric(main, metric.min),
            number::metric(main, metric.max),
            number::median(variant, "offered_pps"),
            number::median(variant, "loss_ratio"),
        ]);
    }
    table
}

/// The ratio with its interval and range, if the outcome is a ratio: only such rows share an axis.
fn factors(comparison: &Comparison) -> Option<(f64, Option<[f64; 2]>, [f64; 2])> {
    let effect = &comparison.effect;
    let ratio = effect.ratio.filter(|ratio| effect.change().is_none() && ratio.is_finite())?;
    Some((ratio, effect.interval, effect.range.unwrap_or([ratio; 2])))
}

/// The gain of each step that the scenario asks about.
pub(super) fn gains(run: &Run) -> Option<Figure> {
    let manifest = &run.manifest;
    let rows: Vec<&Comparison> =
        manifest.comparisons.iter().filter(|c| factors(c).is_some()).collect();
    (!rows.is_empty()).then(|| Figure {
        title: "What each step changed".into(),
        caption: caption(manifest),
        keys: vec![
            Key::marker(Form::Diamond, INK, "ratio, paired by block"),
            Key::block(INTERVAL, 8.0, "95 % interval"),
            Key::block(MUTED, 1.2, "smallest to largest ratio within a block"),
        ],
        panels: vec![Panel::by_width("gain", |size| gains_chart(&rows, size))],
        table: gains_table(&manifest.comparisons),
    })
}

fn caption(manifest: &Manifest) -> String {
    let floor = manifest.noise_floor.as_ref().map_or_else(
        || "This run has no A/A block, so its noise floor is not known.".into(),
        |floor| {
            format!(
                "Two trials of the same variant ({}) differed by {} in the A/A block: steps of that size can be noise.",
                floor.variant,
                floor.apart()
            )
        },
    );
    format!(
        "Each row divides a variant by its base; 1 is no change. Shares are compared by their difference and are in \
         the table only. {floor}"
    )
}

fn gains_chart(rows: &[&Comparison], size: (&str, f64)) -> Chart {
    let all: Vec<_> = rows.iter().filter_map(|row| factors(row)).collect();
    let ends = all.iter().flat_map(|(ratio, interval, range)| {
        interval.iter().flatten().chain(range).chain([ratio]).copied()
    });
    let top = roof(ends.chain([1.0]));
    let (mut curves, mut points) = (vec![], vec![]);
    for (at, (ratio, interval, range)) in all.iter().enumerate() {
        let y = (rows.len() - at) as f64;
        curves.extend(interval.map(|ends| Curve::bar(ends.into(), y, INTERVAL, 11.0)));
        curves.push(Curve::bar((*range).into(), y, MUTED, 1.2));
        points.push((*ratio, y));
    }
    let names = names(rows.iter().map(|c| c.variant.as_str()), size.1);
    let x = Axis::to(top, "variant ÷ base", number::plain);
    Chart {
        curves,
        dots: vec![Dots { points, colour: INK, radius: 4.6, form: Form::Diamond }],
        // No change.
        marks: vec![Mark { at: 1.0, vertical: true, dash: "4 3" }],
        ..Chart::of_rows(size, "Ratio of each variant to its base", names, 36.0, x)
    }
}

fn gains_table(rows: &[Comparison]) -> Table {
    let heads = "metric | variant | base | #change | #95 % interval | #range within blocks | \
                 #pairs | outcome | expected | published by others";
    let rows = rows.iter().map(|row| {
        let [interval, range] = row.effect.spans(&row.metric);
        vec![
            words::metric(&row.metric),
            row.variant.clone(),
            row.base.clone(),
            row.effect.amount(&row.metric),
            interval.unwrap_or_else(|| "none".into()),
            range.unwrap_or_else(|| "none".into()),
            row.pairs_count.to_string(),
            row.effect.verdict("blocks"),
            words::expected(row),
            row.published.as_ref().map_or("–".into(), |it| it.text(&row.metric)),
        ]
    });
    Table::of(heads, rows)
}
