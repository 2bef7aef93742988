//! Spins of the loop on one CPU, while interrupts arrive there: what they cost outside all tracepoints.

use std::thread::sleep;

use rxpath_host::HostError;
use rxpath_host::read::cputime::user_hz;
use rxpath_host::read::thread;
use rxpath_host::write::sched;

use super::sender::{InterruptSender, Prepare};
use super::threads::on_cpu;
use super::{CalibrationPoint, SpinPlan};
use crate::account::spin::{Gaps, Prepared};
use crate::account::{Account, Reading};

/// The least number of interrupts for a spin: half of those of a 250 Hz tick.
const LEAST_INTERRUPTS: u64 = 25;

/// The least share of its time that the loop must have its CPU.
const LEAST_ON_CPU: f64 = 0.5;

/// A sender whose loop does not get its CPU sends for so many times the length of a spin.
const LONGEST_SPINS: u32 = 50;

/// Spins one after the other.
#[derive(Debug)]
pub(super) struct Spins<'a> {
    account: &'a mut Account,
    cpu: u32,
    plan: &'a SpinPlan,
    prepared: Prepared,
    sender: InterruptSender,
}

impl<'a> Spins<'a> {
    /// Of the loop on the first CPU, with a sender on the second.
    pub(super) fn start(
        account: &'a mut Account,
        cpus: (u32, u32),
        plan: &'a SpinPlan,
        prepare: Prepare,
    ) -> Result<Self, HostError> {
        let (cpu, spin) = (cpus.0, plan.spin);
        let prepared = on_cpu(cpu, move || Prepared::new(spin, 0))?;
        let sender = InterruptSender::start(prepare, cpus, LONGEST_SPINS * spin)?;
        Ok(Self { account, cpu, plan, prepared, sender })
    }

    /// One spin while interrupts are sent at this rate per second, or only those arrive that arrive anyway; none where too
    /// little of it counts.
    pub(super) fn spin(
        &mut self,
        rate: Option<f64>,
    ) -> Result<Option<CalibrationPoint>, HostError> {
        self.pause()?;
        // Not that of the spin before: the hypervisor's time in the pause is not the loop's.
        let before = self.account.read()?;
        if let Some(rate) = rate {
            self.sender.begin(rate)?;
        }
        let sampled = self.sample();
        if rate.is_some() {
            self.sender.end()?;
        }
        let (tid, gaps) = sampled?;
        let mut after = self.account.read()?;
        let hypervisor_ns = hypervisor_ns(&before, &after, self.cpu);
        let during =
            if self.account.is_live { after.take_since(&before) } else { after.since(&before) };
        Ok(hidden(&during, (tid, self.cpu), &gaps, hypervisor_ns))
    }

    /// In a pause the programs stay in their places and count nothing: taking them away and attaching them again takes longer
    /// than a spin.
    fn pause(&mut self) -> Result<(), HostError> {
        if self.plan.pause.is_zero() {
            return Ok(());
        }
        let ended = self.account.end_turn();
        // why: a limit of CPU time (CPUQuota=) holds for each 100 ms, and must not stop the loop in its middle.
        sleep(self.plan.pause);
        self.account.begin_turn();
        ended
    }

    /// The loop, on a thread that does nothing else, and the id of this thread.
    fn sample(&self) -> Result<(u32, Gaps), HostError> {
        let (prepared, is_thorough) = (self.prepared, self.plan.is_thorough);
        on_cpu(self.cpu, move || {
            if is_thorough {
                // Fewer switches to other tasks are better; without the privilege there are more.
                let _ = sched::set_nice(0, -20);
            }
            (thread::current_tid() as u32, prepared.look())
        })
    }
}

/// Time that the hypervisor had a CPU, in steps of a tick of `/proc/stat` (10 ms).
fn hypervisor_ns(before: &Reading, after: &Reading, cpu: u32) -> f64 {
    let ticks = |reading: &Reading| {
        reading.ticks.cpus.iter().find(|(other, _)| *other == cpu).map_or(0, |(_, t)| t.steal)
    };
    ticks(after).saturating_sub(ticks(before)) as f64 * 1e9 / user_hz() as f64
}

