//! The cost of an interrupt that tracepoints do not show: its entry and exit, a VM exit, the cache it leaves cold.
//!
//! `k` is the time per interrupt that a loop on one CPU loses, minus the time that the probe saw and that other tasks
//! and the hypervisor used. `k` falls with the interrupt rate (on a KVM guest: 6.7 us at 20,000/s, 5.5 us at
//! 300,000/s). So `k` is measured at several rates and interpolated between them: with the interrupts that arrive
//! anyway, and with packets steered to the CPU as RPS does. On a virtual machine `k` also varies by 10 % or more over
//! time, when another guest uses the cache or the hypervisor takes time that it does not report. So each rate is
//! measured several times, alternating with the others, and the median is used. At low rates `k` is many times as large
//! (13 ms per second at 250 ticks/s, partly unreported hypervisor time), so the time taken is interpolated, not `k`.
//! Interrupts that do nothing cannot replace packets: they leave the cache warm, and gave a `k` 20 % too small at
//! 20,000 packets/s and 40 % too large at 200,000 packets/s.
//!
//! A program that stays cannot take two CPUs for seconds: [`measure_briefly`] takes each of them for 4 ms at a time.

mod interrupts;
mod packets;
mod sender;
mod spins;
mod threads;

use std::time::Duration;

use rxpath_core::measured::CalibrationPoint;
use rxpath_core::{CpuList, SortFew};
use rxpath_host::read::procfs::stat::Ticks;
use rxpath_host::read::thread;
use rxpath_host::read::topology::{self, Distance};
use rxpath_host::{HostError, Root};

use super::Account;
use crate::object::ProgramState;
pub use rxpath_core::measured::{CalibrationKind, IrqCalibration};
use sender::Prepare;
use spins::Spins;

/// How rates are measured.
#[derive(Clone, Copy, Debug)]
struct SpinPlan {
    /// How long at a time.
    spin: Duration,
    /// How often each; odd, so that one in the middle is there.
    rounds: usize,
    /// Before each of them. Nothing is counted in it.
    pause: Duration,
    /// Packets a second that are sent.
    packet_rates: &'static [f64],
    /// Ahead of other tasks, and with what arrives anyway as one more rate: that takes long spins.
    is_thorough: bool,
}

const THOROUGH: SpinPlan = SpinPlan {
    spin: Duration::from_millis(200),
    rounds: 7,
    pause: Duration::ZERO,
    packet_rates: &PACKET_RATES,
    is_thorough: true,
};

/// Within the 20 ms of each 100 ms that the unit of `rxpath export` permits (`CPUQuota=`): the kernel hands these out to CPUs
/// in slices of 5 ms.
const BRIEF: SpinPlan = SpinPlan {
    spin: Duration::from_millis(4),
    packet_rates: &[20_000.0, 80_000.0],
    is_thorough: false,
    ..THOROUGH
};

/// About how long all of it takes.
pub const TAKES: Duration = Duration::from_secs(6);

/// Packets a second that are sent at the points; of the highest as many as one CPU can send.
const PACKET_RATES: [f64; 3] = [20_000.0, 80_000.0, 250_000.0];

/// Interrupts a second at the points where no packets can be sent.
const INTERRUPT_RATES: [f64; 2] = [10_000.0, 60_000.0];

/// Measures `k` on one CPU with the running probe; takes that CPU for [`TAKES`], and another one, which sends, for
/// three quarters of it. [`IrqCalibration::none`] when there is no second CPU to send from, or the probe cannot see what is
/// sent.
///
/// **Errors** when a CPU can't be had.
pub fn measure(account: &mut Account, cpu: u32) -> Result<IrqCalibration, HostError> {
    let others = thread::allowed_cpus()?.0.into_iter().filter(|other| *other != cpu);
    let other = sender(cpu, others, &shared_cores(&account.root)).ok_or_else(no_second_cpu);
    match other.and_then(|other| by_plan(account, (cpu, other), &THOROUGH)) {
        Err(error @ HostError::Unsupported { .. }) => Ok(IrqCalibration::none(error.to_string())),
        made => made,
    }
}

