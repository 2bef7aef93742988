//! What the probes of a live view cost: a tenth of a second at most, measured now and then.
//!
//! Measuring is switched on for the whole kernel and costs two clock readings for each run of a program; a view is open
//! for long, so it must not measure all the time. Programs are duty-cycled: they count by how long they were in place, while
//! they were measured, and since the measurement before.

use std::time::{Duration, Instant};

use rxpath_bpf::cost::{CostMeter, ProgramCost};
use rxpath_bpf::probe::{Probe, map_bytes};
use rxpath_bpf::stages::InPlace;
use rxpath_record::watch::ProbeShare;

/// From one measurement to the next: with a sample a second every tenth frame has a new one.
const AGAIN: Duration = Duration::from_secs(10);

/// Longer is not measured: `sched_switch` alone runs hundreds of times in that on an idle host. Where turns are short
/// it is one turn.
const LENGTH: Duration = Duration::from_millis(100);

/// Probes that share their turns.
const GROUPS: usize = 2;

/// A probe, for how long its programs were in place up to now, and with whom it shares its turns.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) probe: &'a dyn Probe,
    pub(super) in_place: InPlace,
    pub(super) group: usize,
}

/// Measures when it is time.
#[derive(Debug)]
pub(super) struct Meter {
    due: Instant,
    open: Option<Open>,
    /// What was measured and is not shown yet.
    measured: Option<Measured>,
    newest: Option<ProbeShare>,
    /// When the newest was.
    at: Instant,
    /// When what the newest is scaled to ended, and for how long each probe had been in place then.
    begun: (Instant, Vec<InPlace>),
}

/// While it is measured: since when, and for how long each probe had been in place then.
#[derive(Debug)]
struct Open {
    since: Instant,
    meters: Vec<(CostMeter, InPlace)>,
}

/// What was measured.
#[derive(Debug, Default)]
struct Measured {
    length: Duration,
    /// Of each probe: for how long it was in place meanwhile.
    programs: Vec<(Vec<ProgramCost>, InPlace)>,
    gap: Option<String>,
}

impl Default for Meter {
    /// The first measurement is due now.
    fn default() -> Self {
        let now = Instant::now();
        Self {
            due: now,
            open: None,
            measured: None,
            newest: None,
            at: now,
            begun: (now, Vec::new()),
        }
    }
}

impl Meter {
    /// Whether it is time to begin.
    pub(super) fn is_due(&self) -> bool {
        self.open.is_none() && Instant::now() >= self.due
    }

