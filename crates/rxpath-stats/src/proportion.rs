//! How sure is a share of counted things: right verdicts of all, for example?

use statrs::distribution::{Beta, ContinuousCDF};

/// The exact 95 % interval of a share, of `count` in `all`: 20 of 20 may be 83 % in truth. `[0, 1]` where nothing was
/// counted.
///
/// **Source** C. J. Clopper, E. S. Pearson, Biometrika 26 (1934).
pub fn interval(count: u64, all: u64) -> [f64; 2] {
    const TAIL: f64 = 0.025;
    let count = count.min(all);
    let quantile = |hits: u64, misses: u64, at: f64| {
        Beta::new(hits as f64, misses as f64).map(|beta| beta.inverse_cdf(at)).ok()
    };
    let low = quantile(count, all - count + 1, TAIL).filter(|_| count > 0).unwrap_or(0.0);
    let high = quantile(count + 1, all - count, 1.0 - TAIL).filter(|_| count < all).unwrap_or(1.0);
    [low, high]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_tables() {
        // R: binom.test(20, 20), binom.test(0, 10), binom.test(7, 10).
        for ((count, all), want) in [
            ((20, 20), [0.831_566, 1.0]),
            ((0, 10), [0.0, 0.308_497]),
            ((7, 10), [0.347_547, 0.933_260]),
            ((0, 0), [0.0, 1.0]),
        ] {
            let got = interval(count, all);
            assert!((got[0] - want[0]).abs() < 1e-4 && (got[1] - want[1]).abs() < 1e-4, "{got:?}");
        }
    }

    proptest! {
        #[test]
        fn the_share_lies_inside_and_more_counts_know_it_better(count in 0u64..50, more in 1u64..50) {
            let all = count + more;
            let [low, high] = interval(count, all);
            let share = count as f64 / all as f64;
            prop_assert!(low <= share && share <= high);
            let [lower, higher] = interval(count * 10, all * 10);
            prop_assert!(higher - lower < high - low);
        }
    }
}
