//! What an interrupt costs beside what tracepoints show: its entry and exit, a VM's exit, the cache it leaves cold.
//!
//! `k` is nearly constant per interrupt on one machine (measured on a KVM guest: 5.5 to 6.7 µs) and drifts with the
//! rate, so it is measured at two rates and interpolated between them. A loop on one CPU adds up the gaps in its own
//! time while another thread sends it inter-processor interrupts at a known rate; `k` is the time in gaps that the
//! probe did not see, per interrupt.
//!
//! The interrupts are those of membarrier(2) (kernel/sched/membarrier.c, `membarrier_private_expedited`): it interrupts
//! each CPU that runs a thread of the caller's process, and nothing else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rxpath_host::{HostError, thread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spin::{self, Gaps};
use super::{Account, Reading};

/// How long each rate is measured.
const SPIN: Duration = Duration::from_secs(1);

/// Interrupts a second that are asked for at the two points.
const RATES: [f64; 2] = [10_000.0, 60_000.0];

/// The least part of the asked interrupts that must have hit the loop.
const LEAST_PART: f64 = 0.5;

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
    /// The points, by rate. Between them `k` is interpolated, beyond them the nearest is used.
    pub points: Vec<Point>,
    /// CPU that was measured; the others are taken to be alike.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu: Option<u32>,
    /// Where it comes from: `measured`, `given`, or why there is none.
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
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            return 0.0;
        };
        let span = last.rate_per_s - first.rate_per_s;
        if span <= 0.0 {
            return first.irq_entry_us;
        }
        let part = ((rate_per_s - first.rate_per_s) / span).clamp(0.0, 1.0);
        first.irq_entry_us + part * (last.irq_entry_us - first.irq_entry_us)
    }
}

/// Measures `k` on one CPU with the running probe; takes two seconds and that CPU.
///
/// **Errors** when there is no second CPU to send the interrupts from, or a CPU can't be had.
pub fn measure(account: &Account, cpu: u32) -> Result<Calibration, HostError> {
    let other = thread::allowed_cpus()?.0.into_iter().find(|other| *other != cpu);
    let other = other.ok_or_else(|| HostError::Unsupported {
        what: "calibrate the cost of an interrupt".into(),
        needs: "a second CPU, from which the interrupts are sent".into(),
    })?;
    let mut points = Vec::new();
    for rate in RATES {
        points.extend(point(account, cpu, other, rate)?);
    }
    points.sort_by(|a: &Point, b: &Point| a.rate_per_s.total_cmp(&b.rate_per_s));
    if points.is_empty() {
        let why =
            format!("CPU {cpu} was too busy: too few interrupts hit the loop that measures them");
        return Ok(Calibration::none(why));
    }
    let values = || points.iter().map(|point| point.irq_entry_us);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
    let source = "measured";
    Ok(Calibration {
        irq_entry_us: values().sum::<f64>() / points.len() as f64,
        interval_us: [low, high],
        points,
        cpu: Some(cpu),
        source: source.into(),
    })
}

fn point(account: &Account, cpu: u32, other: u32, rate: f64) -> Result<Option<Point>, HostError> {
    let before = account.read()?;
    let stop = AtomicBool::new(false);
    let looked = std::thread::scope(|scope| {
        let sender = scope.spawn(|| interrupt_at(rate, other, &stop));
        let looking = scope.spawn(|| {
            thread::pin(cpu)?;
            // The fewer switches to other tasks, the better; without the right to it there are more.
            let _ = thread::set_nice(0, -20);
            Ok::<_, HostError>((thread::current_tid(), spin::look(SPIN, 0)))
        });
        let looked = looking.join();
        stop.store(true, Ordering::SeqCst);
        (looked, sender.join())
    });
    let (Ok(looked), Ok(sent)) = looked else {
        return Err(HostError::kernel("run the threads of the calibration", libc::EAGAIN));
    };
    sent?;
    let (tid, gaps) = looked?;
    let during = account.read()?.since(&before);
    let point = hidden(&during, tid as u32, cpu, &gaps);
    // Where other work kept the loop off its CPU, most gaps are that work's.
    Ok(point.filter(|point| point.rate_per_s > rate * LEAST_PART))
}

/// The time per interrupt that the loop missed and the probe did not see.
fn hidden(during: &Reading, tid: u32, cpu: u32, gaps: &Gaps) -> Option<Point> {
    let row = during.tasks.iter().find(|t| t.key.pid == tid && t.key.cpu == cpu)?;
    let charge = &row.charge;
    if charge.interrupts < 100 {
        return None;
    }
    // Per gap and not in sum: switches to other tasks would spoil the sum, and gaps that hold one are left out.
    let seen = charge.interrupted_ns() as f64 / charge.interrupts as f64;
    let hidden_ns = (gaps.typical_gap_ns(seen)? - seen).max(0.0);
    Some(Point {
        rate_per_s: charge.interrupts as f64 / (gaps.wall_ns / 1e9),
        irq_entry_us: hidden_ns / 1e3,
    })
}

/// Interrupts the other threads of this process at a rate, until told to stop.
fn interrupt_at(rate: f64, cpu: u32, stop: &AtomicBool) -> Result<u64, HostError> {
    thread::pin(cpu)?;
    membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)?;
    let begun = Instant::now();
    let mut sent = 0u64;
    while !stop.load(Ordering::Relaxed) {
        let due = (begun.elapsed().as_secs_f64() * rate) as u64;
        if sent < due {
            membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)?;
            sent += 1;
        } else {
            std::hint::spin_loop();
        }
    }
    Ok(sent)
}

fn membarrier(command: i32) -> Result<(), HostError> {
    // SAFETY: membarrier takes three integers and touches no memory of ours.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if done < 0 {
        Err(HostError::last_os("interrupt the other threads (membarrier)"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_points_it_is_interpolated_and_beyond_them_held() {
        let point = |rate_per_s, irq_entry_us| Point { rate_per_s, irq_entry_us };
        let calibration = Calibration {
            points: vec![point(10_000.0, 7.0), point(110_000.0, 5.0)],
            ..Calibration::default()
        };
        for (rate, us) in [(0.0, 7.0), (10_000.0, 7.0), (60_000.0, 6.0), (1e9, 5.0)] {
            assert!((calibration.at(rate) - us).abs() < 1e-9, "{rate}");
        }
        assert!((Calibration::given(3.5).at(1e6) - 3.5).abs() < 1e-12);
        assert!(Calibration::none("one CPU").at(1e6).abs() < 1e-12);
    }
}