    /// Whether it is time to stop.
    pub(super) fn is_over(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.since.elapsed() >= LENGTH)
    }

    /// Begins, while everything is in place.
    pub(super) fn start(&mut self, parts: &[Part<'_>]) {
        let since = Instant::now();
        self.due = since + AGAIN;
        let meters = parts.iter().map(|part| Ok((part.probe.loaded().meter()?, part.in_place)));
        let meters: Result<Vec<_>, rxpath_host::HostError> = meters.collect();
        match meters {
            Ok(meters) => self.open = Some(Open { since, meters }),
            Err(error) => {
                let gap = Some(error.to_string());
                self.measured = Some(Measured { gap, ..Measured::default() });
            }
        }
    }

    /// Stops, and gives the run time in ns of each group.
    pub(super) fn stop(&mut self, parts: &[Part<'_>]) -> Option<[f64; GROUPS]> {
        let open = self.open.take()?;
        self.at = Instant::now();
        let mut measured = Measured { length: open.since.elapsed(), ..Measured::default() };
        let mut groups = [0.0; GROUPS];
        for ((meter, begun), part) in open.meters.into_iter().zip(parts) {
            let cost = meter.stop();
            if let Some(group) = groups.get_mut(part.group) {
                *group += 1e9 * cost.run_time_s;
            }
            measured.gap = measured.gap.or(cost.gap);
            measured.programs.push((cost.programs, part.in_place.since(&begun)));
        }
        self.measured = Some(measured);
        Some(groups)
    }

    /// What was measured last, at the end of a window.
    pub(super) fn until_now(&mut self, parts: &[Part<'_>]) -> Option<ProbeShare> {
        if self.newest.is_none() {
            // The first frame has one, however short its window was.
            self.stop(parts);
        }
        let now = Instant::now();
        if let Some(measured) = self.measured.take() {
            let in_place: Vec<InPlace> = parts.iter().map(|part| part.in_place).collect();
            let (begun, mut before) = std::mem::replace(&mut self.begun, (now, in_place.clone()));
            before.resize(in_place.len(), InPlace::default());
            let since = in_place.iter().zip(&before).map(|(now, then)| now.since(then)).collect();
            let share = measured.share(now.duration_since(begun), since);
            let probes: Vec<&dyn Probe> = parts.iter().map(|part| part.probe).collect();
            self.newest = Some(ProbeShare { map_bytes: map_bytes(&probes), ..share });
        }
        let age_s = now.duration_since(self.at).as_secs_f64();
        Some(ProbeShare { age_s, ..self.newest.clone()? })
    }
}

impl Measured {
    /// Of a time of this length, in which each probe was in place for so long.
    fn share(&self, whole: Duration, in_place: Vec<InPlace>) -> ProbeShare {
        let (mut ns_per_s, mut runs_per_s) = (0.0, 0.0);
        for ((programs, measured), in_place) in self.programs.iter().zip(in_place) {
            for program in programs {
                let share =
                    in_place.of(&program.program).as_secs_f64() / whole.as_secs_f64().max(1e-9);
                let measured_s = measured.of(&program.program).as_secs_f64().max(1e-9);
                ns_per_s += program.run_time_ns as f64 / measured_s * share.min(1.0);
                runs_per_s += program.runs_count as f64 / measured_s * share.min(1.0);
            }
        }
        ProbeShare {
            cpu_ratio: ns_per_s / 1e9,
            runs_per_s,
            ns_per_run: if runs_per_s > 0.0 { ns_per_s / runs_per_s } else { 0.0 },
            measured_s: self.length.as_secs_f64(),
            gap: self.gap.clone(),
            ..ProbeShare::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_by_turns_counts_by_how_long_it_was_in_place() {
        let ms = Duration::from_millis;
        let program = |program: &str, runs_count, run_time_ns| ProgramCost {
            program: program.into(),
            runs_count,
            run_time_ns,
            missed_runs_count: 0,
        };
        let all = |time| InPlace { packets: time, reads: time };
        let measured = Measured {
            length: ms(100),
            programs: vec![
                (vec![program("sched_switch", 1000, 100_000)], all(ms(100))),
                (
                    vec![
                        program("netif_receive_skb", 4000, 800_000),
                        program("sock_recv_length", 16, 3200),
                    ],
                    // The turn was over in half of the time.
                    InPlace { packets: ms(50), reads: ms(80) },
                ),
            ],
            gap: None,
        };
        let in_place = vec![all(ms(1000)), InPlace { packets: ms(250), reads: ms(500) }];
        let share = measured.share(ms(1000), in_place);
        // 10,000 of 100 ns; 80,000 of 200 ns in a quarter of the time; 200 of 200 ns in half of it.
        assert!((share.runs_per_s - 30_100.0).abs() < 1e-6, "{share:?}");
        assert!((share.cpu_ratio - (0.001 + 0.004 + 0.000_02)).abs() < 1e-9, "{share:?}");
        assert!((share.ns_per_run - share.cpu_ratio * 1e9 / 30_100.0).abs() < 1e-6, "{share:?}");
        assert!((share.measured_s - 0.1).abs() < 1e-12, "{share:?}");
    }

    #[test]
    fn a_kernel_that_does_not_measure_leaves_a_gap() {
        let refused = Measured { gap: Some("refused".into()), ..Measured::default() };
        assert_eq!(refused.share(LENGTH, Vec::new()).gap.as_deref(), Some("refused"));
        assert_eq!(Measured::default().share(LENGTH, Vec::new()).ns_per_run.to_bits(), 0);
    }
}
