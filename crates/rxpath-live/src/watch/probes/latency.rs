//! Latency of stages from reading to reading, and what it sums up to.

use std::collections::BTreeMap;

use rxpath_bpf::stages::Stages;
use rxpath_core::measured::StageTimes;
use rxpath_host::HostError;
use rxpath_record::watch::{LatencyRow, StageLatency};

use super::rows::since;

/// The last reading, and the sums since they were taken.
#[derive(Debug, Default)]
pub(super) struct Latency {
    before: Vec<StageTimes>,
    sums: BTreeMap<String, StageLatency>,
}

impl Latency {
    /// What was measured since they were asked for last.
    pub(super) fn take_sums(&mut self) -> BTreeMap<String, StageLatency> {
        std::mem::take(&mut self.sums)
    }

    /// What was measured since the last reading.
    pub(super) fn read(&mut self, probe: &Stages) -> Result<Vec<LatencyRow>, HostError> {
        let now = probe.read()?;
        let sum_s = |stage: &StageTimes| stage.mean_ns * stage.latencies_count as f64 / 1e9;
        let mut rows = Vec::new();
        for stage in &now {
            let before = self.before.iter().find(|old| old.stage == stage.stage);
            let histogram = since(&stage.latency_ns, before.map(|old| &old.latency_ns));
            let upper = |q: f64| histogram.quantile(q).map_or(0, |(_, high)| high);
            let name = stage.stage.word();
            let (count, p50_ns, p99_ns) = (histogram.count(), upper(0.5), upper(0.99));
            rows.push(LatencyRow { stage: name.into(), count, p50_ns, p99_ns });
            let sum = self.sums.entry(name.into()).or_default();
            sum.histogram_ns.add(&histogram);
            sum.sum_s += sum_s(stage) - before.map_or(0.0, sum_s);
        }
        self.before = now;
        Ok(rows)
    }
}
