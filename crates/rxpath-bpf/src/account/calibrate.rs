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

mod interrupts;
mod packets;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rxpath_host::cputime::user_hz;
use rxpath_host::{HostError, thread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spin::{Gaps, Prepared};
use super::{Account, Reading};

/// How long a rate is measured at a time.
const SPIN: Duration = Duration::from_millis(200);

/// How often; odd, so that one in the middle is there.
const ROUNDS: usize = 7;

/// About how long all of it takes.
pub const TAKES: Duration = Duration::from_secs(6);

/// Packets a second that are sent at the points; of the highest as many as one CPU can send.
const PACKET_RATES: [f64; 3] = [20_000.0, 80_000.0, 250_000.0];

/// Interrupts a second at the points where no packets can be sent.
const INTERRUPT_RATES: [f64; 2] = [10_000.0, 60_000.0];

/// The least number of interrupts for a spin: half of those of a 250 Hz tick. Hypervisor time is known only in ticks of
/// 10 ms: the spin that such a tick falls on is far off, and the median ignores it.
const LEAST_INTERRUPTS: u64 = 25;

/// The least share of its time that the loop must have its CPU.
const LEAST_ON_CPU: f64 = 0.5;

/// One measured point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Interrupts a second that really arrived.
    pub rate_per_s: f64,
    /// Time per interrupt outside all tracepoints.
    pub irq_entry_us: f64,
}

/// The calibration of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Time per interrupt outside all tracepoints, at the mean rate of this result.
    pub irq_entry_us: f64,
    /// From the lowest to the highest value that was used.
    pub interval_us: [f64; 2],
    /// The points, by rate. Between two points the time that interrupts take per second (`k` times the rate) is
    /// interpolated; outside the points `k` is constant.
    pub points: Vec<Point>,
    /// CPU that was measured; the others are assumed to be the same.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu: Option<u32>,
    /// Source of the value: `measured with packets`, `given`, another measurement, or why there is none.
    pub source: String,
}

impl Calibration {
    /// A value that the user gave.
    pub fn given(irq_entry_us: f64) -> Self {
        Self {
            irq_entry_us,
            interval_us: [irq_entry_us; 2],
            points: vec![Point { rate_per_s: 0.0, irq_entry_us }],
            cpu: None,
            source: "given".into(),
        }
    }

    /// No estimate, and why.
    pub fn none(why: impl Into<String>) -> Self {
        Self { source: why.into(), ..Self::default() }
    }

    /// Microseconds per interrupt at this rate.
    pub fn at(&self, rate_per_s: f64) -> f64 {
        let above = self.points.partition_point(|point| point.rate_per_s < rate_per_s);
        let (before, after) =
            (above.checked_sub(1).map(|at| self.points[at]), self.points.get(above));
        match (before, after) {
            (Some(before), Some(after)) => {
                let span = after.rate_per_s - before.rate_per_s;
                let part = if span > 0.0 { (rate_per_s - before.rate_per_s) / span } else { 0.0 };
                let taken_us = |point: Point| point.rate_per_s * point.irq_entry_us;
                let taken = taken_us(before) + part * (taken_us(*after) - taken_us(before));
                taken / rate_per_s
            }
            (Some(only), None) => only.irq_entry_us,
            (None, Some(only)) => only.irq_entry_us,
            (None, None) => 0.0,
        }
    }
}

/// Interrupts at the loop's CPU during the measurement.
#[derive(Clone, Copy, Debug)]
enum Arrivals {
    /// Only those that arrive anyway.
    Ambient,
    /// Packets of a namespace of its own, steered there.
    Packets(f64),
    /// Interrupts that do nothing.
    Interrupts(f64),
}

impl Arrivals {
    /// Makes them arrive at `cpu`, from `other`, until a stop request.
    fn send(self, cpu: u32, other: u32, stop: &AtomicBool) -> Result<(), HostError> {
        match self {
            Self::Ambient => Ok(()),
            Self::Packets(rate) => packets::send_at(rate, (cpu, other), stop),
            Self::Interrupts(rate) => interrupts::send_at(rate, other, stop),
        }
    }
}

/// Measures `k` on one CPU with the running probe; takes that CPU for [`TAKES`], and another one, which sends, for
/// three quarters of it.
///
/// **Errors** when there is no second CPU to send from, or a CPU can't be had.
pub fn measure(account: &Account, cpu: u32) -> Result<Calibration, HostError> {
    let other = thread::allowed_cpus()?.0.into_iter().find(|other| *other != cpu);
    let other = other.ok_or_else(|| HostError::Unsupported {
        what: "calibrate the cost of an interrupt".into(),
        needs: "a second CPU to send the interrupts from".into(),
    })?;
    let cpus = (cpu, other);
    let (points, source) = match points(account, cpus, &PACKET_RATES.map(Arrivals::Packets)) {
        Ok(points) => (points, "measured with packets".to_owned()),
        Err(error) => {
            let points = points(account, cpus, &INTERRUPT_RATES.map(Arrivals::Interrupts))?;
            let source =
                format!("measured with interrupts that do nothing (error: 20 % or more): {error}");
            (points, source)
        }
    };
    if points.is_empty() {
        let why =
            format!("CPU {cpu} was too busy: too few interrupts hit the loop that measures them");
        return Ok(Calibration::none(why));
    }
    let values = || points.iter().map(|point| point.irq_entry_us);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    Ok(Calibration {
        irq_entry_us: values().sum::<f64>() / points.len() as f64,
        interval_us: [low, high],
        points,
        cpu: Some(cpu),
        source,
    })
}

