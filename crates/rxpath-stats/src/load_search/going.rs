//! Which load is next, and when a phase is over.

use super::{
    BRACKET, FRESH_FAILURES, Fresh, LoadSearch, Next, OUTWARD, Phase, SHORTS, SearchEnd,
    SearchStep, is_same,
};
use crate::load_class::{Class, LoadTrials, SearchGoal};

/// The longest trial of the climb. **Unit** s.
const SHORT: f64 = 1.0;
/// Bounds may be wider than asked by rounding.
const ROUNDING: f64 = 1e-9;
/// The time is short when it leaves so many loads to classify at their longest.
const CLASSES_IN_HASTE: f64 = 2.0;
/// A load below this share of what failed is likely to hold.
const SURE: f64 = 0.8;
/// A load that was tried is taken for another one down to this share of it.
const NEAR: f64 = 0.9;
/// Trials of the climb that are expected before it began: doublings.
const DOUBLINGS: f64 = 6.0;

impl SearchGoal {
    /// Length of a trial of the climb. **Unit** s.
    pub(super) fn short_s(&self) -> f64 {
        (self.final_s / 3.0).min(SHORT)
    }
}

impl LoadSearch {
    /// The next trial of this phase; `None` when the phase or the search has changed.
    pub(super) fn due(&mut self) -> Option<Next> {
        let final_s = self.plan.goal.final_s;
        let (rate, seconds, step) = match self.phase {
            Phase::Climb => (self.climb()?, self.plan.goal.short_s(), SearchStep::Climb),
            Phase::Narrow => (self.narrow()?, final_s, SearchStep::Narrow),
            Phase::Classify { at } => {
                let rate = match at.filter(|at| self.class(*at) == Class::Undecided) {
                    Some(at) => at,
                    None => self.choose()?,
                };
                self.phase = Phase::Classify { at: Some(rate) };
                (rate, final_s, SearchStep::Classify)
            }
            Phase::Confirm(fresh) => (fresh.rate, final_s, SearchStep::Confirm),
        };
        Some(Next { rate, seconds, step })
    }

    fn climb(&mut self) -> Option<f64> {
        let plan = &self.plan;
        self.phase = match (self.good, self.over) {
            (None, None) => return Some(plan.first.clamp(plan.lowest, plan.most)),
            (Some(good), None) if good < plan.most => return Some((good * 2.0).min(plan.most)),
            (None, Some(over)) if over > plan.lowest => {
                return Some((over / 2.0).max(plan.lowest));
            }
            (Some(_), Some(_)) => Phase::Narrow,
            // The most that is allowed was good, or the lowest was not.
            _ => Phase::Classify { at: None },
        };
        None
    }

    /// A load fails the climb when most of up to three trials fail: a trial is short, and one wrong bracket costs many.
    pub(super) fn climbed(&mut self, rate: f64, is_good: bool) {
        self.climbed[usize::from(!is_good)] += 1;
        match self.climbed {
            [_, 0] | [2, _] => self.bracket(rate, true),
            [_, 2] => self.bracket(rate, false),
            _ => return,
        }
        self.climbed = [0; 2];
    }

    pub(super) fn bracket(&mut self, rate: f64, is_good: bool) {
        if is_good {
            self.good = Some(rate);
        } else {
            self.over = Some(rate);
        }
    }

    fn narrow(&mut self) -> Option<f64> {
        let (good, over) = (self.good?, self.over?);
        if over / good > BRACKET {
            return Some((good * over).sqrt());
        }
        self.phase = Phase::Classify { at: None };
        None
    }

