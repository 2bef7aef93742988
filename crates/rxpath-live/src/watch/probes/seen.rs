//! What the probes saw.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rxpath_bpf::drops::SkbDrop;
use rxpath_bpf::steal::Steal;
use rxpath_core::IntoMap;
use rxpath_core::measured::NapiPolls;
use rxpath_host::HostError;
use rxpath_record::evidence::{SoftirqPlace, WindowEvidence};
use rxpath_record::watch::{LatencyRow, ProbeDutyCycle, ProbeShare};

/// A window, or the time of it that was counted.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// For how long all but drops was counted.
    pub counted_s: f64,
    /// For how long drops were.
    pub drops_counted_s: f64,
    /// What was counted for a part of the time only.
    pub sampled: Vec<ProbeDutyCycle>,
    /// Whose time it was; one copy for all frames.
    pub steal: Option<Arc<Steal>>,
    /// The task that used most of each CPU.
    pub busiest: BTreeMap<u32, String>,
    /// NET_RX of each CPU: runs, ns in them.
    pub net_rx: BTreeMap<u32, (u64, u64)>,
    /// NET_TX of all CPUs: ns in it.
    pub net_tx_ns: u64,
    /// NAPI threads of each CPU: ns that they ran, what interrupted them taken off.
    pub napi_threads: BTreeMap<u32, u64>,
    /// Polls of each NAPI on each CPU.
    pub napis: Vec<NapiPolls>,
    /// Packets dropped while they were counted, and since watching began.
    pub drops: Vec<(SkbDrop, u64)>,
    /// Latency of stages.
    pub latency: Vec<LatencyRow>,
    /// Ports of UDP in this network namespace, each with a process that was seen to read there.
    pub readers: BTreeSet<(u16, i32)>,
    /// The share of the largest flow in the sampled packets of each CPU, where they were enough.
    pub one_flow: BTreeMap<u32, f64>,
    /// What the probes can't tell.
    pub gaps: BTreeMap<String, String>,
    /// What found no room in the maps of each probe so far.
    pub lost_count: BTreeMap<&'static str, u64>,
    /// What they cost, as it was measured last.
    pub cost: Option<ProbeShare>,
}

impl Seen {
    /// What counts of all but drops are divided by.
    pub fn per_s(&self) -> f64 {
        self.counted_s.max(1e-3)
    }

    /// CPU time of network softirqs by vector, in seconds of a window of this length. NAPI threads do the work of NET_RX.
    pub fn softirqs_s(&self, window_s: f64) -> BTreeMap<&'static str, f64> {
        let in_softirqs: u64 = self.net_rx.values().map(|(_, ns)| ns).sum();
        let in_threads: u64 = self.napi_threads.values().sum();
        let of_window = |ns: u64| ns as f64 / 1e9 / self.per_s() * window_s;
        let seconds = [in_softirqs + in_threads, self.net_tx_ns].map(of_window);
        ["net_rx", "net_tx"].into_iter().zip(seconds).into_map()
    }

    /// What is known of each CPU's flows, and of its NAPI threads where the softirqs are these.
    pub fn add_to(&self, evidence: &mut WindowEvidence) {
        let in_threads = matches!(evidence.softirq, SoftirqPlace::NapiThread { .. });
        for row in evidence.spread.iter_mut().flat_map(|spread| &mut spread.packets) {
            row.one_flow_ratio = self.one_flow.get(&row.cpu).copied();
            row.napi_threads_ratio = self.napi_threads_ratio(row.cpu).filter(|_| in_threads);
        }
    }

    /// The share of this CPU that NAPI threads took. An earlier window's would be compared with this window's losses.
    fn napi_threads_ratio(&self, cpu: u32) -> Option<f64> {
        let is_old = |it: &ProbeDutyCycle| it.what == ProbeDutyCycle::PROBES[0] && it.age_s > 0.0;
        let counted = self.net_rx.contains_key(&cpu) && !self.sampled.iter().any(is_old);
        let ran_ns = self.napi_threads.get(&cpu).copied().unwrap_or(0);
        counted.then(|| ran_ns as f64 / 1e9 / self.per_s())
    }

    /// A copy for the frame. After a failed reading the samples are dropped: they are those of an earlier window, to which they
    /// were added already.
    pub(super) fn once_read(&mut self, read: Result<(), HostError>) -> Result<Self, HostError> {
        if read.is_err() {
            self.steal = None;
            (self.drops, self.drops_counted_s) = (Vec::new(), 0.0);
        }
        read.map(|()| self.clone())
    }
}

