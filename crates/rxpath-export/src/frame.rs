//! What a frame of the live view adds to the metrics: rates times the window's length, so that each counter holds what was
//! counted.

use rxpath_record::verdict::{Confidence, Stage};
use rxpath_record::watch::{CpuRow, LossRow, PathStage, StageRow, WatchFrame, WindowTotals};
use serde::Serialize;

use crate::families::{
    BUSIEST, BUSIEST_CPU, CONFIDENCE, DISCARDED, Families, IRQ_ENTRY, LATENCIES, LATENCY,
    LATENCY_P50, LATENCY_P99, LIMITED, LIMITED_S, LIMITED_SURE_S, LOST, PASSED, SATURATED,
    SQUEEZED, STAGE_CPU, VERDICT_AT, WINDOWS,
};

/// A label for what has no series of its own.
pub(crate) const OTHER: &str = "other";
/// Share of its time above which a CPU has none left.
const FULL: f64 = 0.9;
/// Why a window is thrown away, or a part of it.
const LATE: &str = "late";
const CPU: &str = "cpu";
/// The gap of a frame in which a CPU could not be read.
const CPU_GONE: &str = "cpu-not-read";

/// The word that results have for a value.
fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

impl Families {
    /// Adds a window, with the totals that probes measured in it. `name_of` tells the name of a process, where it is still
    /// there.
    pub fn frame(
        &mut self,
        frame: &WatchFrame,
        totals: Option<&WindowTotals>,
        name_of: impl Fn(u32) -> Option<String>,
    ) {
        let window_s = frame.window_s;
        self.add(WINDOWS, &[], window_s);
        for row in &frame.stages {
            self.stage(row, window_s);
        }
        for row in &frame.losses {
            self.loss(*row, window_s);
        }
        self.drops(&frame.drops, window_s);
        self.softirqs(frame);
        if let Some(totals) = totals {
            self.tasks(&frame.tasks, totals, (window_s, &name_of));
            self.victims(totals, window_s);
            self.devices(totals, window_s);
            self.flows(totals, window_s);
            self.vectors(totals);
            self.deferred(totals);
            self.polls(totals, window_s);
            self.latencies(totals);
            self.lost(totals);
        }
        self.irq_entry(totals);
        self.latency(frame);
        self.verdict(frame);
        self.observed(frame);
        self.add(DISCARDED, &[LATE], 0.0);
        self.cpus(frame);
        self.own(frame);
    }

    /// A CPU that went offline ends its window at its last reading. Once for each time that some go.
    fn cpus(&mut self, frame: &WatchFrame) {
        let lacks_cpu = frame.gaps.contains_key(CPU_GONE);
        self.add(DISCARDED, &[CPU], f64::from(lacks_cpu && !self.lacked_cpu));
        self.lacked_cpu = lacks_cpu;
    }

    /// A window that lasted much longer than planned, as when the machine was stopped. What was counted in a part of it
    /// would be scaled to all of it, so only the exporter's own cost is added.
    pub fn late(&mut self, frame: &WatchFrame) {
        self.add(DISCARDED, &[LATE], 1.0);
        self.own(frame);
    }

    fn irq_entry(&self, totals: Option<&WindowTotals>) {
        self.clear(IRQ_ENTRY);
        if let Some((source, seconds)) = totals.and_then(|totals| totals.irq_entry) {
            self.set(IRQ_ENTRY, &[source], seconds);
        }
    }

    /// A value that could not be read makes no series: 0 would say that nothing was there.
    fn stage(&self, row: &StageRow, window_s: f64) {
        let stage = word(row.stage);
        if let Some(rate) = row.rate_per_s.value() {
            self.add(PASSED, &[&stage, &row.unit], rate * window_s);
        }
        if let Some(cpus) = row.cpu_ratio.value() {
            self.add(STAGE_CPU, &[&stage], cpus * window_s);
        }
    }