    /// The next load to classify; `None` when the bounds are as close as asked, or the search has ended.
    fn choose(&mut self) -> Option<f64> {
        let plan = self.plan;
        let (lower, upper) = (self.lower(), self.upper());
        let roof = upper.into_iter().chain(self.ceiling).reduce(f64::min);
        if let Some(sure) = self.sure_in_haste(lower) {
            return Some(sure);
        }
        match (lower, roof) {
            (None, Some(roof)) if roof <= plan.lowest => self.end_with(SearchEnd::LowestFails),
            (None, roof) => {
                let below = roof.unwrap_or(f64::INFINITY);
                let single = self.good.filter(|good| *good < below && !is_same(*good, below));
                let lowest_is_next = self.good.is_none() && roof.is_none();
                let next = match (single, roof) {
                    (Some(good), _) if self.class(good) == Class::Undecided => good,
                    _ if lowest_is_next => plan.lowest,
                    (_, Some(roof)) => roof / (1.0 + self.step_outward()),
                    (_, None) => plan.lowest,
                };
                Some(next.max(plan.lowest))
            }
            (Some(lower), None) if lower >= plan.most * (1.0 - ROUNDING) => self.confirm(lower),
            (Some(lower), None) => {
                let single = self.good.filter(|good| *good > lower && !is_same(*good, lower));
                Some(single.unwrap_or_else(|| lower * (1.0 + self.step_outward())).min(plan.most))
            }
            (Some(lower), Some(roof)) => {
                let width = plan.goal.width_ratio;
                if roof / lower <= 1.0 + width + ROUNDING {
                    return self.confirm(lower);
                }
                Some((lower * roof).sqrt().max(lower * (1.0 + width / 2.0)))
            }
        }
    }

    /// The load that is most likely to become a lower bound, while none is known and the time is short: one that was good
    /// well below what failed. A search that the time ends among loads near the capacity knows nothing.
    fn sure_in_haste(&self, lower: Option<f64>) -> Option<f64> {
        let goal = &self.plan.goal;
        let left_s = self.plan.time_s? - self.elapsed_s;
        let a_class_s = (goal.sum_s / goal.final_s).ceil() * self.cost_s(goal.final_s);
        if lower.is_some() || left_s > CLASSES_IN_HASTE * a_class_s {
            return None;
        }
        // One of several trials may be disturbed.
        let is_bad = |load: &&LoadTrials| {
            let bad_s = load.seconds(false);
            bad_s > 0.0 && bad_s >= load.seconds(true)
        };
        let bad = self.loads.iter().filter(is_bad).map(|load| load.rate).chain(self.ceiling);
        let bad = bad.reduce(f64::min).filter(|bad| *bad > self.plan.lowest)?;
        let sure = (SURE * bad).max(self.plan.lowest);
        // One that was tried near it needs fewer trials.
        let near = self.loads.iter().map(|load| load.rate);
        let near = near.filter(|rate| *rate < SURE * bad && *rate > NEAR * sure);
        near.reduce(f64::max).or(Some(sure))
    }

    fn step_outward(&mut self) -> f64 {
        let step = self.outward;
        self.outward *= 1.5;
        step
    }

    fn end_with(&mut self, end: SearchEnd) -> Option<f64> {
        self.end = Some(end);
        None
    }

    /// Fresh trials at this lower bound, where the plan has any.
    fn confirm(&mut self, lower: f64) -> Option<f64> {
        if self.plan.fresh == 0 {
            return self.end_with(self.natural_end());
        }
        self.phase = Phase::Confirm(Fresh { rate: lower, ..Fresh::default() });
        None
    }

    /// How a search ends whose lower bound is confirmed.
    fn natural_end(&self) -> SearchEnd {
        match (self.upper(), self.ceiling) {
            (Some(_), _) => SearchEnd::Found,
            (None, Some(_)) => SearchEnd::SenderLimited,
            (None, None) => SearchEnd::MostHolds,
        }
    }

