//! The latency of stages as classic histograms of the text format. The kernel side counts by power of two, and each bound
//! here is one, so that no count is divided between two buckets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use rxpath_record::watch::StageLatency;

/// Upper bounds in ns as powers of two: 1 us to 1.1 s, each four times the one before.
const POWERS: [u32; 11] = [10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30];

/// Counts of a stage since the start.
#[derive(Clone, Debug, Default)]
struct Row {
    /// Not added up; the last is above all bounds.
    counts: [u64; POWERS.len() + 1],
    sum_s: f64,
}

impl Row {
    fn add(&mut self, latency: &StageLatency) {
        let histogram = &latency.histogram_ns;
        for (bucket, count) in histogram.buckets.iter().enumerate() {
            let (_, highest_ns) = histogram.range(bucket);
            let at = POWERS.iter().position(|power| highest_ns <= 1 << power);
            self.counts[at.unwrap_or(POWERS.len())] += count;
        }
        // As in counters: what is no number adds nothing.
        self.sum_s += if latency.sum_s.is_finite() { latency.sum_s.max(0.0) } else { 0.0 };
    }

    fn histogram(&self) -> Histogram {
        let mut count = 0;
        let mut bucket = |in_it: u64, upper: f64| {
            count += in_it;
            let mut bucket = Bucket::default();
            bucket.set_cumulative_count(count);
            bucket.set_upper_bound(upper);
            bucket
        };
        let bounds = POWERS.iter().map(|power| f64::from(1u32 << power) / 1e9);
        let buckets = self.counts.iter().zip(bounds).map(|(n, upper)| bucket(*n, upper)).collect();
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets);
        histogram.set_sample_count(self.counts.iter().sum());
        histogram.set_sample_sum(self.sum_s);
        histogram
    }
}

/// The family of all stages.
#[derive(Clone, Debug)]
pub(crate) struct LatencyFamily {
    desc: Desc,
    rows: Arc<Mutex<BTreeMap<String, Row>>>,
}

/// Its label.
const STAGE: &str = "stage";

impl LatencyFamily {
    pub(crate) fn new(name: &str, help: &str) -> Result<Self, prometheus::Error> {
        let (labels, none) = (vec![STAGE.to_owned()], std::collections::HashMap::new());
        let desc = Desc::new(name.to_owned(), help.to_owned(), labels, none)?;
        Ok(Self { desc, rows: Arc::default() })
    }

    /// Adds what was measured in a window.
    pub(crate) fn add(&self, stages: &BTreeMap<String, StageLatency>) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        for (stage, latency) in stages {
            rows.entry(stage.clone()).or_default().add(latency);
        }
    }
}

impl Collector for LatencyFamily {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let metrics = rows.iter().map(|(stage, row)| {
            let mut label = LabelPair::default();
            label.set_name(STAGE.to_owned());
            label.set_value(stage.clone());
            let mut metric = Metric::from_label(vec![label]);
            metric.set_histogram(row.histogram());
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
    use rxpath_core::Log2;

    use super::*;

    #[test]
    fn each_latency_is_in_the_bucket_of_its_power_of_two() {
        let family = LatencyFamily::new("rxpath_a_seconds", "b").unwrap();
        let mut counts = [0u64; 40];
        // 512 to 1023 ns, 1024 to 2047 ns, 2^31 and more.
        (counts[10], counts[11], counts[32]) = (5, 3, 1);
        let one = StageLatency { histogram_ns: Log2::of(&counts), sum_s: 2.5 };
        for _ in 0..2 {
            family.add(&[("s".to_owned(), one.clone())].into());
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
}
