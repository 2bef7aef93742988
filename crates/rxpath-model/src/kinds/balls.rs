//! Equal flows hashed on queues: how many flows the fullest queue gets, and the lost efficiency.
//!
//! The number per queue is multinomial, which is independent Poisson counts given their sum: P(max <= m) is the
//! probability that truncated Poisson counts sum to `F`, over that of untruncated ones. Only positive terms.
//! **Source** W. Feller, An Introduction to Probability Theory I, chapter II.5.

use crate::inputs::{Code, Inputs, Outputs, Problem};
use crate::poisson;

/// Multiplications beyond which the exact sum is not formed.
const MOST_WORK: f64 = 3e9;

/// What is smaller than this part of the largest term is left out of a product.
const NEGLIGIBLE: f64 = 1e-30;

/// The range of the terms that count; the largest is 1 or a little less.
fn range(terms: &[f64]) -> std::ops::Range<usize> {
    let first = terms.iter().position(|term| *term > NEGLIGIBLE).unwrap_or(0);
    let last = terms.iter().rposition(|term| *term > NEGLIGIBLE).unwrap_or(0);
    first..last + 1
}

/// The first `most + 1` terms of the product of two sequences.
fn product(left: &[f64], right: &[f64], most: usize) -> Vec<f64> {
    let mut out = vec![0.0; (left.len() + right.len() - 1).min(most + 1)];
    let counted = range(right);
    for i in range(left).take_while(|i| i + counted.start <= most) {
        for (slot, term) in out[i + counted.start..].iter_mut().zip(&right[counted.clone()]) {
            *slot += left[i] * term;
        }
    }
    out
}

/// Terms of a generating function over `e^log_scale`.
#[derive(Clone)]
struct Terms {
    terms: Vec<f64>,
    log_scale: f64,
}

impl Terms {
    fn times(&self, other: &Self, most: usize) -> Self {
        let mut terms = product(&self.terms, &other.terms, most);
        let largest = terms.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        for term in &mut terms {
            *term /= largest;
        }
        Self { terms, log_scale: self.log_scale + other.log_scale + largest.ln() }
    }
}

/// P(no queue gets more than `limit` of the flows).
fn at_most(flows: usize, queues: u64, limit: usize) -> f64 {
    let mean = flows as f64 / queues as f64;
    // The first of many equal factors must be exact: its error would be raised to the power of the queues.
    let none = if mean < 1.0 { poisson::at(mean, 0) } else { 1.0 };
    let count = limit.min(flows) as u64;
    let terms =
        (0..=count).map(|n| if n == 0 && mean < 1.0 { 1.0 } else { poisson::at(mean, n) / none });
    let mut square = Terms { terms: terms.collect(), log_scale: 0.0 };
    let mut sum = Terms { terms: vec![1.0], log_scale: 0.0 };
    let mut left = queues;
    loop {
        if left & 1 == 1 {
            sum = sum.times(&square, flows);
        }
        left >>= 1;
        if left == 0 {
            break;
        }
        square = square.times(&square, flows);
    }
    let whole = poisson::at(flows as f64, flows as u64);
    // Without the factor e^-mean of each queue the sum lacks e^-flows.
    let missing = if mean < 1.0 { flows as f64 } else { 0.0 };
    let last = sum.terms.get(flows).copied().unwrap_or(0.0);
    (last * (sum.log_scale - missing).exp() / whole).min(1.0)
}

/// The expected number of flows on the fullest queue, or nothing when that is too much work.
pub fn expected_max(flows: u64, queues: u64) -> Option<f64> {
    let (count, least) = (flows as usize, flows.div_ceil(queues.max(1)));
    if queues <= 1 || flows <= 1 {
        return Some(flows as f64);
    }
    let mean = flows as f64 / queues as f64;
    let limits = (12.0 * mean.sqrt() + 30.0).min(flows as f64);
    let width = (24.0 * (flows as f64).sqrt() + 50.0).min(flows as f64);
    let work = width.powi(2) * 2.0 * (queues as f64).log2().ceil() * limits;
    if work > MOST_WORK {
        return None;
    }
    // Some queue gets the average or more.
    let mut expected = least as f64;
    for limit in least as usize..count {
        let more = 1.0 - at_most(count, queues, limit);
        if more < 1e-15 {
            break;
        }
        expected += more;
    }
    Some(expected)
}

pub(super) fn compute(inputs: &Inputs) -> Result<Outputs, Problem> {
    let flows = inputs.whole("flows", 1..=1_000_000_000)?;
    let queues = inputs.whole("queues", 1..=1_000_000_000)?;
    let Some(max) = expected_max(flows, queues) else {
        return Err(Problem::new(
            Code::TooLarge,
            format!("{flows} flows on {queues} queues are too many for the exact sum"),
        ));
    };
    Ok(Outputs::default()
        .with("expected_max", max)
        .with("efficiency", flows as f64 / (queues as f64 * max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every assignment of flows to queues, counted.
    fn enumerated(flows: u32, queues: usize) -> f64 {
        let all = queues.pow(flows);
        let mut sum = 0;
        for code in 0..all {
            let mut counts = vec![0_usize; queues];
            let mut rest = code;
            for _ in 0..flows {
                counts[rest % queues] += 1;
                rest /= queues;
            }
            sum += counts.iter().max().unwrap();
        }
        sum as f64 / all as f64
    }

    #[test]
    fn agrees_with_every_assignment() {
        for (flows, queues) in [(1, 3), (2, 2), (3, 5), (5, 3), (7, 4), (4, 7), (9, 2)] {
            let got = expected_max(u64::from(flows), queues as u64).unwrap();
            let wanted = enumerated(flows, queues);
            assert!((got - wanted).abs() < 1e-12, "{flows} {queues}: {got} {wanted}");
        }
    }

    #[test]
    fn many_queues_and_many_flows_come_out_or_are_refused() {
        assert!((expected_max(2, 1_000_000).unwrap() - 1.000_001).abs() < 1e-12);
        assert!(expected_max(1000, 64).unwrap() > 1000.0 / 64.0);
        assert_eq!(expected_max(1_000_000_000, 2), None);
    }
}