    /// Ends as soon as the trials left cannot change the answer.
    pub(super) fn confirmed(&mut self, mut fresh: Fresh, is_good: bool) {
        fresh.good += u32::from(is_good);
        fresh.bad += u32::from(!is_good);
        let may_be_bad = f64::from(self.plan.fresh) * self.plan.goal.exceed_ratio + ROUNDING;
        self.phase = Phase::Confirm(fresh);
        if f64::from(fresh.bad) > may_be_bad {
            self.fresh_failures += 1;
            self.fresh_upper = Some(fresh.rate);
            let rate = fresh.rate / (1.0 + self.plan.goal.width_ratio);
            if rate < self.plan.lowest || self.fresh_failures == FRESH_FAILURES {
                self.end = Some(SearchEnd::FreshFailed);
            } else {
                self.phase = Phase::Confirm(Fresh { rate, ..Fresh::default() });
            }
        } else if f64::from(self.plan.fresh - fresh.good) <= may_be_bad {
            self.end = Some(self.natural_end());
        }
    }

    /// A load that the sender does not reach is no bound of the receiver, and nothing above it need be tried.
    pub(super) fn fell_short(&mut self, now: Next) {
        self.shorts_in_row += 1;
        if self.shorts_in_row < SHORTS {
            return;
        }
        (self.shorts_in_row, self.climbed) = (0, [0; 2]);
        let ceiling = self.ceiling.map_or(now.rate, |ceiling| ceiling.min(now.rate));
        self.ceiling = Some(ceiling);
        match self.phase {
            Phase::Climb | Phase::Narrow => {
                self.over = Some(now.rate);
                if now.rate <= self.plan.lowest {
                    self.end = Some(SearchEnd::SenderLimited);
                }
            }
            Phase::Classify { .. } => self.phase = Phase::Classify { at: None },
            // It was reached before: the machine has changed.
            Phase::Confirm(fresh) => self.confirmed(fresh, false),
        }
    }

    /// What a trial of this length takes with everything around it. **Unit** s.
    pub(super) fn cost_s(&self, seconds: f64) -> f64 {
        let around = if self.trials == 0 {
            0.0
        } else {
            (self.elapsed_s - self.planned_s) / f64::from(self.trials)
        };
        seconds + around.max(0.0)
    }

    /// Expected time to the end, or to the time limit. An estimate: the search does not know what it will find.
    pub fn to_go_s(&self) -> f64 {
        let goal = &self.plan.goal;
        let per_load = (0.8 * goal.sum_s / goal.final_s).max(1.0);
        let halvings = |from: f64, to: f64| (from.ln() / to.ln()).log2().max(0.0).ceil();
        let fresh = f64::from(self.plan.fresh) * 0.7;
        let all_classes = (halvings(BRACKET, 1.0 + goal.width_ratio) + 2.0) * per_load;
        let (short, full) = match self.phase {
            Phase::Climb => {
                let climbed = (self.good.unwrap_or(self.plan.first) / self.plan.first).log2();
                let ahead = (DOUBLINGS - climbed).max(1.0);
                (ahead, halvings(2.0, BRACKET) + all_classes + fresh)
            }
            Phase::Narrow => {
                let wide = self.over.zip(self.good).map_or(2.0, |(over, good)| over / good);
                (0.0, halvings(wide, BRACKET) + all_classes + fresh)
            }
            Phase::Classify { .. } => (0.0, self.classes_ahead(per_load) + fresh),
            Phase::Confirm(at) => (0.0, (fresh - f64::from(at.good + at.bad)).max(1.0)),
        };
        let ahead = short * self.cost_s(goal.short_s()) + full * self.cost_s(goal.final_s);
        let left = self.plan.time_s.map_or(f64::INFINITY, |limit| limit - self.elapsed_s);
        if self.end.is_some() { 0.0 } else { ahead.min(left).max(0.0) }
    }

    /// Trials until the bounds are as close as asked, with so many for each load.
    fn classes_ahead(&self, per_load: f64) -> f64 {
        let wide = match (self.lower(), self.upper()) {
            (Some(lower), Some(upper)) => upper / lower,
            _ => 1.0 + 2.0 * OUTWARD,
        };
        let more = (wide.ln() / self.plan.goal.width_ratio.ln_1p()).log2().max(0.0).ceil();
        (more + f64::from(u8::from(self.lower().is_none()))) * per_load + 1.0
    }
}
