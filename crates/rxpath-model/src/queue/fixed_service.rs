//! One server with a fixed service time and Poisson arrivals: the numbers that a leaving packet sees behind it.
//!
//! The textbook sums alternate in sign and lose every digit from some tens of packets on. Here the chain embedded at
//! departures is solved by its cuts: what flows up over the cut between `j` and `j+1` flows down over it,
//!
//! ```text
//! pi[j+1] a[0] = pi[0] P(A > j) + sum_{i=1..j} pi[i] P(A > j+1-i)        A = arrivals during one service
//! ```
//!
//! so that only positive terms are added. From some hundred packets on the numbers fall (or grow) geometrically with
//! the exact rate of the queue's tail, and no more terms are needed, however large the queue.
//!
//! **Source** L. Takács, Introduction to the Theory of Queues, 1962; H. Tijms, A First Course in Stochastic Models, 2003.

use crate::poisson;

/// From here on the numbers follow their geometric tail to the last digit.
const EXACT: usize = 1000;
/// Above this load a queue of two or more places is never empty: e^-300.
const SATURATED: f64 = 300.0;

/// The embedded chain at load `rho`.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Relative to `pi[0]`, in the scale of `pi[0]`.
    pi: Vec<f64>,
    /// `ln(pi[j+1] / pi[j])` in the tail.
    log_ratio: f64,
}

/// Loss and idle time of a queue with a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limited {
    /// Fraction of arrivals that find the queue full.
    pub block: f64,
    /// Fraction of time without a packet.
    pub idle: f64,
}

impl Chain {
    /// Solves `states` states beyond the empty one, for a load from 0 to 300.
    fn new(rho: f64, states: usize) -> Self {
        let above = tails(rho);
        let reach = above.len();
        let none = (-rho).exp();
        let mut pi = vec![1.0];
        for j in 0..states {
            let above = |m: usize| above.get(m).copied().unwrap_or(0.0);
            // The latest states first: how many may arrive rises from 1.
            let later = pi[1..].iter().rev().take(reach).enumerate();
            let up = pi[0] * above(j) + later.map(|(m, p)| p * above(m + 1)).sum::<f64>();
            let next = up / none;
            pi.push(next);
            if next > 1e100 {
                for value in &mut pi {
                    *value /= next;
                }
            }
        }
        Self { pi, log_ratio: -rho * tail_root(rho) }
    }

    /// The sum of `pi[from..to]`, by the geometric tail beyond what was solved.
    fn sum(&self, to: u64) -> f64 {
        let solved = self.pi.len() as u64;
        let inner: f64 = self.pi.iter().take(to as usize).sum();
        if to <= solved {
            return inner;
        }
        let last = self.pi.last().copied().unwrap_or(0.0);
        let count = (to - solved) as f64;
        let rest = if self.log_ratio.abs() * count < 1e-15 {
            count
        } else {
            let step = self.log_ratio;
            (step.exp() * (step * count).exp_m1()) / step.exp_m1()
        };
        inner + last * rest
    }

    /// The sum of `pi[from..]` without end; for a load below 1.
    fn tail(&self, from: u64) -> f64 {
        let last = self.pi.last().copied().unwrap_or(0.0);
        let solved = self.pi.len() as u64;
        let beyond = last * self.log_ratio.exp() / -self.log_ratio.exp_m1();
        if from >= solved {
            return beyond * (self.log_ratio * (from - solved) as f64).exp();
        }
        self.pi[from as usize..].iter().rev().sum::<f64>() + beyond
    }
}

/// M/D/1/K: `places` counts the packet in service.
///
/// **Caveat** above a load of 300 the idle time of two or more places is reported as 0 (it is below e^-300).
pub fn limited(rho: f64, places: u64) -> Limited {
    if places <= 1 {
        return Limited { block: rho / (1.0 + rho), idle: 1.0 / (1.0 + rho) };
    }
    if rho > SATURATED {
        return Limited { block: 1.0 - 1.0 / rho, idle: 0.0 };
    }
    let chain = Chain::new(rho, if rho < 1.0 { EXACT } else { EXACT.min(places as usize) });
    let (first, sum) = (chain.pi[0], chain.sum(places));
    if !sum.is_finite() {
        return Limited { block: 1.0 - 1.0 / rho, idle: 0.0 };
    }
    let whole = first + rho * sum;
    let mut full = first - (1.0 - rho) * sum;
    if rho < 1.0 && full < 0.01 * first {
        // The same number without a difference: the tail of the queue without limit.
        full = (1.0 - rho) * chain.tail(places);
    }
    Limited { block: full / whole, idle: first / whole }
}

