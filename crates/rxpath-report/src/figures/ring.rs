//! The sampled ring between the sender's device and NAPI: packets in it over time, compared with its size and with the
//! published model of it.

use rxpath_model::token_bucket::TokenBucket;
use rxpath_record::samples::TrialSamples;

use super::roof;
use super::sampled::{POINTS, of_variants, series};
use crate::plot::{Axis, COLOURS, Curve, DASHES};
use crate::prelude::*;

/// One variant's ring.
struct Ring {
    variant: String,
    trial: u32,
    points: Vec<(f64, f64)>,
    capacity: u64,
    most: u64,
    mean: f64,
    /// Samples at which it held at least nine tenths of what fits, and all samples.
    full: (usize, usize),
    model: Option<Model>,
}

/// The token bucket over the measured arrivals and releases.
struct Model {
    points: Vec<(f64, f64)>,
    /// Packets that it loses in the window, and those that the ring lost.
    lost: (f64, u64),
}

/// Occupancy over time of each variant's median trial; nothing where no ring was sampled.
pub(super) fn occupancy(run: &Run) -> Option<Figure> {
    let rings: Vec<Ring> =
        of_variants(run).filter_map(|(variant, samples)| ring(variant, samples)).collect();
    (!rings.is_empty()).then(|| Figure {
        title: "Packets in the receiving device's ring, sampled".into(),
        caption: "Packets that IP handed to the sending device, minus those dropped because the ring was full, minus those NAPI took \
                  out; the median trial of each variant, inside the measured window. NAPI counts a poll at its end, 64 \
                  packets at most. Each point is the largest value of its stretch; the dashed line is the \
                  capacity: the driver releases entries sixteen at a time, so up to 15 packets fewer fill the ring. \
                  The model is the published token bucket (Wu, Crawford, Bowden 2007) over the same samples: it knows \
                  the capacity, what arrived and what was taken out, and has to find what is in the ring and what is lost."
            .into(),
        keys: vec![
            Key::stroke(COLOURS[0], DASHES[0], "packets in the ring"),
            Key::stroke(COLOURS[1], DASHES[1], "what fits"),
            Key::stroke(COLOURS[2], DASHES[2], "by the model"),
        ],
        panels: rings.iter().enumerate().map(|(at, ring)| panel(ring, at)).collect(),
        table: table(&rings),
    })
}

fn ring(variant: &str, samples: &TrialSamples) -> Option<Ring> {
    let packets = &series(samples, "ring", "occupancy_packets")?.values;
    let capacity =
        series(samples, "ring", "capacity_packets")?.values.iter().flatten().copied().max()?;
    let start = *samples.t_ns.first()?;
    let most = |values: &[Option<f64>]| values.iter().flatten().copied().reduce(f64::max);
    let thinned = |values: &[Option<f64>]| -> Vec<(f64, f64)> {
        let step = values.len().div_ceil(POINTS).max(1);
        let points = values.chunks(step).enumerate().filter_map(|(at, values)| {
            Some(((samples.t_ns.get(at * step)? - start) as f64 / 1e9, most(values)?))
        });
        points.collect()
    };
    let measured: Vec<Option<f64>> =
        packets.iter().map(|packets| packets.map(|packets| packets as f64)).collect();
    let seen: Vec<u64> = packets.iter().flatten().copied().collect();
    let full = seen.iter().filter(|packets| **packets * 10 >= capacity * 9).count();
    Some(Ring {
        variant: variant.to_owned(),
        trial: samples.trial,
        points: thinned(&measured),
        model: model(samples, capacity)
            .map(|(inside, lost)| Model { points: thinned(&inside), lost }),
        capacity,
        most: seen.iter().copied().max()?,
        mean: seen.iter().sum::<u64>() as f64 / seen.len() as f64,
        full: (full, seen.len()),
    })
}

/// What the bucket holds at each sample, and what it and the ring lost between the first and the last; nothing for
/// samples without the counters.
fn model(samples: &TrialSamples, capacity: u64) -> Option<(Vec<Option<f64>>, (f64, u64))> {
    let counter = |metric| Some(&series(samples, "ring", metric)?.values);
    let (handed, refused, polled) =
        (counter("handed_packets")?, counter("refused_packets")?, counter("polled_packets")?);
    let all = handed.iter().zip(refused).zip(polled);
    let mut before: Option<(u64, u64, u64)> = None;
    let (mut bucket, mut lost) = (TokenBucket::full(capacity), 0);
    let inside = all.map(|((handed, refused), polled)| {
        let now = ((*handed)?, (*refused)?, (*polled)?);
        match before.replace(now) {
            None => {
                bucket = TokenBucket::holding(capacity, now.0.saturating_sub(now.1 + now.2));
            }
            Some(then) => {
                bucket.step((now.0 - then.0) as f64, (now.2 - then.2) as f64);
                lost += now.1 - then.1;
            }
        }
        Some(bucket.occupancy_packets())
    });
    let inside = inside.collect();
    Some((inside, (bucket.lost_packets(), lost)))
}

