//! The end of a run becomes an exit status, with words and a hint for the user.

use rxpath_lab::LabError;
use rxpath_lab::run::FinishedRun;

use crate::cmd::lab_error::status;
use crate::exit::{Exit, Failure, Outcome};

/// A run that has ended, with the signal that ended it, if any.
pub struct Ended {
    pub(super) finished: FinishedRun,
    pub(super) signal: Option<i32>,
    pub(super) keep_noisy: bool,
}

impl std::ops::Deref for Ended {
    type Target = FinishedRun;

    fn deref(&self) -> &FinishedRun {
        &self.finished
    }
}

/// Prints why a run ended early and turns its end into an exit status.
pub fn ending(ended: &Ended) -> Outcome {
    if let Some(warning) = ended.not_undone() {
        crate::output::warning(warning);
    }
    let directory = ended.directory.display();
    if let (Some(signal), None | Some(LabError::Interrupted)) = (ended.signal, &ended.error) {
        let what = match ended.error {
            Some(_) => "the run up to this point is kept in",
            None => "the run had already finished and is complete in",
        };
        crate::note!("rxpath: interrupted; {what} {directory}");
        return Ok(Exit::Signal(signal));
    }
    if let Some(error) = &ended.error {
        let kept = format!("earlier measurements are kept in {directory}");
        let hint = match error {
            LabError::Lost { last_words, .. } | LabError::LostInTrial { last_words, .. }
                if !last_words.is_empty() =>
            {
                format!("its connection said: {last_words}; {kept}")
            }
            other if !other.hint().is_empty() => format!("{}; {kept}", other.hint()),
            _ => kept,
        };
        return Err(Failure::new(status(error), anyhow::anyhow!("{error}")).hint(hint));
    }
    if ended.nothing_counts() || ended.too_noisy() && !ended.keep_noisy {
        if let Some(warning) = ended.gave_up() {
            crate::note!("rxpath: too noisy to conclude: {warning}");
        } else {
            crate::note!(
                "rxpath: too noisy to conclude: every trial of a variant was disturbed by other load, or is void (see the report)"
            );
            if !ended.keep_noisy {
                crate::note!("hint: stop the other load, or count such trials with --keep-noisy");
            }
        }
        return Ok(Exit::Inconclusive);
    }
    Ok(Exit::Done)
}

/// As [`ending`], and whether the run reached a conclusion.
pub fn conclusion(ended: &Ended) -> Outcome {
    let exit = ending(ended)?;
    if exit == Exit::Done && ended.disturbed().is_some() && ended.inconclusive() {
        crate::note!(
            "rxpath: inconclusive: other load disturbed the run, and no comparison was decided"
        );
        return Ok(Exit::Inconclusive);
    }
    Ok(exit)
}