/// The waiting time in an M/D/1 queue, in units of the service time; for a load below 1.
#[derive(Clone, Debug)]
pub struct Waiting {
    rho: f64,
    /// `more[m]` = P(more than `m` packets in the system).
    more: Vec<f64>,
    log_ratio: f64,
}

impl Waiting {
    /// Solves for `0 <= rho < 1`.
    pub fn new(rho: f64) -> Self {
        let chain = Chain::new(rho, EXACT);
        let mut more = vec![0.0; EXACT];
        let mut tail = chain.tail(EXACT as u64) * (1.0 - rho);
        for m in (0..EXACT).rev() {
            more[m] = tail;
            tail += chain.pi[m] * (1.0 - rho);
        }
        Self { rho, more, log_ratio: chain.log_ratio }
    }

    fn more_than(&self, m: u64) -> f64 {
        let last = self.more.len() as u64 - 1;
        if m <= last {
            return self.more[m as usize];
        }
        self.more[last as usize] * (self.log_ratio * (m - last) as f64).exp()
    }

    /// P(W > t), by Franx's sum of positive terms.
    ///
    /// **Source** G. J. Franx, "A simple solution for the M/D/c waiting time distribution", Operations Research
    /// Letters 29, 2001.
    pub fn longer_than(&self, t: f64) -> f64 {
        let services = t.floor() + 1.0;
        let mean = self.rho * (services - t);
        let (mut term, mut sum) = ((-mean).exp(), 0.0);
        for j in 0..200_u32 {
            let place = services - 1.0 - f64::from(j);
            let longer = if place < 0.0 { 1.0 } else { self.more_than(place as u64 + 1) };
            sum += term * longer;
            term *= mean / f64::from(j + 1);
            if term < 1e-30 {
                break;
            }
        }
        sum.min(1.0)
    }

