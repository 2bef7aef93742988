//! Least squares for costs: what a second of load took, explained by how much of what was done in it.

use thiserror::Error;

use super::Estimate;

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
    /// Share of the CPU that is gone without any load.
    pub floor_ratio: f64,
}

/// Most of a CPU that may stay unexplained, as a root mean square.
const RESIDUAL: f64 = 0.02;
/// Widest half of an interval, as a share of the value.
const WIDTH: f64 = 0.5;

/// `stolen = floor + packets * c_packet + interrupts * c_irq`, over five loads or more.
pub fn softirq(loads: &[Stolen]) -> Result<SoftirqCosts, TooNoisy> {
    if loads.len() < 5 {
        return Err(TooNoisy(format!(
            "{} loads were measured; 5 are needed to tell three costs apart",
            loads.len()
        )));
    }
    let rows: Vec<[f64; 3]> =
        loads.iter().map(|l| [1.0, l.packets_pps / 1e6, l.interrupts_per_s / 1e6]).collect();
    let y: Vec<f64> = loads.iter().map(|l| l.stolen_ratio).collect();
    let fit = least_squares(&rows, &y).ok_or_else(|| {
        TooNoisy("packets and interrupts moved together: their costs cannot be told apart".into())
    })?;
    if fit.rms > RESIDUAL {
        return Err(TooNoisy(format!(
            "{:.1} % of the CPU stays unexplained (at most {:.0} %): other load disturbed it",
            fit.rms * 100.0,
            RESIDUAL * 100.0
        )));
    }
    let n = loads.len() as u64;
    // Per million per second, a share of a CPU is microseconds each.
    let cost = |at: usize, how: &str| fit.estimate(at, 1e3, n, how);
    let packet = cost(1, "stolen-time meter, regression over loads; residual in shares of the CPU");
    let interrupt =
        cost(2, "stolen-time meter, regression over loads; residual in shares of the CPU");
    let whole = packet.value + interrupt.value;
    if packet.value < 0.0 || interrupt.value < 0.0 {
        return Err(TooNoisy(format!(
            "a cost came out negative ({:.0} ns per packet, {:.0} ns per interrupt)",
            packet.value, interrupt.value
        )));
    }
    // One of two costs may be ill-determined as long as their sum, which a packet alone pays, is known.
    let half = |estimate: &Estimate| (estimate.interval[1] - estimate.interval[0]) / 2.0;
    if half(&packet).min(half(&interrupt)) > WIDTH * whole {
        return Err(TooNoisy(format!(
            "the costs are known to no better than half of them ({whole:.0} ns together)"
        )));
    }
    Ok(SoftirqCosts { packet, interrupt, floor_ratio: fit.coefficients[0] })
}

/// The mean of repeated measurements of one value.
pub fn mean(values: &[f64], unit: &str, how: &str) -> Result<Estimate, TooNoisy> {
    let n = values.len();
    if n == 0 {
        return Err(TooNoisy(format!("nothing was measured: {how}")));
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let deviation = (square / (n.max(2) - 1) as f64).sqrt();
    // Of a single one nothing is known about its spread: a tenth is what repetitions here usually show.
    let half =
        if n == 1 { mean.abs() * 0.1 } else { student(n - 1) * deviation / (n as f64).sqrt() };
    if half > WIDTH * mean.abs() {
        return Err(TooNoisy(format!(
            "{how}: {mean:.0} {unit} is known to no better than {half:.0}"
        )));
    }
    Ok(Estimate {
        value: mean,
        interval: [(mean - half).max(0.0), mean + half],
        unit: unit.into(),
        residual: (n > 1).then_some(deviation),
        measurements_count: n as u64,
        how: how.into(),
    })
}

/// Two-sided 95 % quantile of Student's distribution.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    TABLE.get(freedom.max(1) - 1).copied().unwrap_or(2.0)
}

/// A solved regression.
struct Fit {
    coefficients: [f64; 3],
    errors: [f64; 3],
    rms: f64,
    freedom: usize,
}

impl Fit {
    fn estimate(&self, at: usize, scale: f64, n: u64, how: &str) -> Estimate {
        let value = self.coefficients[at] * scale;
        let half = student(self.freedom) * self.errors[at] * scale;
        Estimate {
            value,
            interval: [(value - half).max(0.0), value + half],
            unit: "ns".into(),
            residual: Some(self.rms),
            measurements_count: n,
            how: how.into(),
        }
    }
}

/// Ordinary least squares over three columns by the normal equations.
fn least_squares(rows: &[[f64; 3]], y: &[f64]) -> Option<Fit> {
    let mut normal = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for (row, y) in rows.iter().zip(y) {
        for ((left, right), x) in normal.iter_mut().zip(&mut right).zip(row) {
            *right += x * y;
            for (sum, z) in left.iter_mut().zip(row) {
                *sum += x * z;
            }
        }
    }
    let inverse = inverse(normal)?;
    let coefficients: [f64; 3] =
        std::array::from_fn(|i| (0..3).map(|j| inverse[i][j] * right[j]).sum());
    let predicted = |row: &[f64; 3]| (0..3).map(|i| row[i] * coefficients[i]).sum::<f64>();
    let square: f64 = rows.iter().zip(y).map(|(row, y)| (y - predicted(row)).powi(2)).sum();
    let freedom = rows.len().checked_sub(3).filter(|freedom| *freedom > 0)?;
    let variance = square / freedom as f64;
    let errors = std::array::from_fn(|i| (variance * inverse[i][i]).max(0.0).sqrt());
    Some(Fit { coefficients, errors, rms: variance.sqrt(), freedom })
}

/// By cofactors; nothing when the columns depend on each other.
fn inverse(matrix: [[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let cofactor = |row: usize, column: usize| {
        let (below, beneath) = ((row + 1) % 3, (row + 2) % 3);
        let (right, beyond) = ((column + 1) % 3, (column + 2) % 3);
        matrix[below][right] * matrix[beneath][beyond]
            - matrix[below][beyond] * matrix[beneath][right]
    };
    let determinant: f64 = (0..3).map(|column| matrix[0][column] * cofactor(0, column)).sum();
    let scale = matrix[0][0] * matrix[1][1] * matrix[2][2];
    if scale <= 0.0 || determinant.abs() < scale * 1e-9 {
        return None;
    }
    let element = |row: usize, column: usize| cofactor(column, row) / determinant;
    Some(std::array::from_fn(|row| std::array::from_fn(|column| element(row, column))))
}
