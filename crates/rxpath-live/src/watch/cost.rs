//! What the probes of a live view cost, as their programs count it themselves: over each window, without a privilege.

use std::time::{Duration, Instant};

use rxpath_bpf::cost::CountedCost;
use rxpath_bpf::probe::{Probe, map_bytes};
use rxpath_record::watch::ProbeShare;

/// From one count of the maps' memory to the next: it walks over sockets.
const MAPS_AGAIN: Duration = Duration::from_secs(10);

/// Probes that share their turns.
pub(super) const GROUPS: usize = 2;

/// A probe, and with whom it shares its turns.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) probe: &'a dyn Probe,
    pub(super) group: usize,
}

/// The costs of all probes.
#[derive(Debug)]
pub(super) struct Meter {
    /// In the order of the parts.
    costs: Vec<CountedCost>,
    /// What the frame before ended with: when, runs, time of the programs in ns.
    shown: (Instant, u64, f64),
    maps: Option<(Instant, u64)>,
    gap: Option<String>,
}

impl Default for Meter {
    fn default() -> Self {
        let shown = (Instant::now(), 0, 0.0);
        Self { costs: Vec::new(), shown, maps: None, gap: None }
    }
}

impl Meter {
    /// What each group cost so far, in ns, the entries of its programs included.
    pub(super) fn spent_ns(&mut self, parts: &[Part<'_>]) -> [f64; GROUPS] {
        self.costs.resize(parts.len().max(self.costs.len()), CountedCost::default());
        let mut groups = [0.0; GROUPS];
        for (cost, part) in self.costs.iter_mut().zip(parts) {
            if let Err(error) = cost.update(part.probe.loaded()) {
                self.gap = Some(error.to_string());
            }
            groups[part.group] += cost.whole_ns();
        }
        groups
    }

    /// Runs of all programs, as of the last count.
    pub(super) fn runs(&self) -> u64 {
        self.costs.iter().map(|cost| cost.runs).sum()
    }

    /// The cost of the window that ends now.
    pub(super) fn until_now(&mut self, parts: &[Part<'_>]) -> ProbeShare {
        self.spent_ns(parts);
        let now = Instant::now();
        let runs = self.runs();
        let run_ns: f64 = self.costs.iter().map(|cost| cost.run_ns).sum();
        let entry_ns: f64 = self.costs.iter().map(CountedCost::entry_ns).sum();
        let (then, runs_then, ns_then) = std::mem::replace(&mut self.shown, (now, runs, run_ns));
        let window_s = now.duration_since(then).as_secs_f64().max(1e-9);
        let (new_runs, new_ns) = (runs.saturating_sub(runs_then) as f64, run_ns - ns_then);
        ProbeShare {
            cpu_ratio: new_ns / 1e9 / window_s,
            entry_cpu_ratio: Some(entry_ns / runs.max(1) as f64 * new_runs / 1e9 / window_s),
            runs_per_s: new_runs / window_s,
            ns_per_run: if new_runs > 0.0 { new_ns / new_runs } else { 0.0 },
            measured_s: window_s,
            age_s: 0.0,
            map_bytes: self.map_bytes(now, parts),
            lost_count: 0,
            gap: self.gap.clone(),
        }
    }

    fn map_bytes(&mut self, now: Instant, parts: &[Part<'_>]) -> u64 {
        match self.maps {
            Some((at, bytes)) if now.duration_since(at) < MAPS_AGAIN => bytes,
            _ => {
                let probes: Vec<&dyn Probe> = parts.iter().map(|part| part.probe).collect();
                let bytes = map_bytes(&probes);
                self.maps = Some((now, bytes));
                bytes
            }
        }
    }
}
