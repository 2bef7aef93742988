//! The effects of each candidate over the blocks so far, and their common noise.

use rxpath_stats::student;

/// The noise is only estimated from so many degrees of freedom on.
const FEWEST_FREEDOM: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    weight: f64,
    effect: f64,
    square: f64,
    blocks: usize,
}

/// An estimate of one candidate's effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Effect {
    pub value: f64,
    /// Standard error.
    pub error: f64,
    /// Degrees of freedom of the noise.
    pub freedom: f64,
    /// Trials that it rests on.
    pub weight: f64,
}

impl Effect {
    /// The probability of an effect as far from 0, if there is none.
    pub fn p(&self) -> f64 {
        if self.error == 0.0 {
            return if self.value == 0.0 { 1.0 } else { 0.0 };
        }
        student::two_sided_p(self.value / self.error, self.freedom)
    }

    /// Half of the interval at this two-sided level.
    pub fn half(&self, level: f64) -> f64 {
        student::two_sided(level, self.freedom) * self.error
    }
}

/// Sums over blocks, for one metric.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    sums: Vec<Sums>,
    /// Squares of effects that belong to no candidate.
    free: f64,
    free_count: usize,
}

impl Tally {
    pub fn new(candidates: usize) -> Self {
        Self { sums: vec![Sums::default(); candidates], free: 0.0, free_count: 0 }
    }

    /// Adds a candidate's effect of one block of `runs` trials.
    pub fn add(&mut self, candidate: usize, runs: usize, effect: f64) {
        let (sums, weight) = (&mut self.sums[candidate], runs as f64);
        sums.weight += weight;
        sums.effect += weight * effect;
        sums.square += weight * effect * effect;
        sums.blocks += 1;
    }

    /// Adds the effect of a column that no candidate has.
    pub fn add_free(&mut self, runs: usize, effect: f64) {
        self.free += runs as f64 * effect * effect;
        self.free_count += 1;
    }

    /// Variance of an effect times the trials behind it, and its degrees of freedom; `None` before there are enough.
    ///
    /// Free columns hold interactions too, which make the noise look larger. So they only count while few candidates leave
    /// many columns free, and the candidates themselves say too little.
    pub fn noise(&self) -> Option<(f64, f64)> {
        let repeated = self.sums.iter().filter(|sums| sums.blocks > 1);
        let (mut squares, mut freedom) = (0.0, 0);
        for sums in repeated {
            squares += sums.square - sums.effect * sums.effect / sums.weight;
            freedom += sums.blocks - 1;
        }
        if freedom < FEWEST_FREEDOM {
            squares += self.free;
            freedom += self.free_count;
        }
        (freedom >= FEWEST_FREEDOM).then(|| (squares.max(0.0) / freedom as f64, freedom as f64))
    }

    /// The estimate for a candidate; `None` before there are two blocks with it.
    pub fn effect(&self, candidate: usize) -> Option<Effect> {
        let sums = &self.sums[candidate];
        let (noise, freedom) = self.noise().filter(|_| sums.blocks > 1)?;
        Some(Effect {
            value: sums.effect / sums.weight,
            error: (noise / sums.weight).sqrt(),
            freedom,
            weight: sums.weight,
        })
    }

    pub fn blocks(&self, candidate: usize) -> usize {
        self.sums[candidate].blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_has_the_mean_and_the_noise_of_its_blocks() {
        let mut tally = Tally::new(10);
        for candidate in 0..10 {
            tally.add(candidate, 16, 0.02);
            assert!(tally.effect(candidate).is_none());
        }
        for candidate in 0..10 {
            tally.add(candidate, 16, 0.04);
        }
        let effect = tally.effect(3).unwrap();
        assert!(
            (effect.value - 0.03).abs() < 1e-12 && effect.freedom.to_bits() == 10.0f64.to_bits()
        );
        // Each block's effect scatters by 0.01414; the mean of two by 0.01.
        assert!((effect.error - 0.01).abs() < 1e-9, "{effect:?}");
    }

    #[test]
    fn few_candidates_take_the_noise_from_free_columns() {
        let mut tally = Tally::new(1);
        for block in 0..2 {
            tally.add(0, 8, 0.1);
            for column in 0..6 {
                tally.add_free(8, if (block + column) % 2 == 0 { 0.01 } else { -0.01 });
            }
        }
        let effect = tally.effect(0).unwrap();
        assert!(effect.error > 0.005 && effect.error < 0.01, "{effect:?}");
        assert!(effect.p() < 0.001);
    }
}
