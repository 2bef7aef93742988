//! `/status`: what the exporter measures, what not and why, and what it may cost.

use std::collections::BTreeMap;

use rxpath_export::governor::Governor;
use rxpath_record::verdict::DiagnosisVerdict;
use rxpath_record::watch::{ProbeDutyCycle, WatchFrame};
use serde::Deserialize;
use serde_json::Value;

use crate::cmd::prelude::*;

/// The exporter and its last window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExportStatus {
    /// Version of this program.
    pub version: String,
    /// Number of the last window, from 1.
    pub window_number: u64,
    /// When it ended, Unix time.
    pub window_at_unix_s: f64,
    /// Its length.
    pub window_s: f64,
    /// Whether BPF probes run.
    pub has_probes: bool,
    /// Probes that count only part of the time; empty if all count without a break.
    pub sampled: Vec<ProbeDutyCycle>,
    /// What is not known, with the reason.
    pub not_measured: BTreeMap<String, String>,
    /// What it may cost, and what it costs.
    pub budget: ExportBudget,
    /// The stage that limits reception, with its evidence.
    pub verdict: Option<DiagnosisVerdict>,
}

/// The cost of the exporter, in CPUs: 0.01 is a hundredth of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExportBudget {
    /// What it may take.
    pub budget_ratio: f64,
    /// What it took in the last five minutes: its threads and its BPF programs.
    pub cost_ratio: f64,
    /// What the BPF programs may take of the budget now.
    pub probes_cpu_ratio: f64,
    /// Windows are this many times as long as asked for.
    pub stretch_count: u32,
    /// Whether the latency of stages is left out.
    pub without_latency: bool,
    /// Whether all BPF probes are left out.
    pub without_probes: bool,
}

/// What an exporter cannot see without the privilege to enter it.
const NAMESPACES: &str = "other network namespaces";
const NOT_ENTERED: &str = "losses and the verdict are those of one network namespace; drops, CPU time, what passes the stages \
                           irq, gro and backlog, and the losses of the backlog are the machine's. An exporter with --netns \
                           measures another one";

/// The page.
pub fn page(
    frame: &WatchFrame,
    governor: &Governor,
    interval_s: f64,
) -> serde_json::Result<String> {
    let course = governor.course();
    let mut not_measured = frame.gaps.clone();
    not_measured.insert(NAMESPACES.into(), NOT_ENTERED.into());
    let status = ExportStatus {
        version: env!("CARGO_PKG_VERSION").into(),
        window_number: frame.number,
        window_at_unix_s: frame.at_unix_s,
        window_s: frame.window_s,
        has_probes: !frame.gaps.contains_key(WatchFrame::ALL_PROBES),
        sampled: frame.sampled.clone(),
        not_measured,
        budget: ExportBudget {
            budget_ratio: governor.budget(),
            cost_ratio: governor.cost(),
            probes_cpu_ratio: course.probes_cpu_ratio,
            stretch_count: course.stretch,
            without_latency: !course.with_latency,
            without_probes: !course.with_probes,
        },
        verdict: frame.verdict.clone(),
    };
    let settings: Value = json!({ "interval_s": interval_s });
    serde_json::to_string_pretty(&Envelope::new("export-status", settings, status, Vec::new()))
        .map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_measured_has_its_reason() {
        let gaps = [("BPF probes".to_owned(), "needs CAP_BPF".to_owned())].into();
        let frame = WatchFrame { number: 3, window_s: 10.0, gaps, ..WatchFrame::default() };
        let text = page(&frame, &Governor::new(0.02), 10.0).unwrap();
        let read: Envelope<Value, ExportStatus> = serde_json::from_str(&text).unwrap();
        assert_eq!(read.schema, "rxpath/export-status/1.0");
        assert!(!read.result.has_probes);
        assert_eq!(read.result.not_measured["BPF probes"], "needs CAP_BPF");
        let elsewhere = &read.result.not_measured["other network namespaces"];
        assert!(elsewhere.contains("--netns"), "{elsewhere}");
        assert!((read.result.budget.budget_ratio - 0.02).abs() < 1e-12);
    }
}
