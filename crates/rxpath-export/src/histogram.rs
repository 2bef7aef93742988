//! Classic histograms of the text format: latency of stages, packets of polls. The kernel side counts by power of two, and
//! each bound here lies between two of its buckets, so that no count is divided.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use rxpath_core::Log2;

/// How a histogram is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// The highest value of each bucket but the last, in the kernel side's unit.
    bounds: &'static [u64],
    /// What a value is divided by to be shown.
    per_unit: f64,
}

/// From ns to seconds: 1 us to 1.1 s, each bound four times the one before.
pub(crate) const SECONDS: Scale = Scale {
    bounds: &[
        1 << 10,
        1 << 12,
        1 << 14,
        1 << 16,
        1 << 18,
        1 << 20,
        1 << 22,
        1 << 24,
        1 << 26,
        1 << 28,
        1 << 30,
    ],
    per_unit: 1e9,
};
/// Packets of a poll: 64, which most drivers take at most, are above all bounds.
pub(crate) const PACKETS: Scale = Scale { bounds: &[0, 1, 3, 7, 15, 31, 63], per_unit: 1.0 };

/// Counts of one label since the start.
#[derive(Clone, Debug)]
struct Row {
    /// Not added up; the last is above all bounds.
    counts: Vec<u64>,
    sum: f64,
}

impl Row {
    fn new(scale: Scale) -> Self {
        Self { counts: vec![0; scale.bounds.len() + 1], sum: 0.0 }
    }

    fn add(&mut self, scale: Scale, values: &Log2, sum: f64) {
        for (bucket, count) in values.buckets.iter().enumerate() {
            let (_, highest) = values.range(bucket);
            let at = scale.bounds.iter().position(|bound| highest <= *bound);
            self.counts[at.unwrap_or(scale.bounds.len())] += count;
        }
        // As in counters: what is no number adds nothing.
        self.sum += if sum.is_finite() { sum.max(0.0) } else { 0.0 };
    }

    fn histogram(&self, scale: Scale) -> Histogram {
        let mut count = 0;
        let mut bucket = |in_it: u64, upper: f64| {
            count += in_it;
            let mut bucket = Bucket::default();
            bucket.set_cumulative_count(count);
            bucket.set_upper_bound(upper);
            bucket
        };
        let bounds = scale.bounds.iter().map(|bound| *bound as f64 / scale.per_unit);
        let buckets = self.counts.iter().zip(bounds).map(|(n, upper)| bucket(*n, upper)).collect();
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets);
        histogram.set_sample_count(self.counts.iter().sum());
        histogram.set_sample_sum(self.sum);
        histogram
    }
}

/// The histograms of one name, by the value of their label.
#[derive(Clone, Debug)]
pub(crate) struct Histograms {
    desc: Desc,
    label: &'static str,
    scale: Scale,
    rows: Arc<Mutex<BTreeMap<String, Row>>>,
}

impl Histograms {
    pub(crate) fn new(
        (name, help): (&str, &str),
        label: &'static str,
        scale: Scale,
    ) -> Result<Self, prometheus::Error> {
        let (labels, none) = (vec![label.to_owned()], std::collections::HashMap::new());
        let desc = Desc::new(name.to_owned(), help.to_owned(), labels, none)?;
        Ok(Self { desc, label, scale, rows: Arc::default() })
    }

    /// Adds what was measured in a window: how many had which value, and the sum in the unit that is shown.
    pub(crate) fn add(&self, of: &str, values: &Log2, sum: f64) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let row = rows.entry(of.to_owned()).or_insert_with(|| Row::new(self.scale));
        row.add(self.scale, values, sum);
    }

    /// Removes one, whose values go to another from now on.
    pub(crate) fn remove(&self, of: &str) {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).remove(of);
    }
}

impl Collector for Histograms {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let metrics = rows.iter().map(|(of, row)| {
            let mut label = LabelPair::default();
            label.set_name(self.label.to_owned());
            label.set_value(of.clone());
            let mut metric = Metric::from_label(vec![label]);
            metric.set_histogram(row.histogram(self.scale));
            metric
        });
        let mut family = MetricFamily::default();
        family.set_name(self.desc.fq_name.clone());
        family.set_help(self.desc.help.clone());
        family.set_field_type(MetricType::HISTOGRAM);
        family.set_metric(metrics.collect());
        vec![family]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_latency_is_in_the_bucket_of_its_power_of_two() {
        let family = Histograms::new(("rxpath_a_seconds", "b"), "stage", SECONDS).unwrap();
        let mut counts = [0u64; 40];
        // 512 to 1023 ns, 1024 to 2047 ns, 2^31 and more.
        (counts[10], counts[11], counts[32]) = (5, 3, 1);
        for _ in 0..2 {
            family.add("s", &Log2::of(&counts), 2.5);
        }
        let collected = family.collect();
        let text = prometheus::TextEncoder::new().encode_to_string(&collected).unwrap();
        for line in [
            "rxpath_a_seconds_bucket{stage=\"s\",le=\"0.000001024\"} 10",
            "rxpath_a_seconds_bucket{stage=\"s\",le=\"0.000004096\"} 16",
            "rxpath_a_seconds_bucket{stage=\"s\",le=\"1.073741824\"} 16",
            "rxpath_a_seconds_bucket{stage=\"s\",le=\"+Inf\"} 18",
            "rxpath_a_seconds_sum{stage=\"s\"} 5",
            "rxpath_a_seconds_count{stage=\"s\"} 18",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
    }

    #[test]
    fn a_full_poll_is_above_all_bounds_and_a_device_that_lost_its_place_is_gone() {
        let family = Histograms::new(("rxpath_packets", "b"), "device", PACKETS).unwrap();
        // None; 1; 32 to 63; 64 to 127.
        family.add("eth0", &Log2::of(&[1, 2, 0, 0, 0, 0, 4, 8]), 700.0);
        let page = prometheus::TextEncoder::new().encode_to_string(&family.collect()).unwrap();
        for (le, count) in [("0", 1), ("1", 3), ("31", 3), ("63", 7), ("+Inf", 15)] {
            let line = format!("rxpath_packets_bucket{{device=\"eth0\",le=\"{le}\"}} {count}");
            assert!(page.lines().any(|one| one == line), "{line} in {page}");
        }
        assert!(page.contains("rxpath_packets_sum{device=\"eth0\"} 700\n"), "{page}");
        family.remove("eth0");
        assert!(family.collect().iter().all(|one| one.get_metric().is_empty()));
    }
}
