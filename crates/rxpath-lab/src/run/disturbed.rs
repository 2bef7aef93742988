//! Other load on the machine: when a run gives up because of it, and what a run says that counted disturbed trials.

use rxpath_core::Warning;
use rxpath_record::comparison::Outcome;
use rxpath_record::doubts::{COUNTED, GAVE_UP};
use rxpath_record::manifest::{Grade, Manifest, Trial};

use super::FinishedRun;
use crate::trial::noise;

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

/// Whether a trial counts. One that is void because of its grade alone does where noise is allowed. A window that was missed or a
/// clock that jumped is no noise: such a trial measured something else than it was to.
pub(super) fn counts(trial: &Trial, keep_noisy: bool) -> bool {
    let by_noise_alone = || trial.void == noise::void(trial.grade, &trial.noise);
    trial.void.is_none() || keep_noisy && by_noise_alone()
}

/// Counts a trial that noise alone made void.
pub(super) fn forgive(trial: &mut Trial) {
    if counts(trial, true) {
        trial.void = None;
    }
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

impl FinishedRun {
    /// Whether noise left a variant without a trial, or ended the run.
    pub fn too_noisy(&self) -> bool {
        self.all_of_one(|trial| trial.void.is_some() || trial.grade == Grade::D)
            || self.gave_up().is_some()
    }

    /// Whether all trials of a variant are void.
    pub fn nothing_counts(&self) -> bool {
        self.all_of_one(|trial| trial.void.is_some())
    }

    /// Whether this is so of all trials of a variant that has any.
    fn all_of_one(&self, is_so: impl Fn(&Trial) -> bool) -> bool {
        self.manifest.variants.iter().any(|variant| {
            let of_it = |trial: &&Trial| trial.variant == variant.name;
            let mut all = self.manifest.trials.iter().filter(of_it).peekable();
            all.peek().is_some() && all.all(&is_so)
        })
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
    fn only_noise_is_forgiven() {
        let noise = "other programs took 50.0 % of CPU 1 (most: cc1)";
        let forgiven = |grade, void: &str| {
            let (void, noise) = (Some(void.to_owned()), vec![noise.to_owned()]);
            let mut trial = Trial { void, grade, noise, ..Trial::default() };
            assert!(!counts(&trial, false));
            let does_count = counts(&trial, true);
            forgive(&mut trial);
            assert_eq!((trial.grade, trial.void.is_none()), (grade, does_count));
            does_count
        };
        assert!(forgiven(Grade::D, noise));
        assert!(counts(&Trial::default(), false) && counts(&Trial::default(), true));
        for fault in [
            "start missed by gen1: 31ms late",
            "sut: it missed the begin of its window by 35.5 ms",
            "gen2: its clock jumped by 81.0 ms in the trial",
        ] {
            assert!(!forgiven(Grade::A, fault) && !forgiven(Grade::D, fault), "{fault}");
        }
    }

    #[test]
    fn a_variant_whose_trials_are_all_void_has_none_that_counts() {
        let directory = Path::new("runs").to_owned();
        let mut ended = FinishedRun { directory, manifest: kept(), error: None };
        for trial in &mut ended.manifest.trials {
            (trial.grade, trial.void) = (Grade::D, None);
        }
        assert!(!ended.nothing_counts() && ended.too_noisy());
        let first = ended.manifest.variants[0].name.clone();
        for trial in ended.manifest.trials.iter_mut().filter(|trial| trial.variant == first) {
            trial.void = Some("start missed by gen1: 31ms late".into());
        }
        assert!(ended.nothing_counts());
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
