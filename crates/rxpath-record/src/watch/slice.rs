//! What passed, was lost and cost CPU time in a slice of real traffic: frames of the live view, added up.

use std::collections::BTreeMap;

use rxpath_core::{Fact, IntoMap, Log2};

use super::{PathStage, WatchFrame, WindowTotals};

/// The work of one packet is this many microseconds, where a million of them take as many seconds.
const PER_PACKET_US: f64 = 1e6;
/// Latencies that a quantile of 99 % needs.
const FEWEST_LATENCIES: u64 = 100;

/// A slice of time. Everything is a sum over its frames.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrafficSlice {
    /// Length of the frames.
    pub window_s: f64,
    /// Packets that the lowest devices took.
    pub received: f64,
    /// Packets lost at any place of this host, from the devices on.
    pub lost: f64,
    /// Those of them that the devices did not take: without a free descriptor, or damaged.
    lost_before: f64,
    /// Interrupts, network softirqs and NAPI threads of all CPUs.
    network: Sampled,
    /// All CPUs that ran something, this program left out; what the hypervisor took is no work of this machine.
    busy: Sampled,
    /// Taken from tasks by interrupts, softirqs and the hypervisor.
    taken: Sampled,
    latencies: BTreeMap<String, Log2>,
    /// Of the frames that have it, and their length.
    energy_j: f64,
    energy_window_s: f64,
}

/// CPU time that was measured in a part of the frames only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sampled {
    cpu_s: f64,
    /// Packets that came in those frames.
    received: f64,
}

impl Sampled {
    fn add(&mut self, cpu_s: Option<f64>, received: f64) {
        if let Some(cpu_s) = cpu_s {
            self.cpu_s += cpu_s;
            self.received += received;
        }
    }

    fn per_packet_us(self) -> Option<f64> {
        (self.received >= 1.0).then(|| PER_PACKET_US * self.cpu_s / self.received)
    }
}

impl TrafficSlice {
    /// Adds a frame and what it adds to totals.
    pub fn add(&mut self, frame: &WatchFrame, totals: Option<&WindowTotals>) {
        let row = |stage: PathStage| frame.stages.iter().find(|row| row.stage == stage);
        let known = |fact: &Fact<f64>| fact.value().copied();
        let received_pps = row(PathStage::Nic).and_then(|row| known(&row.rate_per_s));
        let received = received_pps.unwrap_or(0.0) * frame.window_s;
        let lost_pps: f64 = frame.stages.iter().filter_map(|row| known(&row.drops_pps)).sum();
        self.window_s += frame.window_s;
        self.received += received;
        self.lost += lost_pps * frame.window_s;
        let at_devices = row(PathStage::Nic).and_then(|row| known(&row.drops_pps));
        self.lost_before += at_devices.unwrap_or(0.0) * frame.window_s;
        let stages = [PathStage::Nic, PathStage::Irq, PathStage::Backlog];
        let network: Option<f64> =
            stages.into_iter().map(|stage| known(&row(stage)?.cpu_ratio)).sum();
        let is_new = is_new(frame);
        self.network.add(network.filter(|_| is_new).map(|cpus| cpus * frame.window_s), received);
        let busy: f64 = frame.cpus.iter().map(|cpu| 1.0 - cpu.idle_ratio - cpu.steal_ratio).sum();
        let busy_s = (busy - frame.own_cpu_ratio).max(0.0) * frame.window_s;
        self.busy.add((!frame.cpus.is_empty()).then_some(busy_s), received);
        let taken = totals.filter(|_| is_new).map(|totals| totals.taken().sum_s());
        self.taken.add(taken, received);
        if let Some(power_w) = frame.power_w {
            self.energy_j += power_w * frame.window_s;
            self.energy_window_s += frame.window_s;
        }
        for (stage, latency) in totals.iter().flat_map(|totals| &totals.latencies) {
            self.latencies.entry(stage.clone()).or_default().add(&latency.histogram_ns);
        }
    }

    /// Adds another slice.
    pub fn join(&mut self, other: &Self) {
        self.window_s += other.window_s;
        self.received += other.received;
        self.lost += other.lost;
        self.lost_before += other.lost_before;
        self.energy_j += other.energy_j;
        self.energy_window_s += other.energy_window_s;
        for (own, more) in [
            (&mut self.network, other.network),
            (&mut self.busy, other.busy),
            (&mut self.taken, other.taken),
        ] {
            own.add(Some(more.cpu_s), more.received);
        }
        for (stage, histogram) in &other.latencies {
            self.latencies.entry(stage.clone()).or_default().add(histogram);
        }
    }

    /// Whether probes counted while packets came.
    pub fn is_sampled(&self) -> bool {
        self.network.received >= 1.0
    }

    /// Packets per second that the lowest devices took.
    pub fn received_pps(&self) -> f64 {
        self.received / self.window_s.max(1e-3)
    }

    /// Packets lost, as a share of those that came to the devices.
    pub fn loss_ratio(&self) -> f64 {
        self.lost / (self.received + self.lost_before).max(self.lost).max(1.0)
    }

