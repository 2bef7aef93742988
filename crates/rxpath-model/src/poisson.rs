//! The Poisson distribution without loss of digits far from its mean.
//!
//! **Source** C. Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000: the probability at `n` is
//! Stirling's formula with its exact error and the deviance `n ln(n/a) + a - n` by a series where it would cancel.
//! Tails are sums of positive terms, always in the direction in which they fall.

/// `ln n! - ((n + 1/2) ln n - n + ln(2 pi)/2)`.
fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        let factorial: f64 = (1..=n as u32).map(f64::from).product();
        let half_log_two_pi = 0.5 * std::f64::consts::TAU.ln();
        return factorial.ln() - ((n + 0.5) * n.ln() - n + half_log_two_pi);
    }
    let square = n * n;
    let inner = 1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / (1188.0 * square)) / square;
    (1.0 / 12.0 - (1.0 / 360.0 - inner / square) / square) / n
}

/// `n ln(n/a) + a - n`, by a series where `n` and `a` are near each other.
fn deviance(n: f64, mean: f64) -> f64 {
    let difference = n - mean;
    if difference.abs() >= 0.1 * (n + mean) {
        return n * (n / mean).ln() + mean - n;
    }
    let ratio = difference / (n + mean);
    let mut sum = difference * ratio;
    let mut term = 2.0 * n * ratio;
    for odd in (3..).step_by(2) {
        term *= ratio * ratio;
        let next = sum + term / f64::from(odd);
        if (next - sum).abs() <= f64::EPSILON * sum.abs() * 0.25 {
            return next;
        }
        sum = next;
    }
    sum
}

/// P(X = n).
pub fn at(mean: f64, n: u64) -> f64 {
    if mean <= 0.0 {
        return if n == 0 { 1.0 } else { 0.0 };
    }
    if n == 0 {
        return (-mean).exp();
    }
    let n = n as f64;
    (-stirling_error(n) - deviance(n, mean)).exp() / (std::f64::consts::TAU * n).sqrt()
}

/// The sum of `weight(distance) term(distance)` over distances 0, 1, ...; each term is `ratio(distance)` times the one
/// before.
fn falling(first: f64, ratio: impl Fn(f64) -> f64, weight: impl Fn(f64) -> f64) -> f64 {
    let (mut term, mut sum, mut distance) = (first, 0.0, 0.0);
    loop {
        let next = sum + weight(distance) * term;
        distance += 1.0;
        term *= ratio(distance);
        // The first weight may be 0; from then on no change means that nothing more can come.
        if (next <= sum && distance > 2.0) || term <= 0.0 {
            return next;
        }
        sum = next;
    }
}

/// The sum of `weight(distance) P(X = n + distance)` over distances 0, 1, ...; for `n` above the mean.
fn falling_up(mean: f64, n: u64, weight: impl Fn(f64) -> f64) -> f64 {
    falling(at(mean, n), |distance| mean / (n as f64 + distance), weight)
}

/// The sum of `weight(distance) P(X = n - distance)` over distances 0, 1, ..., n; for `n` below the mean.
fn falling_down(mean: f64, n: u64, weight: impl Fn(f64) -> f64) -> f64 {
    falling(at(mean, n), |distance| (n as f64 - (distance - 1.0)) / mean, weight)
}

/// P(X >= n).
pub fn at_least(mean: f64, n: u64) -> f64 {
    if n == 0 {
        1.0
    } else if n as f64 > mean {
        falling_up(mean, n, |_| 1.0)
    } else {
        1.0 - falling_down(mean, n - 1, |_| 1.0)
    }
}

/// P(X <= n).
pub fn at_most(mean: f64, n: u64) -> f64 {
    if (n as f64) < mean {
        falling_down(mean, n, |_| 1.0)
    } else {
        1.0 - falling_up(mean, n + 1, |_| 1.0)
    }
}

/// E[max(0, X - n)]: what does not fit into `n` places.
pub fn mean_excess(mean: f64, n: u64) -> f64 {
    if n as f64 >= mean {
        falling_up(mean, n, |distance| distance)
    } else {
        mean - n as f64 + falling_down(mean, n, |distance| distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(got: f64, wanted: f64, relative: f64) {
        assert!((got - wanted).abs() <= relative * wanted.abs(), "{got} is not {wanted}");
    }

    #[test]
    fn known_probabilities() {
        close(at(1.0, 0), (-1.0_f64).exp(), 1e-15);
        close(at(4.0, 3), 64.0 / 6.0 * (-4.0_f64).exp(), 1e-14);
        // At its mean the distribution is 1/sqrt(2 pi a) to first order.
        close(at(1e10, 10_000_000_000), (std::f64::consts::TAU * 1e10).sqrt().recip(), 1e-9);
        assert!(at(0.0, 0) > 0.999 && at(0.0, 3) <= 0.0 && at_least(0.0, 1) <= 0.0);
    }

    proptest! {
        #[test]
        fn everything_adds_up(mean in 0.0..2000.0, n in 0_u64..3000) {
            let total = at_most(mean, n) + at_least(mean, n + 1);
            prop_assert!((total - 1.0).abs() < 1e-12, "{}", total);
        }

        #[test]
        fn the_ratio_of_neighbours_is_the_definition(mean in 0.01..2000.0, n in 0_u64..3000) {
            let (here, next) = (at(mean, n), at(mean, n + 1));
            prop_assume!(here > 1e-290 && next > 1e-290);
            let ratio = next / here * (n + 1) as f64 / mean;
            prop_assert!((ratio - 1.0).abs() < 1e-11, "{}", ratio);
        }

        #[test]
        fn excess_falls_by_the_tail(mean in 0.1..500.0, n in 0_u64..700) {
            let step = mean_excess(mean, n) - mean_excess(mean, n + 1);
            let tail = at_least(mean, n + 1);
            prop_assert!((step - tail).abs() < 1e-10, "{} {}", step, tail);
        }
    }
}
