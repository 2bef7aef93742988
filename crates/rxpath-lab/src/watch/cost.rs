//! What the probes of a live view cost: a tenth of a second measured now and then.
//!
//! Measuring is switched on for the whole kernel and costs two clock readings for each run of a program; a view is open
//! for long, so it must not measure all the time. Programs that run by turns are measured in a turn, and count by the
//! share of the window in which their turns lay.

use std::time::{Duration, Instant};

use rxpath_bpf::ProbeCost;
use rxpath_bpf::cost::PartMeter;
use rxpath_bpf::object::Loaded;
use rxpath_bpf::stages::Stages;
use rxpath_record::watch::ProbeShare;

/// From one measurement to the next: with a look a second every tenth frame has a new one.
const AGAIN: Duration = Duration::from_secs(10);

/// A tenth of it is measured (see [`PartMeter`]): `sched_switch` alone runs hundreds of times in that on a host at rest.
const WINDOW: Duration = Duration::from_secs(1);

/// The objects whose programs run.
#[derive(Clone, Copy)]
pub(super) struct Running<'a> {
    /// All the time.
    pub(super) always: &'a [&'a Loaded],
    /// By turns, but for one program.
    pub(super) stages: Option<&'a Stages>,
}

/// Measures when it is time.
#[derive(Debug)]
pub(super) struct Meter {
    due: Instant,
    open: Option<Open>,
    /// A part of this window.
    part: Option<Part>,
    newest: Option<ProbeShare>,
    /// When the newest was.
    measured: Instant,
    /// When this window began, and for how long stages had been looked at then.
    begun: (Instant, Duration),
}

/// While it is measured.
#[derive(Debug)]
struct Open {
    always: PartMeter,
    stages: Option<PartMeter>,
}

/// What was measured.
#[derive(Debug, Default)]
struct Part {
    always: ProbeCost,
    stages: ProbeCost,
}

impl Meter {
    /// The first measurement is due now.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let begun = (now, Duration::ZERO);
        Self { due: now, open: None, part: None, newest: None, measured: now, begun }
    }

    /// Stops when enough was measured; to be called some times a window, before turns begin or end.
    pub(super) fn note(&mut self) {
        if self.open.as_mut().is_some_and(|open| open.always.note()) {
            self.stop();
        }
    }

    /// Begins when it is time and everything runs.
    pub(super) fn measure(&mut self, running: &Running<'_>) {
        let now = Instant::now();
        if self.open.is_some() || now < self.due {
            return;
        }
        let waits = |stages: &Stages| !stages.is_looking() && stages.stopped().is_none();
        if running.stages.is_some_and(waits) {
            return;
        }
        self.due = now + AGAIN;
        let of_stages = running.stages.map(|stages| PartMeter::start(&[stages.loaded()], WINDOW));
        let opened = PartMeter::start(running.always, WINDOW)
            .and_then(|always| Ok(Open { always, stages: of_stages.transpose()? }));
        match opened {
            Ok(open) => self.open = Some(open),
            Err(error) => self.part = Some(Part::unknown(error.to_string())),
        }
    }

    fn stop(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        self.measured = Instant::now();
        let stages = open.stages.as_mut().map(PartMeter::stop).unwrap_or_default();
        self.part = Some(Part { always: open.always.stop(), stages });
    }

    /// What was measured last, at the end of a window.
    pub(super) fn until_now(&mut self, running: &Running<'_>) -> Option<ProbeShare> {
        self.note();
        if self.newest.is_none() {
            // The first frame has one, however short its window was.
            self.stop();
        }
        let now = Instant::now();
        let looked = running.stages.map_or(Duration::ZERO, Stages::looked);
        let (begun, before) = std::mem::replace(&mut self.begun, (now, looked));
        if let Some(part) = self.part.take() {
            let window_s = now.duration_since(begun).as_secs_f64().max(1e-9);
            let turns = looked.saturating_sub(before).as_secs_f64() / window_s;
            let objects = running.always.iter().copied().chain(running.stages.map(Stages::loaded));
            let map_bytes = objects.map(Loaded::map_bytes).sum();
            self.newest = Some(ProbeShare { map_bytes, ..part.share(turns.min(1.0)) });
        }
        let age_s = now.duration_since(self.measured).as_secs_f64();
        Some(ProbeShare { age_s, ..self.newest.clone()? })
    }
}

impl Part {
    fn unknown(why: String) -> Self {
        Self { always: ProbeCost { gap: Some(why), ..ProbeCost::default() }, ..Self::default() }
    }

    /// Of a window of which `turns` were looked at.
    fn share(&self, turns: f64) -> ProbeShare {
        let (mut ns_per_s, mut runs_per_s) = (0.0, 0.0);
        for (cost, turns) in [(&self.always, None), (&self.stages, Some(turns))] {
            for program in &cost.programs {
                let share = turns.filter(|_| Stages::is_by_turns(&program.program)).unwrap_or(1.0);
                let weight = share / cost.measured_s.max(1e-9);
                ns_per_s += program.run_time_ns as f64 * weight;
                runs_per_s += program.runs_count as f64 * weight;
            }
        }
        ProbeShare {
            cpu_ratio: ns_per_s / 1e9,
            runs_per_s,
            ns_per_run: if runs_per_s > 0.0 { ns_per_s / runs_per_s } else { 0.0 },
            measured_s: self.always.measured_s,
            gap: self.always.gap.clone().or_else(|| self.stages.gap.clone()),
            ..ProbeShare::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rxpath_bpf::cost::ProgramCost;

    fn cost(measured_s: f64, programs: &[(&str, u64, u64)]) -> ProbeCost {
        let program = |(program, runs_count, run_time_ns): &(&str, u64, u64)| ProgramCost {
            program: (*program).into(),
            runs_count: *runs_count,
            run_time_ns: *run_time_ns,
            missed_runs_count: 0,
        };
        ProbeCost {
            measured_s,
            programs: programs.iter().map(program).collect(),
            ..ProbeCost::default()
        }
    }

    #[test]
    fn what_runs_by_turns_counts_by_its_turns() {
        let part = Part {
            always: cost(0.1, &[("sched_switch", 1000, 100_000)]),
            stages: cost(0.2, &[("netif_receive_s", 4000, 800_000), ("sock_recv_lengt", 20, 4000)]),
        };
        let share = part.share(0.25);
        // 10,000 of 100 ns; 20,000 of 200 ns in a quarter of the time; 100 of 200 ns.
        assert!((share.runs_per_s - 15_100.0).abs() < 1e-6, "{share:?}");
        assert!((share.cpu_ratio - (0.001 + 0.001 + 0.000_02)).abs() < 1e-9, "{share:?}");
        assert!((share.ns_per_run - share.cpu_ratio * 1e9 / 15_100.0).abs() < 1e-6, "{share:?}");
        assert!((share.measured_s - 0.1).abs() < 1e-12, "{share:?}");
    }

    #[test]
    fn a_kernel_that_does_not_measure_leaves_a_gap() {
        let share = Part::unknown("refused".into()).share(1.0);
        assert_eq!(share.gap.as_deref(), Some("refused"));
        assert_eq!(Part::default().share(1.0).ns_per_run.to_bits(), 0);
    }
}
