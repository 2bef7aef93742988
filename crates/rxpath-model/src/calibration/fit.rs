//! Least squares for costs: explains the CPU time of a load by its packets and interrupts.

use thiserror::Error;

use rxpath_stats::student;

use super::Estimate;
use super::least_squares::{Fit, least_squares};

/// A fit whose data do not carry it.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{0}")]
pub struct TooNoisy(pub String);

/// CPU time taken from a CPU by the receive path, at one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stolen {
    /// Share of the CPU's time that was taken.
    pub stolen_ratio: f64,
    /// Packets per second through the CPU's softirq.
    pub packets_pps: f64,
    /// Interrupts from another CPU per second.
    pub interrupts_per_s: f64,
}

/// Costs of the softirq on one CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct SoftirqCosts {
    /// ns per packet.
    pub packet: Estimate,
    /// ns per interrupt, with everything that comes along with one.
    pub interrupt: Estimate,
    /// Share of the CPU that the fit leaves unexplained, as a standard deviation over the loads.
    pub unexplained_ratio: f64,
}

/// Share of the CPU that may stay unexplained without a word, as a standard deviation.
pub const RESIDUAL: f64 = 0.02;
/// The same as a share of what was taken on average. In a virtual machine an interrupt costs ten times as much as on
/// bare metal, and from second to second not the same: up to here the costs' intervals tell how much that matters, and
/// beyond it the loads do not lie on one plane at all.
const RELATIVE: f64 = 0.2;
/// Widest half of an interval, as a share of the value.
const WIDTH: f64 = 0.5;

/// `stolen = floor + packets * c_packet + interrupts * c_irq`, over five loads or more.
pub fn softirq(loads: &[Stolen]) -> Result<SoftirqCosts, TooNoisy> {
    let fit = meter_fit(loads, 0.0)?;
    let n = loads.len() as u64;
    let packet = each(&fit, 1, n);
    let interrupt = each(&fit, 2, n);
    let whole = packet.value + interrupt.value;
    if packet.value < 0.0 || interrupt.value < 0.0 {
        return Err(TooNoisy(format!(
            "a fitted cost is negative ({:.0} ns per packet, {:.0} ns per interrupt)",
            packet.value, interrupt.value
        )));
    }
    // One of two costs may be uncertain as long as their sum, the cost of a single packet, is known.
    if packet.half_width().min(interrupt.half_width()) > WIDTH * whole {
        return Err(TooNoisy(format!(
            "the uncertainty of both costs is more than half of their sum ({whole:.0} ns)"
        )));
    }
    Ok(SoftirqCosts { packet, interrupt, unexplained_ratio: fit.residual })
}

/// The same with a known cost per packet: the rest is the cost of interrupts.
pub fn interrupts(loads: &[Stolen], packet: Estimate) -> Result<SoftirqCosts, TooNoisy> {
    let fit = meter_fit(loads, packet.value)?;
    let interrupt = each(&fit, 2, loads.len() as u64);
    if interrupt.value < 0.0 || is_rough(&interrupt) {
        return Err(too_rough(&interrupt));
    }
    Ok(SoftirqCosts { packet, interrupt, unexplained_ratio: fit.residual })
}

/// The meter's loads explained by packets and interrupts; by interrupts alone where a packet's cost in ns is known.
fn meter_fit(loads: &[Stolen], packet_ns: f64) -> Result<Fit, TooNoisy> {
    if loads.len() < 5 {
        return Err(TooNoisy(format!(
            "{} loads were measured; 5 are needed to separate three costs",
            loads.len()
        )));
    }
    let row = |load: &Stolen| {
        let packets = if packet_ns > 0.0 { 0.0 } else { load.packets_pps / 1e6 };
        [1.0, packets, load.interrupts_per_s / 1e6]
    };
    let left = |load: &Stolen| load.stolen_ratio - load.packets_pps * packet_ns / 1e9;
    let rows: Vec<[f64; 3]> = loads.iter().map(row).collect();
    let y: Vec<f64> = loads.iter().map(left).collect();
    let fit = least_squares(&rows, &y).ok_or_else(|| {
        TooNoisy(
            "packet and interrupt rates changed together: their costs cannot be separated".into(),
        )
    })?;
    let taken = loads.iter().map(|load| load.stolen_ratio).sum::<f64>() / loads.len() as f64;
    let most = RESIDUAL.max(RELATIVE * taken);
    if fit.residual > most {
        return Err(TooNoisy(format!(
            "{:.1} % of the CPU is unexplained (limit: {:.1} %): other load disturbed the measurement; {}",
            fit.residual * 100.0,
            most * 100.0,
            worst(loads, &y, (&rows, &fit))
        )));
    }
    Ok(fit)
}