    /// Adding up a stage's places gives what the stage lost.
    fn loss(&self, row: LossRow, window_s: f64) {
        let stage = PathStage::at(row.place).map_or_else(String::new, word);
        self.add(LOST, &[&stage, &word(row.place)], row.packets_pps * window_s);
    }

    fn softirqs(&self, frame: &WatchFrame) {
        let squeezed: f64 = frame.cpus.iter().map(|cpu| cpu.squeezed_per_s).sum();
        self.add(SQUEEZED, &[], squeezed * frame.window_s);
        let ratio = |cpu: &CpuRow| Some((cpu.cpu, *cpu.net_softirq_ratio.value()?));
        let ratios: Option<Vec<(u32, f64)>> = frame.cpus.iter().map(ratio).collect();
        let ratios = ratios.unwrap_or_default();
        let Some((busiest, most)) = ratios.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return [BUSIEST, BUSIEST_CPU, SATURATED].into_iter().for_each(|name| self.clear(name));
        };
        self.set(BUSIEST, &[], *most);
        self.set(BUSIEST_CPU, &[], f64::from(*busiest));
        let saturated = ratios.iter().filter(|(_, ratio)| *ratio > FULL).count();
        self.set(SATURATED, &[], saturated as f64);
    }

    fn latencies(&self, totals: &WindowTotals) {
        for (stage, latency) in &totals.latencies {
            self.add(LATENCIES, &[stage], latency.histogram_ns.count() as f64);
            if let Some(family) = self.histograms.get(LATENCY) {
                family.add(stage, &latency.histogram_ns, latency.sum_s);
            }
        }
    }

    fn latency(&self, frame: &WatchFrame) {
        self.clear(LATENCY_P50);
        self.clear(LATENCY_P99);
        for row in &frame.latency {
            if row.count > 0 {
                self.set(LATENCY_P50, &[&row.stage], row.p50_ns as f64 / 1e9);
                self.set(LATENCY_P99, &[&row.stage], row.p99_ns as f64 / 1e9);
            }
        }
    }

    /// Every stage has its series from the start, so that a rate can be taken of the first time that it limits.
    fn verdict(&self, frame: &WatchFrame) {
        let Some(verdict) = &frame.verdict else { return };
        let is_sure = f64::from(verdict.confidence != Confidence::Weak);
        for stage in Stage::ALL {
            let is_it = f64::from(stage == verdict.stage);
            let stage = word(stage);
            self.set(LIMITED, &[&stage], is_it);
            self.add(LIMITED_S, &[&stage], is_it * frame.window_s);
            self.add(LIMITED_SURE_S, &[&stage], is_it * is_sure * frame.window_s);
        }
        let confidence = match verdict.confidence {
            Confidence::Weak => 1.0,
            Confidence::Fair => 2.0,
            Confidence::Strong => 3.0,
        };
        self.set(CONFIDENCE, &[], confidence);
        self.set(VERDICT_AT, &[], frame.at_unix_s);
    }
}

#[cfg(test)]
mod tests {
    use rxpath_core::{Fact, Log2};
    use rxpath_record::ledger::Place;
    use rxpath_record::watch::{
        DropRow, LatencyRow, PollSizes, ProbeShare, StageLatency, TakenTime, TaskRow,
    };

    use super::*;
    use crate::tests::bounded::verdict;

    fn stage(stage: PathStage, rate: Fact<f64>, drops: f64) -> StageRow {
        StageRow {
            stage,
            rate_per_s: rate,
            unit: "packets".into(),
            rate_source: String::new(),
            drops_pps: Fact::ok(drops),
            drops_source: String::new(),
            cpu_ratio: Fact::absent("not measured"),
            note: String::new(),
        }
    }

    fn task(process: u32, taken: f64, network: f64) -> TaskRow {
        TaskRow {
            process,
            comm: "worker".into(),
            taken_ratio: Fact::ok(taken),
            taken_net_ratio: Fact::ok(network),
            ..TaskRow::default()
        }
    }

