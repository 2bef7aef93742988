//! After the arrays: candidates that disturb, the confirmation, each setting's own contribution, and the result.

use rand::seq::SliceRandom;
use rxpath_core::SortFew;
use rxpath_stats::paired::Paired;
use rxpath_stats::student::two_sided;
use rxpath_stats::{ConfidenceInterval, Looks};

use super::candidate::Candidate;
use super::keeping::Unmade;
use super::level::level;
use super::measure::{Broke, Phase};
use super::pairs::{Ask, FEWEST_PAIRS, Shown, estimate};
use super::report::{AutoOutcome, AutoResult, Dropped, Gain, GuardShown, Kept, Ratio, Why};
use super::searching::{Searching, State};
use super::tally::Effect;

/// Pairs of the confirmation, at most.
pub const MOST_PAIRS: usize = 60;
/// Pairs of a candidate that disturbs, at most, and how many such candidates are tried.
const SLOW_PAIRS: usize = 12;
const MOST_SLOW: usize = 3;
/// The share of the error that they have.
const SLOW_ERROR: f64 = 0.02;
/// Blocks in which each kept setting is left out once.
const FEWEST_BLOCKS: usize = 5;
const MOST_BLOCKS: usize = 20;
/// A setting whose contribution is under this, and shown to be, is redundant.
const REDUNDANT: f64 = 0.005;
/// A candidate is likely if it probably gains, by at least this.
const LIKELY: (f64, f64) = (0.8, 0.005);
/// Quantile of the normal distribution for a power of 80 %.
const POWER: f64 = 0.84;