/// The load with the largest error of the fit, as text.
fn worst(loads: &[Stolen], y: &[f64], (rows, fit): (&[[f64; 3]], &Fit)) -> String {
    let off = rows.iter().zip(y).map(|(row, y)| fit.predicted(row) - y);
    let farthest = loads.iter().zip(off).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    farthest.map_or_else(String::new, |(load, off)| {
        format!(
            "largest error: {:.0} packets/s in {:.0} interrupts/s took {:.1} %, the fit predicts {:.1} %",
            load.packets_pps,
            load.interrupts_per_s,
            load.stolen_ratio * 100.0,
            (load.stolen_ratio + off) * 100.0
        )
    })
}

/// A coefficient as nanoseconds each, of a meter's regression.
fn each(fit: &Fit, at: usize, n: u64) -> Estimate {
    // Per million per second, a share of a CPU is microseconds each.
    let (value, half) = (fit.coefficients[at] * 1e3, quantile(fit.freedom) * fit.errors[at] * 1e3);
    Estimate {
        value,
        interval: Some([(value - half).max(0.0), value + half]),
        unit: "ns".into(),
        residual: Some(fit.residual),
        measurements_count: n,
        how: "stolen-time meter, regression over loads; residual as a share of the CPU".into(),
    }
}

/// The mean of repeated measurements of one value; refused when its uncertainty is over half of it.
pub fn mean(values: &[f64], unit: &str, how: &str) -> Result<Estimate, TooNoisy> {
    let estimate = rough_mean(values, unit, how)?;
    if is_rough(&estimate) { Err(too_rough(&estimate)) } else { Ok(estimate) }
}

fn too_rough(estimate: &Estimate) -> TooNoisy {
    let Estimate { value, interval, unit, how, .. } = estimate;
    TooNoisy(match interval {
        Some([_, high]) => {
            let half = (high - value).abs();
            format!("{how}: {value:.0} {unit} has an uncertainty of {half:.0}")
        }
        None => format!("{how}: one measurement ({value:.0} {unit}) shows no uncertainty"),
    })
}

/// Means of values that scatter alike, as shares of themselves: all of them tell how much.
pub fn alike<const N: usize>(
    groups: [(&[f64], &str); N],
    unit: &str,
) -> Result<[Estimate; N], TooNoisy> {
    let mut means = Vec::new();
    let (mut square, mut freedom) = (0.0, 0);
    for (values, how) in groups {
        let mean = rough_mean(values, unit, how)?;
        if mean.value != 0.0 {
            square += values.iter().map(|value| (value / mean.value - 1.0).powi(2)).sum::<f64>();
            freedom += values.len() - 1;
        }
        means.push(mean);
    }
    let deviation = (square / freedom.max(1) as f64).sqrt();
    for mean in means.iter_mut().filter(|_| freedom > 0) {
        let share = quantile(freedom) * deviation / (mean.measurements_count as f64).sqrt();
        mean.interval = Some([(mean.value * (1.0 - share)).max(0.0), mean.value * (1.0 + share)]);
        mean.residual = Some(deviation * mean.value);
    }
    if let Some(rough) = means.iter().find(|mean| is_rough(mean)) {
        return Err(too_rough(rough));
    }
    means.try_into().map_err(|_| TooNoisy("nothing was measured".into()))
}

/// Whether the interval reaches farther than half of the value, or is not known.
pub fn is_rough(estimate: &Estimate) -> bool {
    estimate
        .interval
        .is_none_or(|[_, high]| (high - estimate.value).abs() > WIDTH * estimate.value.abs())
}

/// The mean of repeated measurements of one value, however uncertain.
pub fn rough_mean(values: &[f64], unit: &str, how: &str) -> Result<Estimate, TooNoisy> {
    let n = values.len();
    if n == 0 {
        return Err(TooNoisy(format!("nothing was measured: {how}")));
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let deviation = (square / (n.max(2) - 1) as f64).sqrt();
    let half = quantile(n - 1) * deviation / (n as f64).sqrt();
    Ok(Estimate {
        value: mean,
        interval: (n > 1).then_some([(mean - half).max(0.0), mean + half]),
        unit: unit.into(),
        residual: (n > 1).then_some(deviation),
        measurements_count: n as u64,
        how: how.into(),
    })
}

/// Two-sided 95 % quantile of Student's distribution.
fn quantile(freedom: usize) -> f64 {
    student::two_sided(0.05, freedom as f64)
}
