//! The search for the highest rate that holds: loss and latency of each trial over its rate, and the bounds.

use rxpath_record::capacity::{Capacity, LoadClass, TriedLoad};

use super::roof;
use crate::plot::{Axis, COLOURS, Chart, DASHES, Dots, Form, INK, Mark};
use crate::prelude::*;

/// Height of a picture, in CSS pixels.
const HEIGHT: f64 = 240.0;

/// Loss and latency over rate; nothing where no capacity was searched.
pub(super) fn search(run: &Run) -> Option<Figure> {
    let found = run.manifest.capacity.as_ref().filter(|found| !found.loads.is_empty())?;
    let unit = &found.unit;
    let mut panels = vec![picture(found, ("loss", "Loss"), "% of the target rate", &|load| {
        load.loss_ratios.iter().map(|ratio| ratio * 100.0).collect()
    })];
    if found.loads.iter().any(|load| !load.latencies_us.is_empty()) {
        let title = format!("Latency, {}", found.quantile());
        let latency = |load: &TriedLoad| load.latencies_us.clone();
        panels.push(picture(found, ("latency", &title), "us", &latency));
    }
    Some(Figure {
        title: format!("The highest rate that holds, {unit} per second"),
        caption: format!(
            "{}: {}. Each circle is one trial at its target rate. The solid line is the highest rate that holds, the \
             dashed line the lowest that fails.",
            found.variant,
            found.sentence()
        ),
        keys: vec![
            Key::marker(Form::Circle, COLOURS[0], "one trial"),
            Key::stroke(INK, "", "lower bound"),
            Key::stroke(INK, DASHES[1], "upper bound"),
        ],
        panels,
        table: table(found),
    })
}

fn picture(
    found: &Capacity,
    (what, title): (&str, &str),
    label: &str,
    values: &dyn Fn(&TriedLoad) -> Vec<f64>,
) -> Panel {
    let points: Vec<(f64, f64)> = found
        .loads
        .iter()
        .flat_map(|load| values(load).into_iter().map(|value| (load.rate_per_s, value)))
        .collect();
    let mark = |bound: Option<f64>, dash| bound.map(|at| Mark { at, vertical: true, dash });
    Panel::of_several(&format!("capacity-{what}"), title, |(id, width)| {
        let x = Axis::to(
            roof(found.loads.iter().map(|load| load.rate_per_s)),
            &format!("{} per second, target rate", found.unit),
            number::short,
        );
        let y = Axis::to(roof(points.iter().map(|(_, value)| *value)), label, number::short);
        let alt = format!("{what} of each trial over its rate");
        let marks = mark(found.lower_per_s, "").into_iter();
        Chart {
            dots: vec![Dots {
                points: points.clone(),
                colour: COLOURS[0],
                radius: 3.6,
                form: Form::Circle,
            }],
            marks: marks.chain(mark(found.upper_per_s, DASHES[1])).collect(),
            ..Chart::new(id.into(), alt, (width, HEIGHT), x, y)
        }
    })
}

fn table(found: &Capacity) -> Table {
    let mut table = Table::new(&format!(
        "#{} per second, target | #good trials, s | #bad trials, s | #worst loss, of target | #worst {}, us | verdict",
        found.unit,
        found.quantile()
    ));
    let worst = |values: &[f64]| values.iter().copied().reduce(f64::max);
    for load in &found.loads {
        table.rows.push(vec![
            number::short(load.rate_per_s),
            number::plain(load.good_s),
            number::plain(load.bad_s),
            worst(&load.loss_ratios).map_or("–".into(), |ratio| number::percent(ratio, 1.0)),
            worst(&load.latencies_us).map_or("–".into(), number::plain),
            match load.class {
                LoadClass::LowerBound => "holds",
                LoadClass::UpperBound => "fails",
                LoadClass::Undecided => "too few trials to say",
            }
            .into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use rxpath_record::manifest::Manifest;

    use super::*;

    fn run(capacity: Option<Capacity>) -> Run {
        Run {
            directory: "r".into(),
            manifest: Manifest { capacity, ..Manifest::default() },
            environment: None,
            events: Vec::new(),
            samples: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn found(latencies_us: Vec<f64>) -> Capacity {
        let load = |rate_per_s, class, loss: f64| TriedLoad {
            rate_per_s,
            class,
            loss_ratios: vec![0.0, loss],
            latencies_us: latencies_us.clone(),
            ..TriedLoad::default()
        };
        Capacity {
            unit: "requests".into(),
            lower_per_s: Some(100.0),
            upper_per_s: Some(103.0),
            loads: vec![
                load(100.0, LoadClass::LowerBound, 0.0),
                load(103.0, LoadClass::UpperBound, 0.05),
            ],
            ..Capacity::default()
        }
    }

    #[test]
    fn every_trial_is_a_mark_and_both_bounds_are_lines() {
        let figure = search(&run(Some(found(vec![900.0, 1500.0])))).unwrap();
        assert_eq!(figure.panels.len(), 2);
        let loss = &figure.panels[0].wide;
        assert_eq!((loss.dots[0].points.len(), loss.marks.len()), (4, 2));
        assert!(loss.dots[0].points.contains(&(103.0, 5.0)));
        assert_eq!(figure.table.rows[1][3..], ["5.0 %", "1500", "fails"].map(String::from));
        assert!(figure.caption.contains("holds 100 requests/s"));
    }

    #[test]
    fn datagrams_have_no_latency_and_a_run_without_a_search_no_figure() {
        assert_eq!(search(&run(Some(found(Vec::new())))).unwrap().panels.len(), 1);
        assert!(search(&run(None)).is_none());
        assert!(search(&run(Some(Capacity::default()))).is_none());
    }
}
