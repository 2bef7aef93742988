//! What the exporter says of itself: its cost, its budget, and what it leaves out to keep that.

use rxpath_core::SortFew;
use rxpath_record::watch::{ProbeDutyCycle, WatchFrame, WindowTotals};

use crate::failures::{OF_COUNTER, OF_DEVICE, READERS};
use crate::families::{
    AGENT_CPU, AGENT_LOST, AGENT_MEMORY, BUDGET, COLLECT_ERRORS, COST, COUNTED, Families,
    NOT_LOADED, NOT_READ, OBSERVED, PROBE_UP, SHED, STARTED,
};
use crate::governor::{Governor, SHEDS};

/// Gaps of things that are read: what the verdict of a frame does not judge, and an estimate that is wrong by much, which the
/// source of its series says.
const BY_DESIGN: [&str; 2] = [WatchFrame::VERDICT, WatchFrame::EXACT_ENTRY];
/// Gaps with a series of their own: a host may have any number of devices, and a file of counters has hundreds.
const NOT_READ_MOST: usize = 30;
/// The gap of a frame without the probe of drops.
const DROPS: &str = "drops by reason";

impl Families {
    /// CPU time of the threads of this process since it was started, and its memory.
    pub fn own_process(&mut self, cpu_s: f64, rss_bytes: u64) {
        self.add(AGENT_CPU, &["user"], cpu_s - self.own_cpu_before_s);
        self.own_cpu_before_s = cpu_s;
        self.set(AGENT_MEMORY, &["rss"], rss_bytes as f64);
    }

    /// BPF programs that no frame has, after the window's frame: CPU time in them and of the entries of their runs, and the memory of
    /// their maps.
    pub fn own_programs(&self, [run_s, entry_s]: [f64; 2], map_bytes: u64) {
        self.add(AGENT_CPU, &["bpf"], run_s);
        self.add(AGENT_CPU, &["bpf_entry"], entry_s);
        if map_bytes > 0 {
            let all = self.frame_map_bytes + map_bytes;
            self.set(AGENT_MEMORY, &["bpf_maps"], all as f64);
        }
    }

    /// When counting began, Unix time.
    pub fn started(&self, at_unix_s: f64) {
        self.set(STARTED, &[], at_unix_s);
    }

    /// What is not measured for as long as this process lives, and what it needs.
    pub fn not_loaded(&self, what: &str, needs: &str) {
        self.set(NOT_LOADED, &[what, needs], 1.0);
    }

    /// Pages that could not be written since the last call, and connections that failed since the start.
    pub fn collect_errors(&mut self, textfile: u64, http: u64) {
        self.add(COLLECT_ERRORS, &["textfile"], textfile as f64);
        self.add(COLLECT_ERRORS, &["http"], http.saturating_sub(self.http_errors_before) as f64);
        self.http_errors_before = http;
    }

    /// What the governor decided.
    pub fn governed(&mut self, governor: &Governor) {
        self.failures.without_probes = !governor.course().with_probes;
        self.set(BUDGET, &[], governor.budget());
        self.set(COST, &[], governor.cost());
        for (what, is_shed) in SHEDS.iter().zip(governor.shed()) {
            self.set(SHED, &[what], f64::from(is_shed));
        }
    }

    /// What looking cost, and what it could not see.
    pub(crate) fn own(&mut self, frame: &WatchFrame) {
        self.set(PROBE_UP, &[], f64::from(!frame.gaps.contains_key(WatchFrame::ALL_PROBES)));
        if let Some(cost) = &frame.probe_cost {
            for (part, seconds) in ["bpf", "bpf_entry"].into_iter().zip(cost.cpu_s()) {
                self.add(AGENT_CPU, &[part], seconds);
            }
            self.frame_map_bytes = cost.map_bytes;
            self.set(AGENT_MEMORY, &["bpf_maps"], cost.map_bytes as f64);
        }
        self.clear(COUNTED);
        for sampled in &frame.sampled {
            self.set(COUNTED, &[&sampled.what], sampled.ratio);
        }
        let failed = self.failures.of(frame);
        for reader in READERS {
            self.add(COLLECT_ERRORS, &[reader], f64::from(failed.contains(reader)));
        }
        self.clear(NOT_READ);
        let gaps = frame.gaps.keys().filter(|what| !BY_DESIGN.contains(&what.as_str()));
        let mut gaps: Vec<&String> = gaps.collect();
        // Those of which each device may have one come late, and those of each counter last.
        gaps.sort_few_by_key(|what| [OF_COUNTER, OF_DEVICE].map(|of| what.starts_with(of)));
        for what in gaps.into_iter().take(NOT_READ_MOST) {
            self.set(NOT_READ, &[what], 1.0);
        }
    }

