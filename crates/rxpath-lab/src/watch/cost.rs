//! What the probes of a live view cost: a tenth of a second measured now and then.
//!
//! Measuring is switched on for the whole kernel and costs two clock readings for each run of a program; a view is open
//! for long, so it must not measure all the time. Programs that run by turns are measured while a turn lasts and somewhat
//! longer, and count by how long they were in place: while they were measured, and in the window.

use std::time::{Duration, Instant};

use rxpath_bpf::ProbeCost;
use rxpath_bpf::cost::{PartMeter, ProgramCost};
use rxpath_bpf::object::Loaded;
use rxpath_bpf::probe::Probe;
use rxpath_bpf::stages::{InPlace, Stages};
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
    /// By turns.
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
    /// When this window began, and for how long the stages' hooks had been in place then.
    begun: (Instant, InPlace),
}

/// While it is measured.
#[derive(Debug)]
struct Open {
    always: PartMeter,
    /// And for how long its hooks had been in place when the measurement began.
    stages: Option<(PartMeter, InPlace)>,
}

/// What was measured.
#[derive(Debug, Default)]
struct Part {
    always: ProbeCost,
    stages: ProbeCost,
    /// For how long the stages' hooks were in place meanwhile.
    in_place: InPlace,
}

impl Meter {
    /// The first measurement is due now.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let begun = (now, InPlace::default());
        Self { due: now, open: None, part: None, newest: None, measured: now, begun }
    }

    /// Stops when enough was measured; to be called some times a window.
    pub(super) fn note(&mut self, running: &Running<'_>) {
        if self.open.as_mut().is_some_and(|open| open.always.note()) {
            self.stop(running);
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
        let of_stages = running.stages.map(|stages| {
            PartMeter::start(&[stages.loaded()], WINDOW).map(|part| (part, stages.in_place()))
        });
        let opened = PartMeter::start(running.always, WINDOW)
            .and_then(|always| Ok(Open { always, stages: of_stages.transpose()? }));
        match opened {
            Ok(open) => self.open = Some(open),
            Err(error) => self.part = Some(Part::unknown(error.to_string())),
        }
    }

    fn stop(&mut self, running: &Running<'_>) {
        let Some(mut open) = self.open.take() else { return };
        self.measured = Instant::now();
        let mut part = Part { always: open.always.stop(), ..Part::default() };
        if let (Some((meter, begun)), Some(stages)) = (&mut open.stages, running.stages) {
            part.stages = meter.stop();
            part.in_place = stages.in_place().since(begun);
        }
        self.part = Some(part);
    }

    /// What was measured last, at the end of a window.
    pub(super) fn until_now(&mut self, running: &Running<'_>) -> Option<ProbeShare> {
        self.note(running);
        if self.newest.is_none() {
            // The first frame has one, however short its window was.
            self.stop(running);
        }
        let now = Instant::now();
        let in_place = running.stages.map(Stages::in_place).unwrap_or_default();
        let (begun, before) = std::mem::replace(&mut self.begun, (now, in_place));
        if let Some(part) = self.part.take() {
            let window = now.duration_since(begun);
            let always: u64 = running.always.iter().copied().map(Loaded::map_bytes).sum();
            let map_bytes = always + running.stages.map_or(0, Probe::map_bytes);
            let share = part.share(window, &in_place.since(&before));
            self.newest = Some(ProbeShare { map_bytes, ..share });
        }
        let age_s = now.duration_since(self.measured).as_secs_f64();
        Some(ProbeShare { age_s, ..self.newest.clone()? })
    }
}

impl Part {
    fn unknown(why: String) -> Self {
        Self { always: ProbeCost { gap: Some(why), ..ProbeCost::default() }, ..Self::default() }
    }

    /// Of a window of this length, in which the stages' hooks were in place for so long.
    fn share(&self, window: Duration, in_place: &InPlace) -> ProbeShare {
        let (mut ns_per_s, mut runs_per_s) = (0.0, 0.0);
        let mut add = |program: &ProgramCost, measured_s: f64, share: f64| {
            let weight = share.min(1.0) / measured_s.max(1e-9);
            ns_per_s += program.run_time_ns as f64 * weight;
            runs_per_s += program.runs_count as f64 * weight;
        };
        for program in &self.always.programs {
            add(program, self.always.measured_s, 1.0);
        }
        for program in &self.stages.programs {
            let measured_s = self.in_place.of(&program.program).as_secs_f64();
            let window_s = in_place.of(&program.program).as_secs_f64();
            add(program, measured_s, window_s / window.as_secs_f64().max(1e-9));
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
    fn what_runs_by_turns_counts_by_how_long_it_was_in_place() {
        let ms = Duration::from_millis;
        let part = Part {
            always: cost(0.1, &[("sched_switch", 1000, 100_000)]),
            stages: cost(
                0.1,
                &[("netif_receive_skb", 4000, 800_000), ("sock_recv_length", 16, 3200)],
            ),
            // The turn was over in half of the time.
            in_place: InPlace { packets: ms(50), reads: ms(80) },
        };
        let share = part.share(ms(1000), &InPlace { packets: ms(250), reads: ms(500) });
        // 10,000 of 100 ns; 80,000 of 200 ns in a quarter of the time; 200 of 200 ns in half of it.
        assert!((share.runs_per_s - 30_100.0).abs() < 1e-6, "{share:?}");
        assert!((share.cpu_ratio - (0.001 + 0.004 + 0.000_02)).abs() < 1e-9, "{share:?}");
        assert!((share.ns_per_run - share.cpu_ratio * 1e9 / 30_100.0).abs() < 1e-6, "{share:?}");
        assert!((share.measured_s - 0.1).abs() < 1e-12, "{share:?}");
    }

    #[test]
    fn a_kernel_that_does_not_measure_leaves_a_gap() {
        let share = Part::unknown("refused".into()).share(WINDOW, &InPlace::default());
        assert_eq!(share.gap.as_deref(), Some("refused"));
        assert_eq!(Part::default().share(WINDOW, &InPlace::default()).ns_per_run.to_bits(), 0);
    }
}
