//! Runs that look after each block and stop when they are settled, simulated over noise as machines have it: how often
//! they find a difference where there is none, miss one, or have an interval without the truth.
//!
//! `make stats` simulates twenty times as many (RXPATH_STATS_RUNS). Limits are the stated error and three standard errors.

// Helpers beside the test functions may unwrap too: a panic is how a test fails.
#![allow(clippy::unwrap_used)]

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rxpath_stats::difference::{Settled, VariantDifference, Word, difference, family};
use rxpath_stats::scale::Good;
use rxpath_stats::{Looks, Scale};

const MOST: usize = 20;
const THRESHOLD: f64 = 0.03;

fn runs() -> usize {
    let asked = std::env::var("RXPATH_STATS_RUNS").ok();
    asked.map_or(500, |count| count.parse().unwrap())
}

/// The noise of trials, as a share of their value.
#[derive(Clone, Copy, Debug)]
enum Noise {
    Normal(f64),
    Lognormal(f64),
    /// Normal, and a tenth of trials loses up to this share.
    Theft(f64, f64),
    Bimodal(f64),
    /// A level that wanders: correlation of 0.9 from trial to trial, and normal noise of 2 %.
    Wandering(f64),
    /// Each trial is this share lower than the one before, and normal noise of 2 %.
    Trend(f64),
    /// The variant scatters four times as much as the base.
    Unequal(f64),
}

const MODELS: [Noise; 10] = [
    Noise::Normal(0.01),
    Noise::Normal(0.02),
    Noise::Normal(0.05),
    Noise::Normal(0.10),
    Noise::Lognormal(0.05),
    Noise::Theft(0.02, 0.2),
    Noise::Bimodal(0.04),
    Noise::Wandering(0.08),
    Noise::Trend(0.005),
    Noise::Unequal(0.02),
];

struct Machine {
    noise: Noise,
    dice: ChaCha8Rng,
    level: f64,
    trials: f64,
}

impl Machine {
    fn new(noise: Noise, seed: u64) -> Self {
        Self { noise, dice: ChaCha8Rng::seed_from_u64(seed), level: 0.0, trials: 0.0 }
    }

    fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.dice)
    }

    fn trial(&mut self, mean: f64, is_variant: bool) -> f64 {
        self.trials += 1.0;
        let normal: f64 = self.normal();
        let off = match self.noise {
            Noise::Normal(sd) => sd * normal,
            Noise::Lognormal(sd) => return mean * (sd * normal).exp(),
            Noise::Theft(sd, taken) => {
                let stolen = self.dice.random::<f64>() < 0.1;
                sd * normal - if stolen { taken * self.dice.random::<f64>() * 2.0 } else { 0.0 }
            }
            Noise::Bimodal(apart) => {
                0.01 * normal + if self.dice.random::<bool>() { apart } else { -apart }
            }
            Noise::Wandering(sd) => {
                let step: f64 = self.normal();
                self.level = 0.9 * self.level + sd * 0.19_f64.sqrt() * step;
                self.level + 0.02 * normal
            }
            Noise::Trend(step) => -step * self.trials + 0.02 * normal,
            Noise::Unequal(sd) => sd * if is_variant { 4.0 } else { 1.0 } * normal,
        };
        mean * (1.0 + off).max(0.01)
    }

    fn block(&mut self, ratio: f64) -> (f64, f64) {
        if self.dice.random::<bool>() {
            let base = self.trial(100.0, false);
            (base, self.trial(100.0 * ratio, true))
        } else {
            let variant = self.trial(100.0 * ratio, true);
            (self.trial(100.0, false), variant)
        }
    }

    /// A run until it is settled.
    fn run(&mut self, ratio: f64) -> VariantDifference {
        let mut pairs = Vec::new();
        loop {
            pairs.push(self.block(ratio));
            let found =
                difference(&pairs, Scale::Ratio, THRESHOLD, Looks::EveryBlock { most: MOST })
                    .unwrap();
            if pairs.len() >= 5 && (found.settled().is_some() || pairs.len() == MOST) {
                return found;
            }
        }
    }
}

/// What came of runs: shares of them, and blocks.
struct Shares {
    differs: f64,
    same: f64,
    covered: f64,
    blocks: f64,
}

fn shares(noise: Noise, ratio: f64) -> Shares {
    let count = runs();
    let (mut differs, mut same, mut covered, mut blocks) = (0usize, 0usize, 0usize, 0usize);
    for seed in 0..count {
        let found = Machine::new(noise, seed as u64).run(ratio);
        match found.word(Good::Up) {
            Word::Better | Word::Worse => differs += 1,
            Word::Same => same += 1,
            Word::Inconclusive => {}
        }
        let interval = found.ratio().unwrap().1;
        covered += usize::from(interval.low <= ratio && ratio <= interval.high);
        blocks += found.pairs;
    }
    let share = |part: usize| part as f64 / count as f64;
    Shares {
        differs: share(differs),
        same: share(same),
        covered: share(covered),
        blocks: share(blocks),
    }
}