/// Interrupts that arrive anyway and sent ones, alternating; by rate. The first kind alone is not a calibration.
fn points(account: &Account, cpus: (u32, u32), sent: &[Arrivals]) -> Result<Vec<Point>, HostError> {
    let mut ambient = Vec::new();
    let mut spins = vec![Vec::new(); sent.len()];
    for _ in 0..ROUNDS {
        ambient.extend(spin(account, cpus, Arrivals::Ambient)?);
        for (arrivals, spins) in sent.iter().zip(&mut spins) {
            spins.extend(spin(account, cpus, *arrivals)?);
        }
    }
    let mut points: Vec<Point> = spins.iter().filter_map(|spins| middle(spins)).collect();
    if !points.is_empty() {
        points.extend(middle(&ambient));
    }
    points.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    Ok(points)
}

/// The median of the spins at one rate, when most of them count.
fn middle(spins: &[Point]) -> Option<Point> {
    let median = |value: fn(&Point) -> f64| {
        let mut values: Vec<f64> = spins.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (spins.len() > ROUNDS / 2).then(|| Point {
        rate_per_s: median(|point| point.rate_per_s),
        irq_entry_us: median(|point| point.irq_entry_us),
    })
}

fn spin(
    account: &Account,
    (cpu, other): (u32, u32),
    arrivals: Arrivals,
) -> Result<Option<Point>, HostError> {
    let prepared = std::thread::scope(|scope| {
        let prepare = scope.spawn(|| thread::pin(cpu).map(|()| Prepared::new(SPIN, 0)));
        prepare.join()
    });
    let lost = || HostError::kernel("run the threads of the calibration", libc::EAGAIN);
    let prepared = prepared.map_err(|_| lost())??;
    let before = account.read()?;
    let stop = AtomicBool::new(false);
    let looked = std::thread::scope(|scope| {
        let sender = scope.spawn(|| arrivals.send(cpu, other, &stop));
        let looking = scope.spawn(|| {
            thread::pin(cpu)?;
            // Fewer switches to other tasks are better; without the privilege there are more.
            let _ = thread::set_nice(0, -20);
            Ok::<_, HostError>((thread::current_tid(), prepared.look()))
        });
        let looked = looking.join();
        stop.store(true, Ordering::SeqCst);
        (looked, sender.join())
    });
    let (Ok(looked), Ok(sent)) = looked else { return Err(lost()) };
    sent?;
    let (tid, gaps) = looked?;
    let after = account.read()?;
    let hypervisor_ns = hypervisor_ns(&before, &after, cpu);
    Ok(hidden(&after.since(&before), (tid as u32, cpu), &gaps, hypervisor_ns))
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
    let seen_ns = charge.interrupted_ns() as f64;
    let hidden_ns = (gaps.gaps_ns - others_ns - hypervisor_ns - seen_ns).max(0.0);
    Some(Point {
        rate_per_s: charge.interrupts as f64 / (gaps.wall_ns / 1e9),
        irq_entry_us: hidden_ns / charge.interrupts as f64 / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::row::{Charge, TaskKey, TaskRow};

    #[test]
    fn between_points_it_is_interpolated_and_beyond_them_held() {
        let point = |rate_per_s, irq_entry_us| Point { rate_per_s, irq_entry_us };
        let calibration = Calibration {
            points: vec![point(250.0, 48.0), point(20_000.0, 6.0), point(110_000.0, 5.0)],
            ..Calibration::default()
        };
        // 12 ms of a second, 120 ms, 550 ms; half way between the last two 335 ms.
        for (rate, us) in [
            (0.0, 48.0),
            (250.0, 48.0),
            (10_125.0, 66_000.0 / 10_125.0),
            (20_000.0, 6.0),
            (65_000.0, 335_000.0 / 65_000.0),
            (1e9, 5.0),
        ] {
            assert!((calibration.at(rate) - us).abs() < 1e-9, "{rate}");
        }
        assert!((Calibration::given(3.5).at(1e6) - 3.5).abs() < 1e-12);
        assert!(Calibration::none("one CPU").at(1e6).abs() < 1e-12);
    }

    #[test]
    fn a_spin_that_was_disturbed_does_not_move_the_point() {
        let point = |irq_entry_us| Point { rate_per_s: 20_000.0, irq_entry_us };
        let spins = [7.0, 6.9, 9.5, 7.1, 0.0, 7.2, 7.0].map(point);
        assert_eq!(middle(&spins), Some(point(7.0)));
        assert_eq!(middle(&spins[..4]), Some(point(7.1)));
        assert_eq!(middle(&spins[..3]), None, "most of them did not count");
    }

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
    }
}
