//! A setting that has a number in several variants: the metrics over it, as such experiments are published.

use rxpath_core::SortFew;
use rxpath_record::manifest::{Metric, VariantSummary};
use rxpath_record::metric;

use super::roof;
use crate::plot::{Axis, COLOURS, Chart, Curve, Dots, Form, INK, Steps};
use crate::prelude::*;

/// Fewer are no curve.
const FEWEST: usize = 3;
/// From this ratio of the largest to the smallest value on, the axis is logarithmic.
const DECADES_FROM: f64 = 20.0;
/// Height of a picture, in CSS pixels.
const HEIGHT: f64 = 240.0;
const INTERVAL: &str = "var(--interval)";

/// The setting and the variants that differ in nothing else, by its value.
struct Swept<'a> {
    key: &'a str,
    points: Vec<(f64, &'a VariantSummary)>,
}

/// Throughput, times or shares over the setting.
pub(super) fn over_setting(run: &Run) -> Option<Figure> {
    let swept = swept(&run.manifest.variants)?;
    let metrics: Vec<String> = metrics(run)
        .into_iter()
        .filter(|name| {
            swept.points.iter().filter(|(_, v)| v.metrics.contains_key(name)).count() >= FEWEST
        })
        .collect();
    if metrics.is_empty() {
        return None;
    }
    let panels = metrics.iter().enumerate().map(|(at, name)| {
        Panel::of_several(&format!("swept{at}"), &words::metric(name), |size| {
            chart(&swept, name, size)
        })
    });
    Some(Figure {
        title: format!("Over {}", swept.key),
        caption: "Each circle is one trial; the diamonds are medians, joined in the order of the setting, and the bars their \
                  95 % intervals (bootstrap over trials; none under five trials)."
            .into(),
        keys: vec![
            Key::marker(Form::Circle, COLOURS[0], "one trial"),
            Key::marker(Form::Diamond, INK, "median"),
            Key::block(INTERVAL, 8.0, "95 % interval of the median"),
        ],
        panels: panels.collect(),
        table: table(&swept, &metrics),
    })
}

/// The key with the most variants that differ from the scenario in it alone, by a number.
fn swept(variants: &[VariantSummary]) -> Option<Swept<'_>> {
    let only = |variant: &'_ VariantSummary| -> Option<(String, f64)> {
        let mut settings = variant.settings.iter();
        let (key, value) = settings.next()?;
        let value = value.as_f64()?;
        settings.next().is_none().then(|| (key.clone(), value))
    };
    let first = variants.iter().find_map(only)?.0;
    let key = variants.iter().find_map(|variant| variant.settings.get_key_value(&first))?.0;
    let mut points: Vec<(f64, &VariantSummary)> = variants
        .iter()
        .filter_map(|variant| Some((only(variant).filter(|(own, _)| own == key)?.1, variant)))
        .collect();
    points.sort_few_by(|a, b| a.0.total_cmp(&b.0));
    (points.len() >= FEWEST).then_some(Swept { key, points })
}

/// The main metric and those that are compared; next to a median, the 99th percentile of the same times.
fn metrics(run: &Run) -> Vec<String> {
    let mut all = vec![run.main_metric().to_owned()];
    for comparison in &run.manifest.comparisons {
        let tail = comparison.metric.replace("_p50_", "_p99_");
        for name in [comparison.metric.clone(), tail] {
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    all
}

fn chart(swept: &Swept<'_>, name: &str, (id, width): (&str, f64)) -> Chart {
    let of = |variant: &'_ VariantSummary| variant.metrics.get(name).cloned();
    let points: Vec<(f64, Metric)> =
        swept.points.iter().filter_map(|(at, variant)| Some((*at, of(variant)?))).collect();
    let (least, most) = (points[0].0, points[points.len() - 1].0);
    let is_log = least > 0.0 && most / least >= DECADES_FROM;
    let place = |value: f64| if is_log { value.log10() } else { value };
    let (start, end) = (place(least), place(most));
    let space = (end - start) * 0.04;
    let x = Axis {
        label: swept.key.to_owned(),
        range: (start - space, end + space),
        format: if is_log { |power| number::short(10f64.powf(power)) } else { number::short },
        steps: if is_log { Steps::Whole } else { Steps::Decimal },
    };
    let values = points.iter().flat_map(|(_, metric)| {
        metric.values.iter().copied().chain([metric.max]).chain(metric.interval.map(|i| i[1]))
    });
    let y = Axis::to(roof(values), metric::unit(name), number::short);
    let mut curves: Vec<Curve> = points
        .iter()
        .filter_map(|(at, metric)| {
            let [low, high] = metric.interval?;
            let points = vec![(place(*at), low), (place(*at), high)];
            Some(Curve { points, colour: INTERVAL, width: 8.0, ..Curve::default() })
        })
        .collect();
    let medians: Vec<(f64, f64)> =
        points.iter().map(|(at, metric)| (place(*at), metric.median)).collect();
    curves.push(Curve { points: medians.clone(), colour: INK, width: 1.4, ..Curve::default() });
    let trials = points.iter().flat_map(|(at, metric)| {
        metric.values.iter().map(|value| (place(*at), *value)).collect::<Vec<_>>()
    });
    let alt = format!("{} over {}", words::metric(name), swept.key);
    Chart {
        curves,
        dots: vec![
            Dots { points: trials.collect(), colour: COLOURS[0], radius: 3.0, form: Form::Circle },
            Dots { points: medians, colour: INK, radius: 4.2, form: Form::Diamond },
        ],
        ..Chart::new(id.into(), alt, (width, HEIGHT), x, y)
    }
}

fn table(swept: &Swept<'_>, metrics: &[String]) -> Table {
    let heads: Vec<String> =
        metrics.iter().map(|name| format!("#{}, median", words::metric(name))).collect();
    let rows = swept.points.iter().map(|(at, variant)| {
        let of = |name: &String| number::median(variant, name);
        std::iter::once(number::short(*at)).chain(metrics.iter().map(of)).collect()
    });
    Table::of(&format!("#{} | {}", swept.key, heads.join(" | ")), rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn variant(name: &str, settings: serde_json::Value) -> VariantSummary {
        let settings = serde_json::from_value(settings).unwrap();
        VariantSummary { name: name.into(), settings, ..VariantSummary::default() }
    }

    #[test]
    fn variants_that_differ_in_one_number_are_a_curve_and_others_are_left_out() {
        let idle = variant("idle", json!({ "load.bitrate": "10k", "load.buffer": 64 }));
        let with = |n: u64| variant(&format!("c{n}"), json!({ "load.connections": n }));
        let all = [idle, with(10), with(1), with(100)];
        let found = swept(&all).unwrap();
        assert_eq!(found.key, "load.connections");
        let values: Vec<f64> = found.points.iter().map(|(at, _)| *at).collect();
        assert_eq!(values, [1.0, 10.0, 100.0]);
        assert!(swept(&all[..3]).is_none(), "two points are no curve");
        assert!(swept(&[variant("a", json!({})), variant("b", json!({ "x": "y" }))]).is_none());
    }
}
