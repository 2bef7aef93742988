//! Do all trials of a variant name the same limit?

use std::collections::BTreeMap;

use rxpath_stats::quantile;

use crate::manifest::Trial;
use crate::verdict::{Agreement, DiagnosisVerdict, Stage};

/// The verdict that most trials have, and how many. Of equally many, the one of the trial nearest to the median.
pub fn agreed(
    judged: &[(&Trial, DiagnosisVerdict)],
    main: &str,
) -> Option<(DiagnosisVerdict, Agreement)> {
    let mut counts: BTreeMap<Stage, u32> = BTreeMap::new();
    for (_, verdict) in judged {
        *counts.entry(verdict.stage).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    let trials: Vec<&Trial> = judged.iter().map(|(trial, _)| *trial).collect();
    let middle = median(&trials, main)?;
    let said = judged.iter().filter(|(_, verdict)| counts[&verdict.stage] == most);
    let (trial, verdict) = said.min_by(|a, b| {
        let distance = |trial: &Trial| (value(trial, main) - middle).abs();
        distance(a.0).total_cmp(&distance(b.0))
    })?;
    counts.remove(&verdict.stage);
    let agreement = Agreement {
        trials_count: judged.len() as u32,
        same_count: most,
        trial: trial.trial,
        others: counts,
    };
    let confidence = agreement.limit(verdict.confidence);
    Some((DiagnosisVerdict { confidence, ..verdict.clone() }, agreement))
}

/// The trial whose metric is nearest to the median of all.
pub fn median_trial<'a>(trials: &[&'a Trial], metric: &str) -> Option<&'a Trial> {
    let middle = median(trials, metric)?;
    let distance = |trial: &Trial| (value(trial, metric) - middle).abs();
    trials.iter().copied().min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

fn median(trials: &[&Trial], metric: &str) -> Option<f64> {
    quantile::median(&trials.iter().map(|trial| value(trial, metric)).collect::<Vec<_>>())
}

fn value(trial: &Trial, metric: &str) -> f64 {
    trial.metrics.get(metric).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Confidence;

    /// Trials with these rates and stages, each with strong evidence.
    fn judged(of: &[(f64, Stage)]) -> (Vec<Trial>, Vec<DiagnosisVerdict>) {
        let each = of.iter().enumerate().map(|(at, (rate, stage))| {
            let metrics = [("delivered_pps".to_owned(), *rate)].into();
            let trial = Trial { trial: at as u32, metrics, ..Trial::default() };
            let verdict = DiagnosisVerdict {
                stage: *stage,
                cpu: None,
                confidence: Confidence::Strong,
                sentence: format!("trial {at}"),
                evidence: Vec::new(),
                remedies: Vec::new(),
                check_rules: Vec::new(),
                next: Vec::new(),
                paired_trial: None,
            };
            (trial, verdict)
        });
        each.unzip()
    }

    fn of(each: &[(f64, Stage)]) -> Option<(DiagnosisVerdict, Agreement)> {
        let (trials, verdicts) = judged(each);
        agreed(&trials.iter().zip(verdicts).collect::<Vec<_>>(), "delivered_pps")
    }

    #[test]
    fn the_stage_of_most_trials_is_the_verdict_and_the_others_are_counted() {
        use Stage::{Application, Ring, Sender};
        // The median trial says something else than most.
        let each = [
            (1.0, Application),
            (2.0, Application),
            (3.0, Ring),
            (4.1, Application),
            (9.0, Sender),
        ];
        let (verdict, agreement) = of(&each).unwrap();
        assert_eq!((verdict.stage, agreement.trial), (Application, 1));
        assert_eq!((agreement.same_count, agreement.trials_count), (3, 5));
        assert_eq!(agreement.text(), "3 of 5 trials; 1: sender, 1: device ring");
        assert_eq!(verdict.confidence, Confidence::Fair, "three of five are not strong");
    }

    #[test]
    fn equally_many_are_decided_by_the_median_trial_and_are_weak() {
        use Stage::{Application, Ring};
        let (verdict, _) =
            of(&[(1.0, Ring), (5.0, Application), (5.1, Application), (9.0, Ring)]).unwrap();
        assert_eq!((verdict.stage, verdict.confidence), (Application, Confidence::Weak));
    }

    #[test]
    fn four_of_five_and_a_single_trial_keep_their_confidence() {
        use Stage::{Ring, Sender};
        let (four, _) =
            of(&[(1.0, Ring), (1.0, Ring), (1.0, Ring), (1.0, Ring), (1.0, Sender)]).unwrap();
        let (one, agreement) = of(&[(1.0, Ring)]).unwrap();
        assert_eq!((four.confidence, one.confidence), (Confidence::Strong, Confidence::Strong));
        assert_eq!(agreement.text(), "1 of 1 trials");
        assert_eq!(of(&[]), None);
    }
}
