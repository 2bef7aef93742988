//! The sampled ring between the sender's device and NAPI: packets in it over time, compared with its size.

use rxpath_record::samples::TrialSamples;

use super::roof;
use super::sampled::{POINTS, of_variants, series};
use crate::number;
use crate::page::part::{Figure, Key, Panel, Table};
use crate::plot::{Axis, COLOURS, Curve, DASHES};
use crate::source::Run;

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
}

/// Occupancy over time of each variant's median trial; nothing where no ring was sampled.
pub(super) fn occupancy(run: &Run) -> Option<Figure> {
    let rings: Vec<Ring> =
        of_variants(run).filter_map(|(variant, samples)| ring(variant, samples)).collect();
    if rings.is_empty() {
        return None;
    }
    Some(Figure {
        title: "Packets in the receiving device's ring, sampled".into(),
        caption: "Packets that IP handed to the sending device, minus those dropped because the ring was full, minus those NAPI took \
                  out; the median trial of each variant, inside the measured window. NAPI counts a poll at its end, 64 \
                  packets at most. Each point is the largest value of its stretch; the dashed line is the \
                  capacity: the driver releases entries sixteen at a time, so up to 15 packets fewer fill the ring."
            .into(),
        keys: vec![
            Key::stroke(COLOURS[0], DASHES[0], "packets in the ring"),
            Key::stroke(COLOURS[1], DASHES[1], "what fits"),
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
    let step = packets.len().div_ceil(POINTS).max(1);
    let points = packets.chunks(step).enumerate().filter_map(|(at, values)| {
        let most = values.iter().flatten().copied().max()?;
        Some(((samples.t_ns.get(at * step)? - start) as f64 / 1e9, most as f64))
    });
    let seen: Vec<u64> = packets.iter().flatten().copied().collect();
    let full = seen.iter().filter(|packets| **packets * 10 >= capacity * 9).count();
    Some(Ring {
        variant: variant.to_owned(),
        trial: samples.trial,
        points: points.collect(),
        capacity,
        most: seen.iter().copied().max()?,
        mean: seen.iter().sum::<u64>() as f64 / seen.len() as f64,
        full: (full, seen.len()),
    })
}

fn panel(ring: &Ring, at: usize) -> Panel {
    let end = ring.points.last().map_or(1e-3, |(at, _)| at.max(1e-3));
    let fits = ring.capacity as f64;
    let curve = |points: Vec<(f64, f64)>, n: usize| Curve {
        points,
        colour: COLOURS[n],
        width: 1.6,
        dash: DASHES[n],
        fill: n == 0,
    };
    let top = roof(ring.points.iter().map(|(_, packets)| *packets).chain([fits]));
    let x = Axis::to(end, "seconds of the window", number::plain);
    let y = Axis::to(top, "packets", number::plain);
    let mut panel = Panel::over_time(("ring", at), &ring.variant, x, y);
    panel.wide.curves =
        vec![curve(ring.points.clone(), 0), curve(vec![(0.0, fits), (end, fits)], 1)];
    panel
}

fn table(rings: &[Ring]) -> Table {
    let mut table =
        Table::new("variant | #trial | #mean | #most | #fits | #samples nine tenths full");
    for ring in rings {
        table.rows.push(vec![
            ring.variant.clone(),
            ring.trial.to_string(),
            number::plain(ring.mean),
            ring.most.to_string(),
            ring.capacity.to_string(),
            number::percent(ring.full.0 as f64, ring.full.1 as f64),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use rxpath_core::Side;
    use rxpath_record::samples::SampleSeries;

    use super::*;

    fn samples(packets: Vec<Option<u64>>) -> TrialSamples {
        let series = |metric: &str, values: Vec<Option<u64>>| SampleSeries {
            side: Side::Rx,
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
    fn without_a_sampled_ring_there_is_no_figure() {
        assert!(ring("v", &TrialSamples::default()).is_none());
    }
}
