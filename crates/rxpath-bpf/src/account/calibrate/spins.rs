//! Spins of the loop on one CPU, while interrupts arrive there: what they cost outside all tracepoints.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::sleep;
use std::time::Instant;

use rxpath_host::cputime::user_hz;
use rxpath_host::{HostError, thread};

use super::{Point, SpinPlan, interrupts, packets};
use crate::account::spin::{Gaps, Prepared};
use crate::account::{Account, Reading};

/// The least number of interrupts for a spin: half of those of a 250 Hz tick. Hypervisor time is known only in ticks of
/// 10 ms: the spin that such a tick falls on is far off, and the median ignores it.
const LEAST_INTERRUPTS: u64 = 25;

/// The least share of its time that the loop must have its CPU.
const LEAST_ON_CPU: f64 = 0.5;

/// Interrupts at the loop's CPU during the measurement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrivals {
    /// Only those that arrive anyway.
    Ambient,
    /// Packets of a namespace of its own, steered there.
    Packets(f64),
    /// Interrupts that do nothing.
    Interrupts(f64),
}

impl Arrivals {
    /// Makes them arrive at `cpu`, from `other`.
    fn send(self, (cpu, other): (u32, u32), sending: &Sending<'_>) -> Result<(), HostError> {
        match self {
            Self::Ambient => {
                sending.begin();
                Ok(())
            }
            Self::Packets(rate) => packets::send_at(rate, (cpu, other), sending),
            Self::Interrupts(rate) => interrupts::send_at(rate, other, sending),
        }
    }
}

/// What a sender shares with the one that it sends for.
#[derive(Debug)]
pub(super) struct Sending<'a> {
    begun: Sender<()>,
    stop: &'a AtomicBool,
}

impl Sending<'_> {
    /// Everything is ready: the loop starts.
    fn begin(&self) {
        // Nobody waits for it once the measurement has ended.
        let _ = self.begun.send(());
    }

    /// Lets the loop start, and sends at a rate per second until it has ended. `act` sends one and gets its number, from 1.
    pub(super) fn at_rate(
        &self,
        rate: f64,
        mut act: impl FnMut(u64) -> Result<(), HostError>,
    ) -> Result<(), HostError> {
        self.begin();
        let begun = Instant::now();
        let mut sent = 0u64;
        while !self.stop.load(Ordering::Relaxed) {
            if sent < (begun.elapsed().as_secs_f64() * rate) as u64 {
                sent += 1;
                act(sent)?;
            } else {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }
}

/// Spins one after the other.
#[derive(Debug)]
pub(super) struct Spins<'a> {
    account: &'a Account,
    cpus: (u32, u32),
    plan: &'a SpinPlan,
    prepared: Prepared,
    /// With which the spin before ended.
    before: Reading,
}

impl<'a> Spins<'a> {
    /// Of the loop on the first CPU, with a sender on the second.
    pub(super) fn start(
        account: &'a Account,
        cpus: (u32, u32),
        plan: &'a SpinPlan,
    ) -> Result<Self, HostError> {
        let prepared = std::thread::scope(|scope| {
            let prepare = scope.spawn(|| thread::pin(cpus.0).map(|()| Prepared::new(plan.spin, 0)));
            prepare.join()
        });
        let prepared = prepared.map_err(|_| lost())??;
        Ok(Self { account, cpus, plan, prepared, before: account.read()? })
    }

    /// One spin; none where too little of it counts.
    pub(super) fn spin(&mut self, arrivals: Arrivals) -> Result<Option<Point>, HostError> {
        // why: a limit of CPU time (CPUQuota=) holds for each 100 ms, and must not stop the loop in its middle.
        sleep(self.plan.pause);
        let cpus = self.cpus;
        let (prepared, is_thorough) = (self.prepared, self.plan.is_thorough);
        let stop = AtomicBool::new(false);
        let (looked, sent) = std::thread::scope(|scope| {
            let (begun, waiting) = mpsc::channel();
            let sending = Sending { begun, stop: &stop };
            let sender = scope.spawn(move || arrivals.send(cpus, &sending));
            // One that failed ends without a beginning.
            let looked = waiting.recv().map(|()| {
                let looking = scope.spawn(move || {
                    thread::pin(cpus.0)?;
                    if is_thorough {
                        // Fewer switches to other tasks are better; without the privilege there are more.
                        let _ = thread::set_nice(0, -20);
                    }
                    Ok::<_, HostError>((thread::current_tid(), prepared.look()))
                });
                looking.join()
            });
            stop.store(true, Ordering::SeqCst);
            (looked, sender.join())
        });
        sent.map_err(|_| lost())??;
        let (tid, gaps) = looked.map_err(|_| lost())?.map_err(|_| lost())??;
        let after = self.account.read()?;
        let hypervisor_ns = hypervisor_ns(&self.before, &after, cpus.0);
        let during = after.since(&self.before);
        self.before = after;
        Ok(hidden(&during, (tid as u32, cpus.0), &gaps, hypervisor_ns))
    }
}

fn lost() -> HostError {
    HostError::kernel("run the threads of the calibration", libc::EAGAIN)
}

/// Time that the hypervisor had a CPU, in steps of a tick of `/proc/stat` (10 ms).
fn hypervisor_ns(before: &Reading, after: &Reading, cpu: u32) -> f64 {
    let ticks = |reading: &Reading| {
        reading.ticks.cpus.iter().find(|(other, _)| *other == cpu).map_or(0, |(_, t)| t.steal)
    };
    ticks(after).saturating_sub(ticks(before)) as f64 * 1e9 / user_hz() as f64
}

/// The time per interrupt that the loop lost and that nothing else explains.
fn hidden(
    during: &Reading,
    (tid, cpu): (u32, u32),
    gaps: &Gaps,
    hypervisor_ns: f64,
) -> Option<Point> {
    let row = during.tasks.iter().find(|t| t.key.pid == tid && t.key.cpu == cpu)?;
    let charge = &row.charge;
    let on_cpu_ns = charge.on_cpu_ns as f64;
    if charge.interrupts < LEAST_INTERRUPTS || on_cpu_ns < gaps.wall_ns * LEAST_ON_CPU {
        return None;
    }
    let others_ns = (gaps.wall_ns - on_cpu_ns).max(0.0);
    // The thread begins before its loop: a fortieth of 4 ms.
    let part = (gaps.wall_ns / on_cpu_ns).min(1.0);
    let interrupts = charge.interrupts as f64 * part;
    let seen_ns = charge.interrupted_ns() as f64 * part;
    let hidden_ns = (gaps.gaps_ns - others_ns - hypervisor_ns - seen_ns).max(0.0);
    Some(Point {
        rate_per_s: interrupts / (gaps.wall_ns / 1e9),
        irq_entry_us: hidden_ns / interrupts / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::row::{Charge, TaskKey, TaskRow};

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
            tasks: vec![TaskRow {
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
        assert_eq!(hidden(&during(charge), (8, 1), &gaps, 0.0), None, "another task");
        // A tenth of its time on the CPU was before the loop, with a tenth of the interrupts.
        let early = Charge { on_cpu_ns: 1_000_000_000, ..charge };
        let gaps = Gaps { wall_ns: 0.9e9, gaps_ns: 270e6, ..Gaps::default() };
        let point = hidden(&during(early), (7, 1), &gaps, 0.0).unwrap();
        assert!((point.rate_per_s - 20_000.0).abs() < 1e-6, "{point:?}");
        assert!((point.irq_entry_us - 5.0).abs() < 1e-9, "{point:?}");
    }
}