    /// The smallest `t` with P(W <= t) >= q.
    pub fn quantile(&self, q: f64) -> f64 {
        if q <= 1.0 - self.rho {
            return 0.0;
        }
        let wanted = 1.0 - q;
        let mut high = 1.0;
        while self.longer_than(high) > wanted && high < 1e18 {
            high *= 2.0;
        }
        let mut low = 0.0;
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if self.longer_than(middle) > wanted { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }
}

/// P(A > m) for m = 0, 1, ... until it vanishes.
fn tails(rho: f64) -> Vec<f64> {
    let mut count = 0_u64;
    while count as f64 <= rho || poisson::at(rho, count) > 1e-290 {
        count += 1;
    }
    let mut tails = vec![0.0; count as usize];
    let mut sum = poisson::at(rho, count);
    for m in (0..count).rev() {
        tails[m as usize] = sum;
        sum += poisson::at(rho, m);
    }
    tails
}

/// The `y` other than 0 with `ln(1+y) = rho y`: packets beyond packets are `e^(-rho y)` times as likely.
fn tail_root(rho: f64) -> f64 {
    // 1 - ln(1+y)/y rises with y from minus infinity at -1 through 0 at 0 to 1.
    let gap = |y: f64| {
        if y.abs() < 0.01 {
            (2..12).rev().fold(0.0, |sum, n| y * (1.0 / f64::from(n) - sum))
        } else {
            1.0 - y.ln_1p() / y
        }
    };
    let wanted = 1.0 - rho;
    if wanted.abs() < 1e-300 {
        return 0.0;
    }
    let (mut low, mut high) = if wanted > 0.0 { (0.0, 1.0) } else { (-1.0, 0.0) };
    while wanted > 0.0 && gap(high) < wanted && high < 1e300 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..300 {
        let middle = 0.5 * (low + high);
        if gap(middle) < wanted { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chain as textbooks write it, solved by repeated steps: slow and independent.
    fn stepped(rho: f64, places: usize) -> Limited {
        let arrivals: Vec<f64> = (0..places as u64).map(|n| poisson::at(rho, n)).collect();
        let mut pi = vec![1.0 / places as f64; places];
        for _ in 0..200_000 {
            let mut next = vec![0.0; places];
            for (state, mass) in pi.iter().enumerate() {
                let kept = state.saturating_sub(1);
                let mut left = 1.0;
                for to in kept..places - 1 {
                    next[to] += mass * arrivals[to - kept];
                    left -= arrivals[to - kept];
                }
                next[places - 1] += mass * left;
            }
            let change: f64 = next.iter().zip(&pi).map(|(a, b)| (a - b).abs()).sum();
            pi = next;
            if change < 1e-15 {
                break;
            }
        }
        let whole = pi[0] + rho;
        Limited { block: 1.0 - 1.0 / whole, idle: pi[0] / whole }
    }

    #[test]
    fn the_cuts_agree_with_the_stepped_chain() {
        for (rho, places) in
            [(0.3, 3), (0.7, 10), (0.97, 20), (1.0, 2), (1.0, 30), (1.4, 12), (5.0, 6)]
        {
            let (got, wanted) = (limited(rho, places as u64), stepped(rho, places));
            assert!((got.block - wanted.block).abs() < 1e-10, "{rho} {places}: {got:?} {wanted:?}");
            assert!((got.idle - wanted.idle).abs() < 1e-10, "{rho} {places}: {got:?} {wanted:?}");
        }
    }

    #[test]
    fn the_geometric_tail_continues_the_recursion() {
        for rho in [0.98, 0.999, 1.0, 1.0005, 1.002] {
            let (short, long) = (Chain::new(rho, EXACT), Chain::new(rho, 4000));
            let scale = short.pi[0] / long.pi[0];
            for to in [1001, 1500, 3999] {
                let (got, wanted) = (short.sum(to), long.sum(to) * scale);
                assert!((got / wanted - 1.0).abs() < 1e-9, "{rho} {to}: {got} {wanted}");
            }
        }
    }

    #[test]
    fn hard_parameters_stay_finite_and_in_order() {
        for places in [2, 64, 10_000, 1_000_000_000] {
            let mut before = 0.0;
            for rho in
                [1e-9, 0.5, 0.999_999_999_9, 1.0, 1.000_000_000_1, 1.5, 40.0, 299.0, 301.0, 1e9]
            {
                let Limited { block, idle } = limited(rho, places);
                assert!(
                    (0.0..=1.0).contains(&block) && (0.0..=1.0).contains(&idle),
                    "{rho} {places}"
                );
                assert!(block >= before, "{rho} {places}: {block} after {before}");
                before = block;
            }
        }
    }

    #[test]
    fn at_load_one_both_ends_agree_with_the_known_limit() {
        // At rho = 1 blocking equals idling, and K times either tends to 1/2.
        let got = limited(1.0, 1_000_000);
        assert!((got.block - got.idle).abs() < 1e-15);
        assert!((got.block * 1e6 - 0.5).abs() < 1e-5, "{got:?}");
    }

    #[test]
    fn far_tails_keep_their_digits() {
        // P(block) at K+1 over K falls by the tail's ratio.
        let (here, next) = (limited(0.5, 200).block, limited(0.5, 201).block);
        let ratio = (-0.5 * tail_root(0.5)).exp();
        assert!((next / here / ratio - 1.0).abs() < 1e-9 && here < 1e-90, "{here} {next}");
    }

    #[test]
    fn waiting_has_its_mean_and_its_atom() {
        for rho in [0.05, 0.5, 0.9, 0.99] {
            let waiting = Waiting::new(rho);
            assert!((waiting.longer_than(0.0) - rho).abs() < 1e-12);
            // The mean is the integral of P(W > t): Simpson between the kinks at whole service times.
            let (mut mean, steps) = (0.0, 20);
            for service in 0..4000 {
                for step in 0..steps {
                    let at = |part: f64| {
                        waiting.longer_than(
                            f64::from(service) + (f64::from(step) + part) / f64::from(steps),
                        )
                    };
                    mean += (at(0.0) + 4.0 * at(0.5) + at(1.0 - 1e-12)) / 6.0 / f64::from(steps);
                }
            }
            let wanted = rho / (2.0 * (1.0 - rho));
            assert!((mean / wanted - 1.0).abs() < 1e-7, "{rho}: {mean} {wanted}");
        }
    }
}