/// Measures `k` on the CPU that was idle the longest, for a program that must disturb nobody: without priority, in 14 spins of
/// 4 ms on each of two CPUs, with a pause before each. Below the lowest rate of the plan `k` is that of this rate, which is too
/// little, and above the highest one that of the highest one.
///
/// **Cost** without a pause 0.1 s. In the pauses the programs of the account return at once, and they stay in their places.
///
/// **Errors** `Unsupported` where [`measure`] makes none; others when a CPU can't be had.
pub fn measure_briefly(
    account: &mut Account,
    pause: Duration,
) -> Result<IrqCalibration, HostError> {
    let (ticks, allowed) = (account.read()?.ticks.cpus, thread::affinity(0)?);
    let cpus = idlest(&ticks, &allowed, &shared_cores(&account.root));
    by_plan(account, cpus.ok_or_else(no_second_cpu)?, &SpinPlan { pause, ..BRIEF })
}

/// Whether two CPUs share a core, where the host says it.
fn shared_cores(root: &Root) -> impl Fn(u32, u32) -> bool {
    let topology = topology::read(root).ok();
    move |a, b| topology.as_ref().and_then(|all| all.distance(a, b)) == Some(Distance::Sibling)
}

/// The two CPUs that were idle the longest since boot, of these: those of a thread that nobody pinned are not kept free for
/// single tasks (`isolcpus`).
fn idlest(
    cpus: &[(u32, Ticks)],
    of: &CpuList,
    share_core: &impl Fn(u32, u32) -> bool,
) -> Option<(u32, u32)> {
    let idle = |(cpu, ticks): &(u32, Ticks)| (ticks.idle + ticks.iowait, *cpu);
    let mut idle: Vec<(u64, u32)> =
        cpus.iter().filter(|(cpu, _)| of.0.contains(cpu)).map(idle).collect();
    idle.sort_unstable();
    let mut by_idleness = idle.iter().rev().map(|(_, cpu)| *cpu);
    let cpu = by_idleness.next()?;
    Some((cpu, sender(cpu, by_idleness, share_core)?))
}

/// The first that shares no core with this CPU, whose loop it would slow down; else the first.
fn sender(
    cpu: u32,
    mut others: impl Iterator<Item = u32> + Clone,
    share_core: &impl Fn(u32, u32) -> bool,
) -> Option<u32> {
    others.clone().find(|other| !share_core(cpu, *other)).or_else(|| others.next())
}

fn no_second_cpu() -> HostError {
    unsupported("a second CPU to send the interrupts from")
}

fn unsupported(needs: &str) -> HostError {
    HostError::unsupported("calibrate the cost of an interrupt", needs)
}

/// Whether the probe counts what is sent: packets (by RPS) and interrupts that do nothing (of membarrier) are both
/// inter-processor interrupts.
fn sees_sent(programs: &[ProgramState]) -> Result<(), HostError> {
    let runs = |name: &&str| {
        programs.iter().any(|state| state.program == *name && state.id.value().is_some())
    };
    if ["call_function_single_entry", "call_function_single_exit"].iter().all(runs) {
        return Ok(());
    }
    Err(unsupported("the tracepoints of inter-processor interrupts, which only x86 has"))
}

fn by_plan(
    account: &mut Account,
    cpus: (u32, u32),
    plan: &SpinPlan,
) -> Result<IrqCalibration, HostError> {
    sees_sent(account.loaded.programs())?;
    let cpu = cpus.0;
    let (points, kind, source) =
        match points(account, cpus, plan, plan.packet_rates, packets::prepare) {
            Ok(points) => (points, CalibrationKind::Packets, "measured with packets".to_owned()),
            Err(error) => {
                let points = points(account, cpus, plan, &INTERRUPT_RATES, interrupts::prepare)?;
                let source = format!(
                    "measured with interrupts that do nothing (error: 20 % or more): {error}"
                );
                (points, CalibrationKind::Interrupts, source)
            }
        };
    if points.is_empty() {
        let why =
            format!("CPU {cpu} was too busy: too few interrupts hit the loop that measures them");
        return Ok(IrqCalibration::none(why));
    }
    let values = || points.iter().map(|point| point.irq_entry_us);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let irq_entry_us = values().sum::<f64>() / points.len() as f64;
    let (interval_us, cpu, kind) = ([low, high], Some(cpu), Some(kind));
    Ok(IrqCalibration { irq_entry_us, interval_us, points, cpu, kind, source })
}