fn panel(ring: &Ring, at: usize) -> Panel {
    let end = ring.points.last().map_or(1e-3, |(at, _)| at.max(1e-3));
    let fits = ring.capacity as f64;
    let curve = |points, n: usize| Curve { fill: n == 0, ..Curve::nth(points, n, 1.6) };
    let top = roof(ring.points.iter().map(|(_, packets)| *packets).chain([fits]));
    let x = Axis::to(end, "seconds of the window", number::plain);
    let y = Axis::to(top, "packets", number::plain);
    let mut panel = Panel::over_time(("ring", at), &ring.variant, x, y);
    let model = ring.model.iter().map(|model| curve(model.points.clone(), 2));
    let measured = [curve(ring.points.clone(), 0), curve(vec![(0.0, fits), (end, fits)], 1)];
    panel.wide.curves = measured.into_iter().chain(model).collect();
    panel
}

fn table(rings: &[Ring]) -> Table {
    let mut table = Table::new(
        "variant | #trial | #mean | #most | #fits | #samples nine tenths full | #lost in the ring | #lost by the model",
    );
    for ring in rings {
        let lost = ring.model.as_ref().map(|model| model.lost);
        let cell = |lost: Option<String>| lost.unwrap_or_else(|| "–".into());
        table.rows.push(vec![
            ring.variant.clone(),
            ring.trial.to_string(),
            number::plain(ring.mean),
            ring.most.to_string(),
            ring.capacity.to_string(),
            number::percent(ring.full.0 as f64, ring.full.1 as f64),
            cell(lost.map(|(_, ring)| number::count(ring))),
            cell(lost.map(|(model, _)| number::count(model.round() as u64))),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use rxpath_core::PathSide;
    use rxpath_record::samples::SampleSeries;

    use super::*;

    fn samples(packets: Vec<Option<u64>>) -> TrialSamples {
        let series = |metric: &str, values: Vec<Option<u64>>| SampleSeries {
            side: PathSide::Rx,
            entity: "ring".into(),
            metric: metric.into(),
            counter: false,
            values,
        };
        let n = packets.len();
        TrialSamples {
            t_ns: (0..n as i64).map(|ms| ms * 1_000_000).collect(),
            series: vec![
                series("occupancy_packets", packets),
                series("capacity_packets", vec![Some(255); n]),
            ],
            ..TrialSamples::default()
        }
    }

    #[test]
    fn a_peak_survives_the_thinning_and_gaps_are_no_zeros() {
        let mut packets = vec![Some(10); 2000];
        packets[777] = Some(255);
        packets[778] = None;
        let ring = ring("v", &samples(packets)).unwrap();
        assert!(ring.points.len() <= POINTS && ring.most == 255 && ring.full == (1, 1999));
        assert!(ring.points.iter().any(|(_, packets)| *packets > 254.5));
        assert!((ring.mean - 10.12).abs() < 0.01, "{}", ring.mean);
    }

    #[test]
    fn the_model_loses_what_arrives_at_a_full_ring() {
        let mut counted = samples((0..40).map(|ms| Some((20 * ms).min(256))).collect());
        let n = counted.t_ns.len() as u64;
        let mut add = |metric: &str, of: fn(u64) -> u64| {
            let values = (0..n).map(|ms| (ms != 7).then_some(of(ms))).collect();
            counted.series.push(SampleSeries {
                metric: metric.into(),
                counter: true,
                values,
                ..counted.series[0].clone()
            });
        };
        add("handed_packets", |ms| 1000 + 20 * ms);
        add("refused_packets", |ms| (20 * ms).saturating_sub(256));
        add("polled_packets", |_| 1000);
        let ring = ring("v", &counted).unwrap();
        let model = ring.model.unwrap();
        // The samples' capacity is 255.
        assert_eq!(model.lost, (525.0, 524));
        assert_eq!(model.points.len(), 39, "a gap stays a gap");
        assert!(model.points.iter().all(|(_, packets)| *packets <= 255.0));
    }

    #[test]
    fn without_a_sampled_ring_there_is_no_figure() {
        assert!(ring("v", &TrialSamples::default()).is_none());
    }
}