#[cfg(test)]
mod tests {
    use rxpath_bpf::ProbeCost;
    use rxpath_bpf::account::calibrate::IrqCalibration;
    use rxpath_record::evidence::{CpuDistribution, CpuPackets};

    use super::*;

    #[test]
    fn softirqs_of_a_sample_are_scaled_to_the_window_by_vector() {
        let ms = 1_000_000;
        let seen = Seen {
            counted_s: 0.5,
            net_rx: [(0, (9, 20 * ms)), (1, (9, 30 * ms))].into(),
            napi_threads: [(1, 50 * ms)].into(),
            net_tx_ns: 5 * ms,
            ..Seen::default()
        };
        let by_vector = seen.softirqs_s(2.0);
        assert_eq!(by_vector.keys().copied().collect::<Vec<_>>(), ["net_rx", "net_tx"]);
        assert!((by_vector["net_rx"] - 0.4).abs() < 1e-9, "{by_vector:?}");
        assert!((by_vector["net_tx"] - 0.02).abs() < 1e-9, "{by_vector:?}");
    }

    #[test]
    fn the_share_of_one_flow_is_that_of_the_same_cpu() {
        let seen = Seen { one_flow: [(1, 0.98)].into(), ..Seen::default() };
        let rows = rows_with(&seen, SoftirqPlace::SenderCall);
        assert_eq!(rows.map(|row| row.one_flow_ratio), [None, Some(0.98), None]);
    }

    /// What the evidence of a host with three CPUs has of them then.
    fn rows_with(seen: &Seen, softirq: SoftirqPlace) -> [CpuPackets; 3] {
        let cpus = [0, 1, 2].map(|cpu| CpuPackets { cpu, ..CpuPackets::default() });
        let packets = cpus.to_vec();
        let spread = Some(CpuDistribution { packets, ..CpuDistribution::default() });
        let mut evidence = WindowEvidence { softirq, spread, ..WindowEvidence::default() };
        seen.add_to(&mut evidence);
        evidence.spread.unwrap().packets.try_into().unwrap()
    }

    #[test]
    fn napi_threads_have_their_share_of_each_cpu_that_was_counted_in_this_window() {
        let mut seen = Seen {
            counted_s: 0.5,
            // The third CPU came online since.
            net_rx: [(0, (0, 0)), (1, (0, 0))].into(),
            napi_threads: [(1, 400_000_000)].into(),
            ..Seen::default()
        };
        let ratios =
            |seen: &Seen, softirq| rows_with(seen, softirq).map(|it| it.napi_threads_ratio);
        let threads = || SoftirqPlace::NapiThread { cpus: vec![1] };
        assert_eq!(ratios(&seen, threads()), [Some(0.0), Some(0.8), None]);
        assert_eq!(ratios(&seen, SoftirqPlace::Napi { cpus: vec![1] }), [None; 3]);
        let what = ProbeDutyCycle::PROBES[0].to_owned();
        seen.sampled = vec![ProbeDutyCycle { what, ratio: 0.1, counted_s: 0.5, age_s: 0.0 }];
        assert_eq!(ratios(&seen, threads()), [Some(0.0), Some(0.8), None]);
        // The sample of an earlier window.
        seen.sampled[0].age_s = 2.0;
        assert_eq!(ratios(&seen, threads()), [None; 3]);
    }

    #[test]
    fn a_sample_is_not_added_to_a_window_that_could_not_be_read() {
        let steal = Steal {
            window_s: 1.0,
            tasks: Vec::new(),
            cpus: Vec::new(),
            flows_looked_s: 0.0,
            calibration: IrqCalibration::none("a test"),
            probe_cost: ProbeCost::default(),
            probes: Vec::new(),
            victim: None,
        };
        let mut seen = Seen {
            steal: Some(Arc::new(steal)),
            drops: vec![(SkbDrop::default(), 3)],
            drops_counted_s: 1.0,
            ..Seen::default()
        };
        let read = seen.once_read(Ok(())).unwrap();
        assert!(read.steal.is_some() && seen.steal.is_some());
        assert!(seen.once_read(Err(HostError::kernel("read a map", 12))).is_err());
        assert!(seen.steal.is_none() && seen.drops.is_empty() && seen.drops_counted_s < 1e-9);
    }
}