    fn cpu(cpu: u32, ratio: f64) -> CpuRow {
        CpuRow { cpu, net_softirq_ratio: Fact::ok(ratio), ..CpuRow::default() }
    }

    fn window() -> WatchFrame {
        WatchFrame {
            window_s: 2.0,
            at_unix_s: 1e9,
            stages: vec![
                stage(PathStage::Nic, Fact::ok(500.0), 0.0),
                stage(PathStage::Socket, Fact::absent("no"), 25.0),
            ],
            losses: [(Place::Ring, 0.0), (Place::SocketBuffer, 20.0), (Place::ListenQueue, 5.0)]
                .map(|(place, packets_pps)| LossRow { place, packets_pps })
                .into(),
            verdict: Some(verdict(Confidence::Fair)),
            cpus: vec![cpu(0, 0.0), cpu(3, 0.25)],
            tasks: vec![task(7, 0.3, 0.2), task(7, 0.1, 0.1), task(9, 0.0, 0.0)],
            drops: vec![DropRow {
                reason: "NO_SOCKET".into(),
                packets_pps: 5.0,
                netns: 4,
                ..DropRow::default()
            }],
            latency: vec![LatencyRow {
                stage: "socket-to-read".into(),
                count: 3,
                p50_ns: 1024,
                p99_ns: 2048,
            }],
            gaps: [("tasks".to_owned(), "no root".to_owned())].into(),
            ..WatchFrame::default()
        }
    }

    /// A poll of one packet, two full ones.
    fn sizes() -> PollSizes {
        PollSizes { packets_per_poll: Log2::of(&[0, 1, 0, 0, 0, 0, 0, 2]), packets: 129 }
    }

    /// Of the tasks of the window and one that has no row: a service and what no group names.
    fn totals() -> WindowTotals {
        let taken =
            |network_s, softirq_s| TakenTime { network_s, softirq_s, ..TakenTime::default() };
        WindowTotals {
            victims: [
                (("unit", "nginx.service".to_owned()), taken(0.6, 0.2)),
                (("other", "other".to_owned()), taken(0.1, 0.0)),
            ]
            .into(),
            devices_s: [("eth0".to_owned(), 0.5)].into(),
            flows_s: [(("udp", 53), 0.4)].into(),
            softirqs_s: [("net_rx", 0.5), ("net_tx", 0.125)].into(),
            deferred_s: [("napi", 0.25)].into(),
            irq_entry: Some(("packets", 5e-6)),
            latencies: [("socket-to-read".to_owned(), StageLatency::default())].into(),
            polls: [("eth0".to_owned(), sizes())].into(),
            lost_count: [("drops", 3)].into(),
        }
    }