impl Searching<'_> {
    pub(super) fn finish(&mut self) -> Result<AutoOutcome, Unmade> {
        self.slow()?;
        let repaired = self.repairs()?;
        if self.has_stopped() {
            return Ok(self.undo(AutoOutcome::Unsafe));
        }
        if self.plan.bundle {
            self.bundle()?;
        }
        if self.on().is_empty() {
            self.step(Phase::Array, "nothing is proven".into());
            return Ok(AutoOutcome::NothingProven);
        }
        match self.confirm_with(repaired)? {
            Shown::Better => {}
            Shown::NotBetter => return Ok(self.undo(AutoOutcome::NotConfirmed)),
            Shown::Guard(_) => return Ok(self.undo(AutoOutcome::GuardNotShown)),
            Shown::Broke(_) => return Ok(self.undo(AutoOutcome::Unsafe)),
        }
        self.contributions()?;
        Ok(AutoOutcome::Kept)
    }

    /// Nothing of what is proven is kept.
    pub(super) fn undo(&mut self, ended: AutoOutcome) -> AutoOutcome {
        for candidate in self.on() {
            self.state[candidate] = State::Out(Why::NotConfirmed);
        }
        ended
    }

    /// Candidates that recreate queues or lose the link, each by pairs against what is proven.
    fn slow(&mut self) -> Result<(), Unmade> {
        let mut slow = self.open(true);
        slow.sort_few_by(|a, b| self.weight(*b).total_cmp(&self.weight(*a)));
        for (tried, candidate) in slow.into_iter().enumerate() {
            let most = self.pairs_left(SLOW_PAIRS);
            if tried >= MOST_SLOW || most < FEWEST_PAIRS {
                self.state[candidate] = State::Out(Why::NotTried);
                continue;
            }
            let on = self.on();
            let with: Vec<usize> = on.iter().copied().chain([candidate]).collect();
            let ask = Ask { phase: Phase::Slow, most, error: SLOW_ERROR };
            let (shown, _) = self.pairs(&on, &with, ask)?;
            self.state[candidate] = match shown {
                Shown::Better => State::Proven,
                Shown::NotBetter => State::Out(Why::NoGainShown),
                Shown::Guard(at) => State::Out(Why::Harms(self.plan.guards[at].text.clone())),
                Shown::Broke(broke) => State::Out(broke.into()),
            };
        }
        Ok(())
    }

    /// What is likely together, if it is better than what is proven alone.
    fn bundle(&mut self) -> Result<(), Unmade> {
        let likely = |at: &usize| {
            self.objective.effect(*at).is_some_and(|effect| {
                let (mean, spread) =
                    self.plan.candidates[*at].prior.after(effect.value, effect.error);
                rxpath_stats::student::normal_cdf(mean / spread) > LIKELY.0 && mean > LIKELY.1
            })
        };
        let likely: Vec<usize> = self.open(false).into_iter().filter(likely).collect();
        // The confirmation needs its pairs after this.
        let most = (self.measure.left().saturating_sub(20) / 2).min(MOST_PAIRS);
        if likely.is_empty() || most < FEWEST_PAIRS {
            return Ok(());
        }
        let on = self.on();
        let with: Vec<usize> = on.iter().copied().chain(likely.iter().copied()).collect();
        let ask = Ask { phase: Phase::Confirm, most, error: 0.05 };
        let (shown, _) = self.pairs(&on, &with, ask)?;
        if shown == Shown::Better {
            for candidate in likely {
                self.state[candidate] = State::Bundled;
            }
            self.step(Phase::Confirm, "what is likely is better together".into());
        }
        Ok(())
    }

    /// Pairs that still fit, at most so many.
    fn pairs_left(&self, most: usize) -> usize {
        (self.measure.left() / 2).min(most)
    }

    /// The same, without the repairs where they do not go with what is proven: each was better alone.
    fn confirm_with(&mut self, repaired: Vec<usize>) -> Result<Shown, Unmade> {
        let shown = self.confirm()?;
        let are_alone = self.on().len() == repaired.len();
        let may_go_on = self.pairs_left(MOST_PAIRS) >= FEWEST_PAIRS && !self.has_stopped();
        if shown == Shown::Better || repaired.is_empty() || are_alone || !may_go_on {
            return Ok(shown);
        }
        for candidate in repaired {
            self.state[candidate] = State::Out(Why::NotConfirmed);
        }
        self.confirm()
    }

    /// Fresh pairs of the start and everything that is on.
    fn confirm(&mut self) -> Result<Shown, Unmade> {
        let ask = Ask { phase: Phase::Confirm, most: self.pairs_left(MOST_PAIRS), error: 0.05 };
        let on = self.on();
        let (shown, pairs) = self.pairs(&[], &on, ask)?;
        let text = match &shown {
            Shown::Better => format!("confirmed on {} fresh pairs", pairs.objective.len()),
            Shown::NotBetter => "fresh pairs do not confirm it".into(),
            Shown::Guard(at) => format!("{} is not shown to hold", self.plan.guards[*at].text),
            Shown::Broke(Broke::Limit(what) | Broke::Stopped(what) | Broke::Refused(what)) => {
                what.clone()
            }
        };
        self.step(Phase::Confirm, text);
        self.confirmed = Some((ask, pairs));
        Ok(shown)
    }

    /// Leaves each kept setting out in turn. One that is shown to contribute nothing is taken off, if the rest is
    /// confirmed without it. No more than one: two may each be redundant only while the other is on.
    fn contributions(&mut self) -> Result<(), Unmade> {
        let on = self.on();
        if on.len() < 2 {
            return Ok(());
        }
        let left = self.measure.left();
        let wanted = left.saturating_sub(2 * FEWEST_PAIRS) / (on.len() + 1);
        let blocks = if wanted >= FEWEST_BLOCKS { wanted } else { left / (on.len() + 1) };
        let blocks = blocks.min(MOST_BLOCKS);
        if blocks < FEWEST_BLOCKS {
            return Ok(());
        }
        let mut losses = vec![Vec::new(); on.len()];
        for number in 0..blocks {
            // 0 leaves none out.
            let mut order: Vec<usize> = (0..=on.len()).collect();
            order.shuffle(&mut self.dice);
            let mut values = vec![0.0; order.len()];
            for left_out in order {
                let mut set = on.clone();
                if left_out > 0 {
                    set.remove(left_out - 1);
                }
                values[left_out] = self.trial(&set, Phase::Contribution, number)?.objective;
            }
            for (losses, without) in losses.iter_mut().zip(&values[1..]) {
                losses.push(values[0] - without);
            }
        }
        let looks = Looks::Once { blocks };
        let at = |values: &Vec<f64>, error| Some(Paired::of(values)?.at(looks.level(error)));
        let contribution = |(at_on, values): (&usize, &Vec<f64>)| Some((*at_on, at(values, 0.05)?));
        self.contributed = on.iter().zip(&losses).filter_map(contribution).collect();
        let least = on
            .iter()
            .zip(&losses)
            .filter_map(|(candidate, values)| Some((*candidate, at(values, 0.10)?.interval.high)))
            .filter(|(_, high)| *high < REDUNDANT)
            // Of two that hide each other the one stays that repairs something, unless it is shown to do harm.
            .min_by(|a, b| {
                let stays = |it: &(usize, f64)| it.1 >= 0.0 && self.plan.candidates[it.0].repairs;
                stays(a).cmp(&stays(b)).then(a.1.total_cmp(&b.1))
            });
        match least {
            Some((candidate, _)) => self.without(candidate),
            None => Ok(()),
        }
    }

    /// Takes one setting off, if the rest is confirmed without it.
    fn without(&mut self, candidate: usize) -> Result<(), Unmade> {
        if self.pairs_left(MOST_PAIRS) < FEWEST_PAIRS {
            return Ok(());
        }
        let was = (self.state[candidate].clone(), self.confirmed.take());
        self.state[candidate] = State::Out(Why::Redundant);
        let text = format!("{} contributes nothing next to the others", self.name(candidate));
        self.step(Phase::Contribution, text);
        if self.confirm()? != Shown::Better {
            (self.state[candidate], self.confirmed) = was;
        }
        Ok(())
    }

    /// The result of a search that ended before it decided.
    pub(super) fn cut_short(mut self) -> AutoResult {
        for state in &mut self.state {
            if !matches!(state, State::Out(_)) {
                *state = State::Out(Why::NotDecided);
            }
        }
        self.into_result(AutoOutcome::CutShort)
    }

    /// The result of a search that ended so.
    pub(super) fn into_result(self, ended: AutoOutcome) -> AutoResult {
        let all = || self.plan.candidates.iter().enumerate();
        let kept = all().filter_map(|(at, candidate)| self.kept(at, candidate)).collect();
        let mut dropped: Vec<Dropped> =
            all().filter_map(|(at, candidate)| self.dropped(at, candidate)).collect();
        dropped.sort_few_by(|a, b| {
            let size = |it: &Dropped| it.effect.map_or(0.0, |it| self.plan.sign * it.ratio.ln());
            size(b).total_cmp(&size(a))
        });
        let noise = self.objective.noise();
        AutoResult {
            ended,
            kept,
            gain: self.gain().filter(|_| ended == AutoOutcome::Kept),
            guards: self.guards_shown(),
            dropped,
            trials_count: self.trials,
            // The effect of a block of n trials has the variance 4 s^2 / n.
            trial_noise_ratio: noise.map(|(unit, _)| (unit / 4.0).sqrt().exp_m1()),
            smallest_effect_ratio: self.smallest_effect(),
            path: self.path,
        }
    }

    fn ratio(&self, effect: Effect) -> Ratio {
        let (value, half) = (effect.value, effect.half(level(self.blocks.1, 0.05)));
        let interval = ConfidenceInterval { low: value - half, high: value + half };
        Ratio::of(value, interval, self.plan.sign)
    }

    fn kept(&self, at: usize, candidate: &Candidate) -> Option<Kept> {
        let as_bundle = match self.state[at] {
            State::Proven => false,
            State::Bundled => true,
            State::Open | State::Out(_) => return None,
        };
        let own = self.contributed.iter().find(|(other, _)| *other == at);
        let own = own.map(|(_, it)| Ratio::of(it.value, it.interval, self.plan.sign));
        let alone = || Some(self.gain().filter(|_| self.on().len() == 1)?.ratio);
        Some(Kept {
            name: candidate.name.clone(),
            sets: candidate.sets.clone(),
            because: candidate.because.clone(),
            prior: candidate.prior,
            risk: candidate.risk,
            search: self.objective.effect(at).map(|effect| self.ratio(effect)),
            contribution: own.or_else(alone),
            as_bundle,
        })
    }

    fn dropped(&self, at: usize, candidate: &Candidate) -> Option<Dropped> {
        let why = match &self.state[at] {
            State::Out(why) => why.clone(),
            State::Open if self.objective.blocks(at) == 0 => Why::NotTried,
            State::Open => Why::NoGainShown,
            State::Proven | State::Bundled => return None,
        };
        let effect = self.objective.effect(at);
        let to_prove = effect.filter(|_| why == Why::NoGainShown);
        Some(Dropped {
            name: candidate.name.clone(),
            sets: candidate.sets.clone(),
            why,
            effect: effect.map(|effect| self.ratio(effect)),
            trials_for_proof: to_prove.and_then(|effect| self.for_proof(effect)),
        })
    }

    /// More trials after which an effect of this size would probably be proven.
    fn for_proof(&self, effect: Effect) -> Option<u64> {
        let limit = self.limit();
        let unit = effect.error * effect.error * effect.weight;
        let trials = unit * (limit / effect.value).powi(2);
        let is_one = effect.value > effect.error && trials.is_finite();
        is_one.then(|| (trials - effect.weight).max(0.0).ceil() as u64)
    }

    /// Standard errors that an effect must have to be probably proven, of the strictest test.
    fn limit(&self) -> f64 {
        let error = self.plan.error / self.plan.candidates.len().max(1) as f64;
        two_sided(level(self.blocks.1, 2.0 * error), 1e6) + POWER
    }

    fn smallest_effect(&self) -> Option<f64> {
        let (unit, _) = self.objective.noise()?;
        let (_, most) = self.blocks;
        let open = self.plan.candidates.iter().filter(|candidate| !candidate.risk.is_slow());
        let trials = most * super::array::runs(open.count());
        Some((self.limit() * (unit / trials.max(1) as f64).sqrt()).exp_m1())
    }

    fn gain(&self) -> Option<Gain> {
        let (ask, pairs) = self.confirmed.as_ref()?;
        let gain = pairs.gain(*ask)?;
        let ratio = Ratio::of(gain.value, gain.interval, self.plan.sign);
        Some(Gain { ratio, pairs_count: pairs.objective.len() })
    }

    fn guards_shown(&self) -> Vec<GuardShown> {
        let Some((ask, pairs)) = &self.confirmed else { return Vec::new() };
        let one = |(at, guard): (usize, &super::MetricGuard)| {
            let found = estimate(&pairs.guards[at], *ask);
            let sign = if guard.good == rxpath_stats::scale::Good::Up { -1.0 } else { 1.0 };
            GuardShown {
                guard: guard.text.clone(),
                metric: guard.metric.clone(),
                ratio: found.map(|it| Ratio::of(it.value, it.interval, sign)),
                holds: found.is_some_and(|it| it.interval.high <= self.margins[at]),
                broken: found.is_some_and(|it| it.interval.low > self.margins[at]),
            }
        };
        self.plan.guards.iter().enumerate().map(one).collect()
    }
}