    /// What found no room in the maps of each probe.
    pub(crate) fn lost(&mut self, totals: &WindowTotals) {
        for (probe, count) in &totals.lost_count {
            let before = self.lost_before.get(probe).copied().unwrap_or(0);
            self.add(AGENT_LOST, &[probe], count.saturating_sub(before) as f64);
            // It falls while a CPU that came later is away, and is as high again when that is back.
            self.lost_before.insert(*probe, before.max(*count));
        }
    }

    /// For how long probes counted in this window: all of it, or the time of a new sample.
    pub(crate) fn observed(&self, frame: &WatchFrame) {
        if frame.gaps.contains_key(WatchFrame::ALL_PROBES) {
            return;
        }
        let [rest, drops] = ProbeDutyCycle::PROBES;
        let is_missing = |what: &&str| *what == drops && frame.gaps.contains_key(DROPS);
        for what in [rest, drops].into_iter().filter(|what| !is_missing(what)) {
            let counted_s = match frame.sampled.iter().find(|sampled| sampled.what == what) {
                // It was counted in a window before this one.
                Some(sampled) if sampled.age_s > 0.0 => 0.0,
                Some(sampled) => sampled.counted_s,
                None => frame.window_s,
            };
            self.add(OBSERVED, &[what], counted_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rxpath_core::PathSide;
    use rxpath_record::watch::ProbeShare;

    use super::*;
    use crate::governor::WindowCost;

    #[test]
    fn what_is_left_out_is_named() {
        let mut families = Families::new("1", 1).unwrap();
        families.own_process(2.0, 7);
        families.own_process(2.5, 8);
        families.own_programs([0.25, 0.125], 0);
        families.started(1e9);
        families.not_loaded("drops by reason", "restart");
        for (textfile, http) in [(0, 2), (1, 5)] {
            families.collect_errors(textfile, http);
        }
        let mut governor = Governor::new(0.01);
        families.governed(&governor);
        let text = families.text().unwrap();
        for line in [
            "rxpath_agent_cpu_seconds_total{part=\"user\"} 2.5",
            "rxpath_agent_cpu_seconds_total{part=\"bpf\"} 0.25",
            "rxpath_agent_cpu_seconds_total{part=\"bpf_entry\"} 0.125",
            "rxpath_agent_memory_bytes{kind=\"rss\"} 8",
            "rxpath_agent_budget_ratio 0.01",
            "rxpath_agent_start_time_seconds 1000000000",
            "rxpath_collect_errors_total{source=\"textfile\"} 1",
            "rxpath_collect_errors_total{source=\"http\"} 5",
            "rxpath_agent_shed{what=\"BPF probes\"} 0",
            "rxpath_probe_not_loaded{needs=\"restart\",what=\"drops by reason\"} 1",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
        let dear = WindowCost { window_s: 30.0, threads_s: 9.0, programs_s: 0.0 };
        (0..99).for_each(|_| governor.window(dear));
        families.governed(&governor);
        let text = families.text().unwrap();
        assert!(text.contains("rxpath_agent_cost_ratio 0.3\n"), "{text}");
        assert!(text.contains("rxpath_agent_shed{what=\"BPF probes\"} 1"), "{text}");
    }

    /// Their cost was measured last before these windows.
    #[test]
    fn what_programs_cost_after_windows_without_them_counts_whole() {
        let mut families = Families::new("1", 1).unwrap();
        let cost = ProbeShare {
            cpu_ratio: 0.25,
            entry_cpu_ratio: Some(0.125),
            measured_s: 8.0,
            ..ProbeShare::default()
        };
        let frame = WatchFrame { window_s: 2.0, probe_cost: Some(cost), ..WatchFrame::default() };
        families.own(&frame);
        let text = families.text().unwrap();
        for (part, seconds) in [("bpf", 2), ("bpf_entry", 1)] {
            let line = format!("{AGENT_CPU}{{part=\"{part}\"}} {seconds}");
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
    }

    #[test]
    fn the_maps_of_all_programs_are_its_memory() {
        let mut families = Families::new("1", 1).unwrap();
        let cost = ProbeShare { map_bytes: 4096, ..ProbeShare::default() };
        let with = WatchFrame { probe_cost: Some(cost), ..WatchFrame::default() };
        // The last window has no probes: their maps are there all the same.
        for frame in [&with, &with, &WatchFrame::default()] {
            families.own(frame);
            families.own_programs([0.0; 2], 8192);
            let text = families.text().unwrap();
            let line = "rxpath_agent_memory_bytes{kind=\"bpf_maps\"} 12288";
            assert!(text.lines().any(|one| one == line), "{text}");
        }
    }

    #[test]
    fn gaps_of_many_devices_have_a_bounded_number_of_series() {
        let mut families = Families::new("1", 1).unwrap();
        let mut gaps: BTreeMap<String, String> =
            (0..1000).map(|n| (format!("queues of veth{n}"), "no".into())).collect();
        gaps.insert("tasks".into(), "no".into());
        gaps.extend(BY_DESIGN.map(|what| (what.to_owned(), "no".to_owned())));
        families.own(&WatchFrame { gaps, ..WatchFrame::default() });
        let text = families.text().unwrap();
        let series = text.lines().filter(|line| line.starts_with("rxpath_not_read{"));
        assert_eq!(series.count(), NOT_READ_MOST, "{text}");
        assert!(text.contains("rxpath_not_read{what=\"tasks\"} 1"), "{text}");
        let is_shown = |what: &&str| text.contains(&format!("{{what=\"{what}\"}}"));
        assert!(!BY_DESIGN.iter().any(is_shown), "{text}");
    }

    #[test]
    fn a_file_that_could_not_be_read_is_named_before_its_counters_and_devices_are() {
        let mut families = Families::new("1", 1).unwrap();
        let counter = |n: u32| format!("{}/Udp.C{n}", PathSide::Machine);
        let mut gaps: BTreeMap<String, String> =
            (0..1000).map(|n| (counter(n), "no".into())).collect();
        for what in ["snmp", "tasks", "queues of eth0"] {
            gaps.insert(what.into(), "no".into());
        }
        families.own(&WatchFrame { gaps, ..WatchFrame::default() });
        let text = families.text().unwrap();
        for what in ["snmp", "tasks", "queues of eth0"] {
            assert!(text.contains(&format!("{NOT_READ}{{what=\"{what}\"}} 1")), "{what}: {text}");
        }
        assert_eq!(text.matches("rxpath_not_read{").count(), NOT_READ_MOST, "{text}");
    }

    #[test]
    fn lost_records_that_are_told_again_count_once() {
        let mut families = Families::new("1", 1).unwrap();
        for count in [7, 3, 7, 9] {
            let lost_count = [("account", count), ("drops", 0)].into();
            families.lost(&WindowTotals { lost_count, ..WindowTotals::default() });
        }
        let text = families.text().unwrap();
        for (probe, lost) in [("account", 9), ("drops", 0)] {
            let line = format!("{AGENT_LOST}{{probe=\"{probe}\"}} {lost}");
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
    }

    #[test]
    fn observed_is_what_was_counted_and_each_sample_once() {
        let families = Families::new("1", 1).unwrap();
        let sampled = |counted_s, age_s| ProbeDutyCycle {
            what: ProbeDutyCycle::PROBES[0].into(),
            counted_s,
            age_s,
            ..ProbeDutyCycle::default()
        };
        let of = |sampled: Option<ProbeDutyCycle>| WatchFrame {
            window_s: 10.0,
            sampled: sampled.into_iter().collect(),
            ..WatchFrame::default()
        };
        let without =
            |gap: &str| WatchFrame { gaps: [(gap.into(), "no".into())].into(), ..of(None) };
        families.observed(&without(WatchFrame::ALL_PROBES));
        assert!(!families.text().unwrap().contains("rxpath_observed"), "nobody counted");
        // All the time; a part of it; and that sample again, for want of a new one.
        for frame in [of(None), of(Some(sampled(0.5, 0.0))), of(Some(sampled(0.5, 10.0)))] {
            families.observed(&frame);
        }
        families.observed(&without(DROPS));
        let text = families.text().unwrap();
        for (probe, right) in [(ProbeDutyCycle::PROBES[0], "20.5"), ("drops", "30")] {
            let line = format!("rxpath_observed_seconds_total{{probe=\"{probe}\"}} {right}");
            assert!(text.lines().any(|one| one == line), "{line} in {text}");
        }
    }
}
