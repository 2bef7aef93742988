//! Searches for a capacity before receivers as noisy machines have them: how far off the answer is, how much it
//! scatters, how often it does not hold, and what it costs. A bisection that takes the best of three short trials is
//! searched with too, for comparison.
//!
//! `make stats` simulates more (RXPATH_STATS_RUNS) and prints the table.

// Helpers beside the test functions may unwrap too: a panic is how a test fails.
#![allow(clippy::unwrap_used)]

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rxpath_stats::load_class::SearchGoal;
use rxpath_stats::load_search::{LoadSearch, SearchEnd, SearchPlan, TrialOutcome, Turn};

/// What surrounds a trial in the lab. **Unit** s.
const AROUND: f64 = 0.6;
const LOSS: f64 = 0.001;
const DEFAULT: (SearchGoal, u32) =
    (SearchGoal { final_s: 1.0, sum_s: 5.0, exceed_ratio: 0.5, width_ratio: 0.03 }, 11);
const QUICK: (SearchGoal, u32) =
    (SearchGoal { final_s: 1.0, sum_s: 5.0, exceed_ratio: 0.5, width_ratio: 0.05 }, 7);

fn runs() -> usize {
    let asked = std::env::var("RXPATH_STATS_RUNS").ok();
    asked.map_or(300, |count| count.parse().unwrap())
}

/// A receiver whose capacity is near 1 and differs from trial to trial.
struct Receiver {
    /// Standard deviation of the logarithm of a trial's capacity.
    sd: f64,
    /// Share of trials from which something takes a quarter on average.
    thefts: f64,
    dice: ChaCha8Rng,
    trials: u32,
    seconds: f64,
}

const NOISES: [(&str, f64, f64); 3] =
    [("clean", 0.0, 0.0), ("sd 3 %, 10 % thefts", 0.03, 0.1), ("sd 5 %, 30 % thefts", 0.05, 0.3)];

impl Receiver {
    fn new(sd: f64, thefts: f64, seed: u64) -> Self {
        Self { sd, thefts, dice: ChaCha8Rng::seed_from_u64(seed), trials: 0, seconds: 0.0 }
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.dice.random::<f64>()).ln()
    }

    fn takes(&mut self) -> f64 {
        let normal: f64 = StandardNormal.sample(&mut self.dice);
        let stolen = if self.dice.random::<f64>() < self.thefts {
            (0.25 * self.exponential()).min(0.9)
        } else {
            0.0
        };
        (self.sd * normal).exp() * (1.0 - stolen)
    }

    /// Loss of a trial at this load.
    fn loss(&mut self, load: f64, seconds: f64) -> f64 {
        self.trials += 1;
        self.seconds += seconds + AROUND;
        let takes = self.takes();
        (1.0 - takes / load).max(0.0)
    }

    /// The highest load at which each of many trials is good, sorted.
    fn holds(&self, loss: f64) -> Vec<f64> {
        let mut other = Self::new(self.sd, self.thefts, 7);
        let mut all: Vec<f64> = (0..20_000).map(|_| other.takes() / (1.0 - loss)).collect();
        all.sort_by(f64::total_cmp);
        all
    }
}

/// Share of trials that fail at this load.
fn fails(holds: &[f64], load: f64) -> f64 {
    holds.partition_point(|most| *most < load) as f64 / holds.len() as f64
}

/// Doubling and bisection to 8 %; of three trials of 0.7 s any may be good.
fn best_of_three(receiver: &mut Receiver, first: f64) -> f64 {
    let (mut good, mut bad) = (None, None);
    let mut rate = first;
    while good.zip(bad).is_none_or(|(good, bad): (f64, f64)| bad / good > 1.08) {
        let is_good = (0..3).any(|_| receiver.loss(rate, 0.7) <= 0.002);
        if is_good {
            good = Some(rate);
        } else {
            bad = Some(rate);
        }
        rate = match (good, bad) {
            (Some(good), Some(bad)) => f64::sqrt(good * bad),
            (Some(good), None) => good * 2.0,
            (None, _) => rate / 2.0,
        };
    }
    good.unwrap()
}

fn by_goal(
    (goal, fresh): (SearchGoal, u32),
    loss: f64,
    receiver: &mut Receiver,
    first: f64,
) -> f64 {
    let plan = SearchPlan { goal, fresh, first, lowest: first / 50.0, most: 1e3, time_s: None };
    let (search, end) = by_plan(plan, loss, receiver);
    match end {
        SearchEnd::FreshFailed => search.bounds().lower.unwrap_or(0.0),
        _ => search.bounds().lower.unwrap(),
    }
}

fn by_plan(plan: SearchPlan, loss: f64, receiver: &mut Receiver) -> (LoadSearch, SearchEnd) {
    let mut search = LoadSearch::new(plan);
    loop {
        match search.next() {
            Turn::Try(next) => {
                let loss_ratio = receiver.loss(next.rate, next.seconds);
                let is_good = loss_ratio <= loss;
                let outcome = if is_good {
                    TrialOutcome::Good { loss_ratio }
                } else {
                    TrialOutcome::Bad { loss_ratio }
                };
                search.take(outcome, next.seconds + AROUND);
            }
            Turn::Over(end) => return (search, end),
        }
    }
}

/// What came of many searches; shares of the true capacity.
#[derive(Debug)]
struct Found {
    bias: f64,
    sd: f64,
    /// Share of answers that fail in more than 60 % of trials.
    wrong: f64,
    trials: f64,
    seconds: f64,
}

type Searched = fn(&mut Receiver, f64) -> f64;