/// The time per interrupt that the loop lost and that nothing else explains; none where that is not known: hypervisor time is
/// counted in ticks of 10 ms, and a tick that is longer than all gaps lies outside the spin for the most part.
fn hidden(
    during: &Reading,
    (tid, cpu): (u32, u32),
    gaps: &Gaps,
    hypervisor_ns: f64,
) -> Option<CalibrationPoint> {
    let row = during.tasks.iter().find(|t| t.key.pid == tid && t.key.cpu == cpu)?;
    let charge = &row.charge;
    let on_cpu_ns = charge.on_cpu_ns as f64;
    if charge.interrupts < LEAST_INTERRUPTS || on_cpu_ns < gaps.wall_ns * LEAST_ON_CPU {
        return None;
    }
    if hypervisor_ns >= gaps.gaps_ns {
        return None;
    }
    let others_ns = (gaps.wall_ns - on_cpu_ns).max(0.0);
    // The thread begins before its loop: a fortieth of 4 ms.
    let part = (gaps.wall_ns / on_cpu_ns).min(1.0);
    let interrupts = charge.interrupts as f64 * part;
    let seen_ns = charge.interrupted_ns() as f64 * part;
    let hidden_ns = (gaps.gaps_ns - others_ns - hypervisor_ns - seen_ns).max(0.0);
    Some(CalibrationPoint {
        rate_per_s: interrupts / (gaps.wall_ns / 1e9),
        irq_entry_us: hidden_ns / interrupts / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::row::{Charge, ChargedTask, TaskKey};

    #[test]
    fn what_is_accounted_for_is_not_hidden() {
        let key = TaskKey { start_ns: 1, pid: 7, cpu: 1 };
        let charge = Charge {
            on_cpu_ns: 900_000_000,
            hardirq_ns: 50_000_000,
            net_rx_ns: 150_000_000,
            interrupts: 20_000,
            ..Charge::default()
        };
        let during = |charge| Reading {
            tasks: vec![ChargedTask {
                key,
                charge,
                first_ns: 1,
                last_ns: 2,
                tgid: 7,
                parent: 1,
                flags: 0,
                comm: "loop".into(),
                cgroup: 0,
            }],
            ..Reading::default()
        };
        // 100 ms were other tasks', 200 ms are seen: 100 ms of the gaps are left for 20,000 interrupts.
        let gaps = Gaps { wall_ns: 1e9, gaps_ns: 400e6, ..Gaps::default() };
        let point = hidden(&during(charge), (7, 1), &gaps, 0.0).unwrap();
        assert!((point.irq_entry_us - 5.0).abs() < 1e-9, "{point:?}");
        assert!((point.rate_per_s - 20_000.0).abs() < 1e-6, "{point:?}");
        let seldom = Charge { interrupts: 24, ..charge };
        assert_eq!(hidden(&during(seldom), (7, 1), &gaps, 0.0), None);
        let away = Charge { on_cpu_ns: 400_000_000, ..charge };
        assert_eq!(hidden(&during(away), (7, 1), &gaps, 0.0), None);
        let stolen = hidden(&during(charge), (7, 1), &gaps, 60e6).unwrap();
        assert!((stolen.irq_entry_us - 2.0).abs() < 1e-9, "{stolen:?}");
        // A spin of 4 ms, on which a tick of the hypervisor falls.
        let short = Gaps { wall_ns: 1e9, gaps_ns: 2e6, ..Gaps::default() };
        assert_eq!(hidden(&during(charge), (7, 1), &short, 10e6), None, "not 0 us");
        assert_eq!(hidden(&during(charge), (8, 1), &gaps, 0.0), None, "another task");
        // A tenth of its time on the CPU was before the loop, with a tenth of the interrupts.
        let early = Charge { on_cpu_ns: 1_000_000_000, ..charge };
        let gaps = Gaps { wall_ns: 0.9e9, gaps_ns: 270e6, ..Gaps::default() };
        let point = hidden(&during(early), (7, 1), &gaps, 0.0).unwrap();
        assert!((point.rate_per_s - 20_000.0).abs() < 1e-6, "{point:?}");
        assert!((point.irq_entry_us - 5.0).abs() < 1e-9, "{point:?}");
    }
}