/// A spin at each rate in turn, in rounds; by rate. Interrupts that arrive anyway alone are not a calibration.
fn points(
    account: &mut Account,
    cpus: (u32, u32),
    plan: &SpinPlan,
    rates: &[f64],
    prepare: Prepare,
) -> Result<Vec<CalibrationPoint>, HostError> {
    let mut ambient = Vec::new();
    let mut at_rates = vec![Vec::new(); rates.len()];
    let mut spins = Spins::start(account, cpus, plan, prepare)?;
    for _ in 0..plan.rounds {
        if plan.is_thorough {
            ambient.extend(spins.spin(None)?);
        }
        for (rate, of_rate) in rates.iter().zip(&mut at_rates) {
            of_rate.extend(spins.spin(Some(*rate))?);
        }
    }
    let mut points: Vec<CalibrationPoint> =
        at_rates.iter().filter_map(|of_rate| middle(of_rate, plan.rounds)).collect();
    if !points.is_empty() {
        points.extend(middle(&ambient, plan.rounds));
    }
    points.sort_few_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    Ok(points)
}

/// The median of the spins at one rate, when most of so many count.
fn middle(spins: &[CalibrationPoint], rounds: usize) -> Option<CalibrationPoint> {
    let median = |value: fn(&CalibrationPoint) -> f64| {
        let mut values: Vec<f64> = spins.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (spins.len() > rounds / 2).then(|| CalibrationPoint {
        rate_per_s: median(|point| point.rate_per_s),
        irq_entry_us: median(|point| point.irq_entry_us),
    })
}

#[cfg(test)]
mod tests {
    use rxpath_core::Fact;

    use super::*;

    #[test]
    fn a_spin_that_was_disturbed_does_not_move_the_point() {
        let point = |irq_entry_us| CalibrationPoint { rate_per_s: 20_000.0, irq_entry_us };
        let spins = [7.0, 6.9, 9.5, 7.1, 0.0, 7.2, 7.0].map(point);
        assert_eq!(middle(&spins, 7), Some(point(7.0)));
        assert_eq!(middle(&spins[..4], 7), Some(point(7.1)));
        assert_eq!(middle(&spins[..3], 7), None, "most of them did not count");
    }

    #[test]
    fn the_idlest_of_the_allowed_cpus_is_measured_and_the_next_of_another_core_sends() {
        let cpu = |cpu: u32, idle: u64| (cpu, Ticks { idle, iowait: 1, ..Ticks::default() });
        let cpus = [cpu(0, 7), cpu(1, 9), cpu(2, 99), cpu(3, 8)];
        let no_smt = |_: u32, _: u32| false;
        assert_eq!(idlest(&cpus, &CpuList(vec![0, 1, 3]), &no_smt), Some((1, 3)));
        assert_eq!(idlest(&cpus, &CpuList(vec![2]), &no_smt), None);
        let of_pairs = |a: u32, b: u32| a % 2 == b % 2;
        assert_eq!(idlest(&cpus, &CpuList(vec![0, 1, 3]), &of_pairs), Some((1, 0)));
        assert_eq!(idlest(&cpus, &CpuList(vec![1, 3]), &of_pairs), Some((1, 3)), "one core only");
    }

    #[test]
    fn what_the_probe_does_not_see_is_no_calibration() {
        let state = |program: &str, id| ProgramState {
            program: program.into(),
            hook: None,
            id,
            lost_knowledge: None,
        };
        let entry = state("call_function_single_entry", Fact::ok(7));
        let seen = [entry.clone(), state("call_function_single_exit", Fact::ok(8))];
        sees_sent(&seen).unwrap();
        let not_there = state("call_function_single_exit", Fact::absent("no such tracepoint"));
        let why = sees_sent(&[entry, not_there]).unwrap_err().to_string();
        assert!(why.contains("inter-processor"), "{why}");
    }
}