    /// Every metric that it has, by name.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let us = |ns: f64| ns / 1e3;
        let p99 = |stage: &str| {
            let histogram = self.latencies.get(stage)?;
            let enough = histogram.count() >= FEWEST_LATENCIES;
            histogram.interpolated(0.99).filter(|_| enough).map(us)
        };
        let all = [
            ("received_pps", Some(self.received_pps())),
            ("loss_ratio", Some(self.loss_ratio())),
            ("network_cpu_us_per_packet", self.network.per_packet_us()),
            ("busy_cpu_us_per_packet", self.busy.per_packet_us()),
            ("taken_cpu_us_per_packet", self.taken.per_packet_us()),
            ("receive_to_socket_p99_us", p99("receive-to-socket")),
            ("socket_to_read_p99_us", p99("socket-to-read")),
            ("power_w", Some(self.energy_j / self.energy_window_s)),
        ];
        let known = all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        known.filter(|(_, value)| value.is_finite()).into_map()
    }
}

/// Whether the frame's probes counted in its own window: without a new sample, an older one stands in it.
fn is_new(frame: &WatchFrame) -> bool {
    frame.sampled.iter().all(|sampled| sampled.age_s == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{CpuRow, ProbeDutyCycle, StageLatency, StageRow, TakenTime};

    fn frame(pps: f64, drops: f64, cpu: f64) -> WatchFrame {
        let row = |stage, rate: f64, cpu: f64| StageRow {
            stage,
            rate_per_s: Fact::ok(rate),
            unit: "packets".into(),
            rate_source: String::new(),
            drops_pps: Fact::ok(drops),
            drops_source: String::new(),
            cpu_ratio: Fact::ok(cpu),
            note: String::new(),
        };
        WatchFrame {
            window_s: 0.5,
            stages: vec![
                row(PathStage::Nic, pps, 0.1),
                row(PathStage::Irq, pps, cpu),
                row(PathStage::Backlog, 0.0, 0.0),
            ],
            cpus: vec![CpuRow { idle_ratio: 0.125, steal_ratio: 0.125, ..CpuRow::default() }],
            own_cpu_ratio: 0.05,
            power_w: Some(cpu * 100.0),
            ..WatchFrame::default()
        }
    }

    fn totals(ns: usize, count: u64) -> WindowTotals {
        let mut buckets = vec![0; ns];
        buckets.push(count);
        let latency = StageLatency { histogram_ns: Log2::of(&buckets), sum_s: 0.0 };
        let taken = TakenTime { network_s: 0.05, ..TakenTime::default() };
        WindowTotals {
            victims: [(("unit", "a.service".into()), taken)].into(),
            latencies: [("socket-to-read".into(), latency)].into(),
            ..WindowTotals::default()
        }
    }

    #[test]
    fn a_slice_is_the_sum_of_its_frames() {
        let mut slice = TrafficSlice::default();
        slice.add(&frame(1000.0, 0.0, 0.3), Some(&totals(10, 60)));
        slice.add(&frame(3000.0, 10.0, 0.3), Some(&totals(10, 60)));
        let metrics = slice.metrics();
        let near = |name: &str, value: f64| {
            let found = metrics[name];
            assert!((found - value).abs() < 1e-6 * value.max(1.0), "{name}: {found}");
        };
        near("received_pps", 2000.0);
        // Each of three stages lost 5 packets; those of the device are not among the 2000 that it took.
        near("loss_ratio", 15.0 / 2005.0);
        assert!(slice.is_sampled());
        near("network_cpu_us_per_packet", 200.0);
        near("busy_cpu_us_per_packet", 350.0);
        near("taken_cpu_us_per_packet", 50.0);
        near("power_w", 30.0);
        assert!((0.512..=1.023).contains(&metrics["socket_to_read_p99_us"]), "{metrics:?}");
        assert!(!metrics.contains_key("receive_to_socket_p99_us"));
        let mut joined = TrafficSlice::default();
        joined.join(&slice);
        assert_eq!(joined, slice);
    }

    #[test]
    fn a_sample_of_an_earlier_window_counts_in_no_slice() {
        let mut old = frame(1000.0, 0.0, 0.3);
        old.sampled = vec![ProbeDutyCycle { age_s: 0.7, ..ProbeDutyCycle::default() }];
        let mut slice = TrafficSlice::default();
        slice.add(&old, Some(&totals(10, 10)));
        let metrics = slice.metrics();
        assert!(!slice.is_sampled());
        assert!(!metrics.contains_key("network_cpu_us_per_packet"), "{metrics:?}");
        assert!(metrics.contains_key("busy_cpu_us_per_packet"));
        assert!(!metrics.contains_key("socket_to_read_p99_us"), "ten latencies have no p99");
        let nothing = TrafficSlice::default().metrics();
        assert_eq!(nothing.get("loss_ratio"), Some(&0.0));
        assert!(!nothing.contains_key("power_w"), "no zero for a gap: {nothing:?}");
    }
}