fn of(noise: (&str, f64, f64), loss: f64, search: Searched) -> Found {
    let holds = Receiver::new(noise.1, noise.2, 0).holds(loss);
    let truth = holds[holds.len() / 2];
    let count = runs() as f64;
    let (mut sum, mut squares, mut wrong, mut trials, mut seconds) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for seed in 0..runs() as u64 {
        let mut receiver = Receiver::new(noise.1, noise.2, seed);
        let first = 0.05 * (0.8 + 0.4 * receiver.dice.random::<f64>());
        let found = search(&mut receiver, first);
        sum += found / truth;
        squares += (found / truth).powi(2);
        wrong += f64::from(u8::from(fails(&holds, found) > 0.6));
        trials += f64::from(receiver.trials);
        seconds += receiver.seconds;
    }
    let mean = sum / count;
    Found {
        bias: mean - 1.0,
        sd: (squares / count - mean * mean).max(0.0).sqrt(),
        wrong: wrong / count,
        trials: trials / count,
        seconds: seconds / count,
    }
}

const SEARCHES: [(&str, Searched); 3] = [
    ("best of three, 8 %", best_of_three),
    ("quick", |receiver, first| by_goal(QUICK, LOSS, receiver, first)),
    ("default", |receiver, first| by_goal(DEFAULT, LOSS, receiver, first)),
];

/// `share` and three standard errors of so many runs.
fn at_most(share: f64) -> f64 {
    share + 3.0 * (share * (1.0 - share) / runs() as f64).sqrt()
}

#[test]
fn answers_hold_scatter_little_and_cost_little() {
    println!("search              noise                 bias    sd  fails  trials  seconds");
    for noise in NOISES {
        for (name, search) in SEARCHES {
            let found = of(noise, LOSS, search);
            println!(
                "{name:<19} {:<19} {:+6.1} {:5.1} {:6.1} {:7.1} {:8.0}",
                noise.0,
                100.0 * found.bias,
                100.0 * found.sd,
                100.0 * found.wrong,
                found.trials,
                found.seconds
            );
            if name == "best of three, 8 %" {
                continue;
            }
            assert!(found.wrong <= at_most(0.05), "{name}, {noise:?}: {found:?}");
            assert!(found.trials <= 45.0, "{name}, {noise:?}: {found:?}");
            assert!(found.bias <= 0.0 && found.bias > -0.06, "{name}, {noise:?}: {found:?}");
        }
        let precise = of(noise, LOSS, SEARCHES[2].1);
        let limit = [0.012, 0.02, 0.03][NOISES.iter().position(|it| it.0 == noise.0).unwrap()];
        assert!(precise.sd <= limit, "{noise:?}: {precise:?}");
    }
}

#[test]
fn the_best_of_three_finds_loads_that_fail() {
    let noisy = of(NOISES[2], LOSS, best_of_three);
    assert!(noisy.wrong > 0.4 && noisy.bias > 0.01, "{noisy:?}");
    assert!(of(NOISES[2], LOSS, SEARCHES[1].1).wrong < 0.3 * noisy.wrong);
}

#[test]
fn more_loss_allowed_finds_no_lower_capacity() {
    let searches: [Searched; 3] = [
        |receiver, first| by_goal(DEFAULT, 0.0, receiver, first),
        |receiver, first| by_goal(DEFAULT, 0.01, receiver, first),
        |receiver, first| by_goal(DEFAULT, 0.05, receiver, first),
    ];
    for noise in NOISES {
        let holds = Receiver::new(noise.1, noise.2, 0).holds(0.0);
        let truth = holds[holds.len() / 2];
        let found: Vec<f64> = [0.0, 0.01, 0.05]
            .into_iter()
            .zip(searches)
            .map(|(loss, search)| (1.0 + of(noise, loss, search).bias) * truth / (1.0 - loss))
            .collect();
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{noise:?}: {found:?}");
    }
}

/// A scenario whose rates are shares of the capacity needs a load that holds, however short its search.
#[test]
fn a_search_of_twenty_seconds_mostly_ends_with_a_load_that_holds() {
    // The climb begins near the capacity, or far below it.
    for (noise, below) in NOISES.into_iter().flat_map(|noise| [(noise, 1.0), (noise, 20.0)]) {
        let holds = Receiver::new(noise.1, noise.2, 0).holds(LOSS);
        let truth = holds[holds.len() / 2];
        let (mut none, mut wrong, mut sum) = (0.0, 0.0, 0.0);
        for seed in 0..runs() as u64 {
            let mut receiver = Receiver::new(noise.1, noise.2, seed);
            let first = truth / below * (0.8 + 0.4 * receiver.dice.random::<f64>());
            let (goal, fresh) = QUICK;
            let limit = Some(20.0);
            let plan =
                SearchPlan { goal, fresh, first, lowest: first / 50.0, most: 1e3, time_s: limit };
            match by_plan(plan, LOSS, &mut receiver).0.bounds().lower {
                None => none += 1.0,
                Some(lower) => {
                    sum += lower / truth;
                    wrong += f64::from(u8::from(fails(&holds, lower) > 0.6));
                }
            }
        }
        let count = runs() as f64;
        let mean = sum / (count - none);
        println!("{}, 1/{below}: none {none}, wrong {wrong}, mean {mean:.3} of {count}", noise.0);
        // A climb from far below leaves little time. Without haste it is 17 to 28 % on a noisy machine.
        let most = if below > 1.0 { 0.12 } else { 0.02 };
        assert!(none / count <= at_most(most), "{noise:?}: {none} of {count} know nothing");
        assert!(wrong / count <= at_most(0.05), "{noise:?}: {wrong} of {count} fail");
        assert!(mean > 0.75, "{noise:?}: {mean}");
    }
}