    fn value(text: &str, series: &str) -> Option<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok())
    }

    #[test]
    fn counters_hold_what_was_counted_in_all_windows() {
        let mut families = Families::new("1", 4).unwrap();
        for _ in 0..3 {
            families.frame(&window(), Some(&totals()), |process| {
                (process == 7).then(|| "nginx".to_owned())
            });
        }
        let text = families.text().unwrap();
        for (series, right) in [
            ("rxpath_window_seconds_total", 6.0),
            ("rxpath_stage_passed_total{stage=\"nic\",unit=\"packets\"}", 3000.0),
            ("rxpath_softirq_cpu_seconds_total{vector=\"net_rx\"}", 1.5),
            ("rxpath_softirq_cpu_seconds_total{vector=\"net_tx\"}", 0.375),
            ("rxpath_path_limited_seconds_total{stage=\"socket-queue\"}", 6.0),
            ("rxpath_path_limited_seconds_total{stage=\"ring\"}", 0.0),
            ("rxpath_path_verdict_confidence", 2.0),
            ("rxpath_path_verdict_timestamp_seconds", 1e9),
            ("rxpath_softirq_busiest_cpu", 3.0),
            ("rxpath_softirq_saturated_cpus", 0.0),
            ("rxpath_stage_latency_p99_seconds{stage=\"socket-to-read\"}", 2048e-9),
            // Two windows before its admission went to the others.
            ("rxpath_task_cpu_stolen_seconds_total{by=\"network\",task=\"nginx\"}", 0.6),
            ("rxpath_task_cpu_stolen_seconds_total{by=\"network\",task=\"other\"}", 1.5),
            ("rxpath_task_cpu_stolen_seconds_total{by=\"other\",task=\"other\"}", 0.4),
            (
                "rxpath_cpu_stolen_seconds_total{by=\"network\",victim=\"nginx.service\",victim_kind=\"unit\"}",
                0.6,
            ),
            (
                "rxpath_cpu_stolen_seconds_total{by=\"softirq\",victim=\"nginx.service\",victim_kind=\"unit\"}",
                0.2,
            ),
            (
                "rxpath_cpu_stolen_seconds_total{by=\"network\",victim=\"other\",victim_kind=\"other\"}",
                1.5,
            ),
            ("rxpath_device_cpu_stolen_seconds_total{device=\"eth0\"}", 0.5),
            ("rxpath_device_cpu_stolen_seconds_total{device=\"other\"}", 1.6),
            ("rxpath_irq_entry_estimated_seconds{source=\"packets\"}", 5e-6),
            ("rxpath_cpu_deferred_seconds_total{kind=\"napi\"}", 0.75),
            ("rxpath_cpu_deferred_seconds_total{kind=\"ksoftirqd\"}", 0.0),
            // As with programs.
            ("rxpath_poll_packets_bucket{device=\"eth0\",le=\"63\"}", 1.0),
            ("rxpath_poll_packets_bucket{device=\"eth0\",le=\"+Inf\"}", 3.0),
            ("rxpath_poll_packets_sum{device=\"other\"}", 258.0),
            (
                "rxpath_dropped_packets_total{netns=\"host\",protocol=\"\",reason=\"NO_SOCKET\"}",
                10.0,
            ),
            (
                "rxpath_dropped_packets_total{netns=\"other\",protocol=\"other\",reason=\"other\"}",
                20.0,
            ),
            ("rxpath_not_read{what=\"tasks\"}", 1.0),
        ] {
            let got = value(&text, series).unwrap_or_else(|| panic!("{series} in {text}"));
            assert!((got - right).abs() < 1e-9, "{series}: {got}");
        }
        assert!(
            !text.contains("stage_passed_total{stage=\"socket\""),
            "what was not read is not 0"
        );
        assert!(!text.contains("stage_cpu_seconds_total{"), "{text}");
    }

    #[test]
    fn a_window_adds_ports_and_what_its_probes_lost() {
        let mut families = Families::new("1", 4).unwrap();
        (0..3).for_each(|_| families.frame(&window(), Some(&totals()), |_| None));
        let text = families.text().unwrap();
        let flow = "rxpath_flow_cpu_stolen_seconds_total";
        for (series, right) in [
            (format!("{flow}{{port=\"53\",protocol=\"udp\"}}"), 0.4),
            // Two windows before its admission went to the others.
            (format!("{flow}{{port=\"other\",protocol=\"other\"}}"), 1.7),
            ("rxpath_agent_lost_total{probe=\"drops\"}".to_owned(), 3.0),
        ] {
            let got = value(&text, &series).unwrap_or_else(|| panic!("{series} in {text}"));
            assert!((got - right).abs() < 1e-9, "{series}: {got}");
        }
    }

    #[test]
    fn each_place_counts_its_losses_from_the_start_and_what_is_not_counted_has_no_series() {
        let mut families = Families::new("1", 4).unwrap();
        for windows in [1.0, 2.0] {
            families.frame(&window(), None, |_| None);
            let text = families.text().unwrap();
            for (labels, each) in [
                ("place=\"ring\",stage=\"nic\"", 0.0),
                ("place=\"socket-buffer\",stage=\"socket\"", 40.0),
                ("place=\"listen-queue\",stage=\"socket\"", 10.0),
            ] {
                let series = format!("rxpath_lost_packets_total{{{labels}}}");
                assert_eq!(value(&text, &series), Some(each * windows), "{text}");
            }
            assert!(!text.contains("place=\"netfilter\""), "{text}");
        }
    }

    #[test]
    fn a_weak_verdict_adds_no_confident_time() {
        let mut families = Families::new("1", 4).unwrap();
        for confidence in [Confidence::Weak, Confidence::Strong] {
            let frame = WatchFrame { verdict: Some(verdict(confidence)), ..window() };
            families.frame(&frame, None, |_| None);
        }
        let text = families.text().unwrap();
        let of = |family: &str| {
            value(&text, &format!("rxpath_path_limited_{family}{{stage=\"socket-queue\"}}"))
        };
        let both = (of("seconds_total"), of("confident_seconds_total"));
        assert_eq!(both, (Some(4.0), Some(2.0)), "{text}");
    }

    #[test]
    fn a_hostile_name_adds_one_series_and_breaks_no_line() {
        let mut families = Families::new("1", 4).unwrap();
        for _ in 0..3 {
            families
                .frame(&window(), Some(&totals()), |_| Some("a\"} 1\nrxpath_evil 1\\".to_owned()));
        }
        let text = families.text().unwrap();
        assert!(!text.lines().any(|line| line.starts_with("rxpath_evil")), "{text}");
    }

    #[test]
    fn a_cpu_that_goes_offline_counts_once_each_time() {
        let mut families = Families::new("1", 4).unwrap();
        let series = "rxpath_windows_discarded_total{why=\"cpu\"}";
        for (is_gone, right) in [(false, 0.0), (true, 1.0), (true, 1.0), (false, 1.0), (true, 2.0)]
        {
            let gap = is_gone.then(|| (CPU_GONE.to_owned(), "CPU 1".to_owned()));
            let frame = WatchFrame { gaps: gap.into_iter().collect(), ..window() };
            families.frame(&frame, None, |_| None);
            assert_eq!(value(&families.text().unwrap(), series), Some(right));
        }
    }

    #[test]
    fn full_cpus_are_counted_and_unknown_ones_are_not_0() {
        let mut families = Families::new("1", 4).unwrap();
        let cpus = vec![cpu(0, 0.95), cpu(1, 0.99), cpu(2, 0.5)];
        families.frame(&WatchFrame { cpus, ..window() }, None, |_| None);
        let text = families.text().unwrap();
        assert_eq!(value(&text, "rxpath_softirq_busiest_cpu"), Some(1.0), "{text}");
        assert_eq!(value(&text, "rxpath_softirq_saturated_cpus"), Some(2.0), "{text}");
        let cpus = vec![cpu(0, 0.95), CpuRow { cpu: 1, ..CpuRow::default() }];
        families.frame(&WatchFrame { cpus, ..window() }, None, |_| None);
        let text = families.text().unwrap();
        assert!(!text.contains("\nrxpath_softirq_saturated_cpus "), "{text}");
        assert!(!text.contains("\nrxpath_softirq_busiest_cpu"), "{text}");
    }

    #[test]
    fn a_late_window_adds_only_the_exporters_own_cost() {
        let mut families = Families::new("1", 4).unwrap();
        let cost = ProbeShare { cpu_ratio: 0.5, measured_s: 2.0, ..ProbeShare::default() };
        let frame = WatchFrame { probe_cost: Some(cost), ..window() };
        families.frame(&frame, Some(&totals()), |_| None);
        let before = families.text().unwrap();
        families.late(&frame);
        let after = families.text().unwrap();
        let changed: Vec<&str> =
            after.lines().filter(|line| !before.lines().any(|old| old == *line)).collect();
        assert_eq!(
            changed,
            [
                "rxpath_agent_cpu_seconds_total{part=\"bpf\"} 2",
                "rxpath_windows_discarded_total{why=\"late\"} 1",
            ]
        );
    }
}
