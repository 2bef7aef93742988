//! Other load on the machine: when a run gives up because of it, and what a run says that counted disturbed trials.

use rxpath_core::Warning;
use rxpath_record::comparison::Outcome;
use rxpath_record::doubts::{COUNTED, GAVE_UP};
use rxpath_record::manifest::{Grade, Manifest, Trial};

use super::Finished;

/// Void trials in a row after which a run ends: more than one trial and all its repeats.
const IN_A_ROW: usize = 6;
/// Trials from which the share of void ones is looked at.
const ENOUGH: usize = 12;

/// Why it makes no sense to go on: nearly all trials are void.
pub(super) fn hopeless(trials: &[Trial]) -> Option<Warning> {
    let why = |trial: &&Trial| trial.void.is_some() && trial.grade == Grade::D;
    let void = trials.iter().filter(why).count();
    let in_a_row = trials.iter().rev().take_while(why).count();
    // More than two of three.
    let most = trials.len() >= ENOUGH && void * 3 > trials.len() * 2;
    if in_a_row < IN_A_ROW && !most {
        return None;
    }
    let last = trials.iter().rfind(why)?;
    let how = if in_a_row >= IN_A_ROW {
        format!("{in_a_row} trials in a row were void")
    } else {
        format!("{void} of {} trials were void", trials.len())
    };
    let reason = last.void.clone().unwrap_or_default();
    Some(
        Warning::new(GAVE_UP, format!("the run ended early: {how}; the last one because {reason}"))
            .cure("end the other load, or count such trials with --keep-noisy"),
    )
}

/// What to know before trusting a run: its figures are made of trials that other load disturbed.
pub(super) fn counted(manifest: &Manifest) -> Option<Warning> {
    let (noisy, all) = noisy(manifest);
    let last = shown(manifest).rfind(|trial| trial.grade == Grade::D)?;
    let text = format!(
        "this machine was busy: {noisy} of {all} trials that count are of grade D, too noisy to conclude"
    );
    let why = format!("in trial {}, {}", last.trial + 1, last.noise.join("; "));
    Some(Warning::new(COUNTED, text).because(why).cure("end the other load and run it again"))
}

/// Trials of grade D among those that the figures are made of, and how many those are.
pub(super) fn noisy(manifest: &Manifest) -> (usize, usize) {
    let noisy = shown(manifest).filter(|trial| trial.grade == Grade::D).count();
    (noisy, shown(manifest).count())
}

fn shown(manifest: &Manifest) -> impl DoubleEndedIterator<Item = &Trial> {
    manifest.variants.iter().flat_map(|variant| manifest.counted(&variant.name))
}

impl Finished {
    /// Whether noise left a variant without a trial, or ended the run.
    pub fn too_noisy(&self) -> bool {
        let noisy = |name: &str| {
            let mut all =
                self.manifest.trials.iter().filter(|trial| trial.variant == name).peekable();
            all.peek().is_some() && all.all(|trial| trial.void.is_some() || trial.grade == Grade::D)
        };
        self.manifest.variants.iter().any(|variant| noisy(&variant.name))
            || self.gave_up().is_some()
    }

    /// Why it ended early on a machine that disturbed nearly all of its trials.
    pub fn gave_up(&self) -> Option<&Warning> {
        self.manifest.warnings.iter().find(|warning| warning.code == GAVE_UP)
    }

    /// Whether it decided none of its comparisons, or, without one, has only figures that other load disturbed.
    pub fn inconclusive(&self) -> bool {
        match self.manifest.comparisons.as_slice() {
            [] => self.too_noisy(),
            all => all.iter().all(|it| it.effect.outcome == Outcome::Inconclusive),
        }
    }

    /// What it says of disturbed trials that count.
    pub fn disturbed(&self) -> Option<&Warning> {
        self.manifest.warnings.iter().find(|warning| warning.code == COUNTED)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rxpath_record::run::RunReader;

    use super::*;

    fn kept() -> Manifest {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs/recorded-demo");
        RunReader::open(&kept).unwrap().manifest
    }

    fn trials(void: &[bool]) -> Vec<Trial> {
        let like = kept().trials[0].clone();
        let grade = |void: bool| if void { Grade::D } else { Grade::A };
        let why = "other programs took 99.1 % of CPU 0 (most: rawf)";
        let made = |void: &bool| Trial {
            void: void.then(|| why.to_owned()),
            grade: grade(*void),
            ..like.clone()
        };
        void.iter().map(made).collect()
    }

    #[test]
    fn a_run_gives_up_on_a_machine_that_voids_nearly_all_and_says_who() {
        assert_eq!(hopeless(&[]), None);
        assert_eq!(hopeless(&trials(&[true; 5])), None);
        let row = hopeless(&trials(&[false, true, true, true, true, true, true])).unwrap();
        assert!(row.to_string().contains("6 trials in a row") && row.to_string().contains("rawf"));
        let mixed = |n: usize| (0..n).map(|i| i % 5 != 0).collect::<Vec<_>>();
        assert_eq!(hopeless(&trials(&mixed(11))), None);
        let share = hopeless(&trials(&mixed(12))).unwrap().to_string();
        assert!(share.contains("9 of 12 trials were void"), "{share}");
        let half: Vec<bool> = (0..40).map(|i| i % 2 == 0).collect();
        assert_eq!(hopeless(&trials(&half)), None);
    }

    #[test]
    fn disturbed_trials_that_count_are_told() {
        let mut manifest = kept();
        for trial in &mut manifest.trials {
            (trial.grade, trial.void) = (Grade::A, None);
        }
        assert_eq!(counted(&manifest), None);
        let last = manifest.trials.len() - 1;
        manifest.trials[last].grade = Grade::D;
        manifest.trials[last].noise =
            vec!["other programs took 50.0 % of CPU 1 (most: cc1)".into()];
        let text = counted(&manifest).unwrap().to_string();
        assert!(
            text.contains("1 of ") && text.contains("grade D") && text.contains("cc1"),
            "{text}"
        );
        assert!(text.contains(&format!("trial {}", last + 1)), "{text}");
        assert!(
            crate::run::headline::of(&manifest).starts_with("Too noisy to conclude from: 1 of ")
        );
    }
}
