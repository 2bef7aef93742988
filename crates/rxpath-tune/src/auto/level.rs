//! How strict each test of a candidate must be, so that all tests of a search together keep their error.

/// Most blocks, and the two-sided level of a test after each block from the second on, for 5 % over all of them.
///
/// **Source** 20,000 seeded paths of normal noise for each column; the tests of this module simulate some again.
const LEVELS: [(f64, f64); 12] = [
    (4.0, 0.0247),
    (5.0, 0.0212),
    (6.0, 0.0179),
    (8.0, 0.0147),
    (10.0, 0.0129),
    (12.0, 0.0114),
    (14.0, 0.0103),
    (16.0, 0.0096),
    (20.0, 0.0084),
    (28.0, 0.0073),
    (40.0, 0.0061),
    (60.0, 0.0053),
];
/// A smaller error makes the level smaller by this power.
const EXPONENT: f64 = 1.17;

/// The two-sided level of one test among those after blocks 2 to `blocks`, for an error of `error` over all of them.
pub fn level(blocks: usize, error: f64) -> f64 {
    let x = (blocks as f64).clamp(LEVELS[0].0, LEVELS[LEVELS.len() - 1].0);
    let above = LEVELS.iter().position(|(blocks, _)| x <= *blocks).unwrap_or(LEVELS.len() - 1);
    let (right, left) = (LEVELS[above], LEVELS[above.saturating_sub(1)]);
    let share =
        if above == 0 { 0.0 } else { (x.ln() - left.0.ln()) / (right.0.ln() - left.0.ln()) };
    let at = (left.1.ln() + share * (right.1.ln() - left.1.ln())).exp();
    at * (error / 0.05).powf(EXPONENT)
}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};
    use rxpath_stats::student::two_sided;

    use super::*;

    #[test]
    fn columns_are_given_back_and_joined_between() {
        assert!((level(8, 0.05) - 0.0147).abs() < 1e-9 && (level(2, 0.05) - 0.0247).abs() < 1e-9);
        assert!((level(600, 0.05) - 0.0053).abs() < 1e-9);
        assert!(level(9, 0.05) < level(8, 0.05) && level(9, 0.05) > level(10, 0.05));
        assert!(level(8, 0.01) < level(8, 0.05) / 5.0);
    }

    /// Of paths without an effect, 5 % are found somewhere. The limit is three standard errors around it.
    #[test]
    fn all_tests_together_keep_their_error() {
        let mut dice = ChaCha8Rng::seed_from_u64(1);
        let mut normal = || {
            let (u, v): (f64, f64) = (dice.random(), dice.random());
            (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        };
        let paths = 20_000;
        for blocks in [4, 10, 40] {
            let limit = two_sided(level(blocks, 0.05), 1e6);
            let found = (0..paths).filter(|_| {
                let mut sum = normal();
                let exceeds = |n: usize| {
                    sum += normal();
                    sum.abs() / (n as f64).sqrt() > limit
                };
                (2..=blocks).map(exceeds).fold(false, |any, one| any | one)
            });
            let share = found.count() as f64 / f64::from(paths);
            assert!((share - 0.05).abs() < 0.005, "{blocks} blocks: {share}");
        }
    }
}