/// `share` and three standard errors of so many runs.
fn at_most(share: f64) -> f64 {
    share + 3.0 * (share * (1.0 - share) / runs() as f64).sqrt()
}

fn at_least(share: f64) -> f64 {
    1.0 - at_most(1.0 - share)
}

#[test]
fn equal_variants_differ_in_one_of_twenty_runs_at_most() {
    for noise in MODELS {
        let found = shares(noise, 1.0);
        println!(
            "{noise:?} equal: differs {:.3} same {:.3} covered {:.3} blocks {:.1}",
            found.differs, found.same, found.covered, found.blocks
        );
        assert!(found.differs <= at_most(0.05), "{noise:?}: {}", found.differs);
        assert!(found.covered >= at_least(0.95), "{noise:?}: {}", found.covered);
    }
}

#[test]
fn variants_that_differ_by_the_threshold_are_seldom_the_same() {
    for noise in MODELS {
        let found = shares(noise, 1.0 + THRESHOLD);
        assert!(found.same <= at_most(0.05), "{noise:?}: {}", found.same);
        // Noise models whose mean is not the level itself (thefts, skew) shift both variants alike.
        assert!(found.covered >= at_least(0.95), "{noise:?}: {}", found.covered);
    }
}

#[test]
fn differences_are_found_and_equality_is_shown() {
    let quiet = shares(Noise::Normal(0.02), 1.0);
    assert!(quiet.same >= at_least(0.92), "{}", quiet.same);
    for (noise, ratio, power, blocks) in [
        (Noise::Normal(0.05), 1.10, 0.97, 8.5),
        (Noise::Normal(0.02), 1.05, 0.99, 7.0),
        (Noise::Theft(0.02, 0.2), 1.05, 0.85, 9.1),
        (Noise::Normal(0.01), 1.10, 0.99, 5.0),
    ] {
        let found = shares(noise, ratio);
        println!("{noise:?} {ratio}: differs {:.3} blocks {:.2}", found.differs, found.blocks);
        assert!(found.differs >= at_least(power), "{noise:?} {ratio}: {}", found.differs);
        assert!((found.blocks - blocks).abs() < 0.8, "{noise:?} {ratio}: {}", found.blocks);
    }
}

#[test]
fn six_comparisons_together_find_nothing_in_nineteen_of_twenty_runs() {
    let looks = Looks::EveryBlock { most: MOST };
    let false_ones = (0..runs() as u64).filter(|seed| {
        let mut machine = Machine::new(Noise::Normal(0.05), *seed);
        let mut rows: Vec<Vec<f64>> = Vec::new();
        loop {
            rows.push((0..7).map(|_| machine.trial(100.0, false)).collect());
            if rows.len() < 5 {
                continue;
            }
            let mut found: Vec<VariantDifference> = (1..7)
                .map(|at| rows.iter().map(|row| (row[0], row[at])).collect::<Vec<_>>())
                .map(|pairs| difference(&pairs, Scale::Ratio, THRESHOLD, looks).unwrap())
                .collect();
            family(&mut found);
            let is_over = found.iter().all(|one| one.settled().is_some()) || rows.len() == MOST;
            if is_over {
                return found.iter().any(VariantDifference::excludes_no_change);
            }
        }
    });
    let share = false_ones.count() as f64 / runs() as f64;
    println!("six comparisons: any false {share:.3}");
    assert!(share <= at_most(0.05), "{share}");
}

#[test]
fn loss_from_zero_is_decided_at_once_and_none_is_the_same() {
    let scale = Scale::Share { step: 0.001 };
    let looks = Looks::EveryBlock { most: MOST };
    let none = difference(&[(0.0, 0.0); 5], scale, THRESHOLD, looks).unwrap();
    assert_eq!((none.word(Good::Down), none.settled()), (Word::Same, Some(Settled::Decided)));
    let worse = (0..runs() as u64).filter(|seed| {
        let mut dice = ChaCha8Rng::seed_from_u64(*seed);
        let mut pairs = Vec::new();
        while pairs.len() < MOST {
            // 0.3 % on average, in bursts.
            let exponential = -(1.0 - dice.random::<f64>()).ln();
            pairs.push((0.0, 0.003 * exponential));
            let found = difference(&pairs, scale, THRESHOLD, looks).unwrap();
            if pairs.len() >= 5 && found.settled().is_some() {
                return found.word(Good::Down) == Word::Worse;
            }
        }
        false
    });
    let share = worse.count() as f64 / runs() as f64;
    println!("0 to 0.3 % loss: worse {share:.3}");
    assert!(share >= at_least(0.90), "{share}");
}
