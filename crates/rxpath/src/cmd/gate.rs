//! Exit status by the verdicts of comparisons, for scripts that accept or refuse a change.

use rxpath_record::comparison::{Comparison, Expectation, MeasuredEffect, Outcome};

use crate::exit::Exit;

/// What fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// Every difference that is worse
    #[default]
    Worse,
    /// Only one that is worse by more than what counts as the same
    ClearWorse,
}

/// The verdict of one comparison of a run: by what the scenario expected of it, if it did.
pub fn expected(comparison: &Comparison, fail_on: FailOn) -> Outcome {
    match comparison.met() {
        Some(Expectation::Confirmed) => Outcome::Better,
        Some(Expectation::Contradicted) => Outcome::Worse,
        Some(Expectation::Undecided) => Outcome::Inconclusive,
        None => word(&comparison.effect, fail_on),
    }
}

/// The verdict of one difference.
pub fn word(effect: &MeasuredEffect, fail_on: FailOn) -> Outcome {
    let is_clear = effect.control.as_ref().is_none_or(|control| control.clears_threshold);
    match effect.outcome {
        Outcome::Worse if fail_on == FailOn::ClearWorse && !is_clear => Outcome::Same,
        word => word,
    }
}

/// The worst verdict: worse, inconclusive, the same, better; of none, inconclusive.
pub fn worst(words: impl IntoIterator<Item = Outcome>) -> Outcome {
    let rank = |word: &Outcome| match word {
        Outcome::Better => 0,
        Outcome::Same => 1,
        Outcome::Inconclusive => 2,
        Outcome::Worse => 3,
    };
    words.into_iter().max_by_key(rank).unwrap_or(Outcome::Inconclusive)
}

/// 0 better or the same, 1 worse, 4 inconclusive.
pub fn exit(worst: Outcome) -> Exit {
    match worst {
        Outcome::Better | Outcome::Same => Exit::Done,
        Outcome::Worse => Exit::Negative,
        Outcome::Inconclusive => Exit::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use rxpath_stats::difference::difference;
    use rxpath_stats::{Looks, Scale};

    use super::*;

    /// A rate that falls to this share of itself, give or take a thousandth.
    fn falls_to(share: f64) -> MeasuredEffect {
        let noise = [0.0, 1e-3, -1e-3, 5e-4, -5e-4, 0.0, 1e-3];
        let pairs: Vec<(f64, f64)> =
            noise.iter().map(|e| (100.0, 100.0 * share * (1.0 + e))).collect();
        let found = difference(&pairs, Scale::Ratio, 0.03, Looks::of(5, 20)).unwrap();
        MeasuredEffect::of(&found, "delivered_pps")
    }

    #[test]
    fn the_worst_verdict_decides_and_a_small_loss_can_be_forgiven() {
        let (same, small, large) = (falls_to(1.0), falls_to(0.97), falls_to(0.5));
        assert_eq!(small.outcome, Outcome::Worse, "{small:?}");
        let status = |effects: &[&MeasuredEffect], fail_on| {
            exit(worst(effects.iter().map(|effect| word(effect, fail_on))))
        };
        assert_eq!(status(&[&same], FailOn::Worse), Exit::Done);
        assert_eq!(status(&[&same, &small], FailOn::Worse), Exit::Negative);
        assert_eq!(status(&[&same, &small], FailOn::ClearWorse), Exit::Done);
        assert_eq!(status(&[&same, &large], FailOn::ClearWorse), Exit::Negative);
        assert_eq!(status(&[], FailOn::Worse), Exit::Inconclusive, "nothing was compared");
    }

    #[test]
    fn an_expectation_decides_where_there_is_one() {
        let status = |falls: f64, expected: Option<&str>| {
            let comparison = Comparison {
                metric: "delivered_pps".into(),
                base: "a".into(),
                variant: "b".into(),
                effect: falls_to(falls),
                pairs_count: 7,
                expected: expected.map(Into::into),
                expectation: None,
                published: None,
            };
            exit(worst([super::expected(&comparison, FailOn::Worse)]))
        };
        assert_eq!(status(0.5, None), Exit::Negative);
        assert_eq!(status(0.5, Some("down")), Exit::Done, "a firewall costs, as published");
        assert_eq!(status(0.5, Some("up")), Exit::Negative);
        assert_eq!(status(1.0, Some("down")), Exit::Negative, "it made no difference");
        assert_eq!(status(1.0, Some("same")), Exit::Done);
    }
}
