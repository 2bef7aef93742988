//! The end of a run: its settings are undone, and the manifest says how it ended.

use jiff::Timestamp;
use rxpath_core::Warning;
use rxpath_record::event::What;
use rxpath_record::manifest::Status;

use super::{FinishedRun, Running, disturbed, headline, steadiness, summary};
use crate::error::LabError;
use crate::hosts::Hosts;
use crate::predict;

/// Code of the warning about settings that may still be in force.
const NOT_UNDONE: &str = "not-undone";

impl Running<'_> {
    /// Undoes what the last trial left in force, and writes the manifest. The outcome is that of the trials.
    pub(super) fn end(mut self, outcome: Result<(), LabError>) -> Result<FinishedRun, LabError> {
        let undone = self.options.hosts.map_or(Ok(()), Hosts::undo_settings);
        let (outcome, not_undone) = first_error(outcome, undone);
        if let Some(error) = not_undone {
            let text = self.scrubbed(&error);
            self.warn(not_undone_warning(&text))?;
        }
        let (status, how) = match &outcome {
            Ok(()) => (Status::Complete, self.early.unwrap_or("complete")),
            Err(LabError::Interrupted) => (Status::Interrupted, "interrupted"),
            Err(_) => (Status::Failed, "failed"),
        };
        if outcome.is_err() {
            summary::update(&self.resolved, &mut self.manifest);
        }
        // A run that ended early may have lost a host.
        if let Some(hosts) = self.options.hosts.filter(|_| outcome.is_ok()) {
            hosts.note_drift(&mut self.manifest.hosts);
            let warning = hosts.note_path_clocks(&mut self.manifest.hosts, &self.resolved);
            self.manifest.warnings.extend(warning);
        }
        self.manifest.status = status;
        self.manifest.ended = Some(Timestamp::now().to_string());
        self.manifest.warnings.extend(disturbed::counted(&self.manifest));
        self.manifest.warnings.extend(steadiness::warnings(&self.manifest));
        self.times.pool(&mut self.manifest);
        self.manifest.headline = headline::of(&self.manifest);
        if let Some(calibration) = self.options.calibration {
            let predictions = predict::all(&self.resolved, &self.manifest, calibration);
            self.manifest.predictions = predictions;
        }
        if let Err(error) = &outcome {
            let text = self.scrubbed(error);
            self.manifest.warnings.push(Warning::new(how, text));
        }
        self.tell(What::RunEnded { how: how.into() })?;
        let manifest = self.manifest;
        let directory = self.writer.finish(manifest.clone())?;
        Ok(FinishedRun { directory, manifest, error: outcome.err() })
    }

    /// An error in words. It may quote a third-party program.
    fn scrubbed(&mut self, error: &LabError) -> String {
        let text = error.to_string();
        match &mut self.scrubber {
            Some(scrubber) => scrubber.text(&text),
            None => text,
        }
    }
}

impl FinishedRun {
    /// Settings that were not undone when the run ended with an error already.
    pub fn not_undone(&self) -> Option<&Warning> {
        self.manifest.warnings.iter().find(|warning| warning.code == NOT_UNDONE)
    }
}

/// What ends the run as an error; then the error of undoing its settings, if another one ended the run.
fn first_error(
    outcome: Result<(), LabError>,
    undone: Result<(), LabError>,
) -> (Result<(), LabError>, Option<LabError>) {
    match (outcome, undone) {
        (Err(first), Err(not_undone)) => (Err(first), Some(not_undone)),
        (outcome, undone) => (outcome.and(undone), None),
    }
}

fn not_undone_warning(why: &str) -> Warning {
    Warning::new(NOT_UNDONE, format!("a setting was not undone: {why}"))
        .cure("`rxpath tune status` on that host shows what is in force")
}

#[cfg(test)]
mod tests {
    use rxpath_record::manifest::Manifest;

    use super::*;

    fn refused() -> LabError {
        let (host, text) = ("sut".to_owned(), "another tune runs".to_owned());
        LabError::OnHost { host, text, hint: String::new() }
    }

    #[test]
    fn an_error_of_undoing_is_kept_next_to_the_one_that_ended_the_run() {
        let (outcome, not_undone) = first_error(Err(LabError::Interrupted), Err(refused()));
        assert!(matches!(outcome, Err(LabError::Interrupted)));
        let warning = not_undone_warning(&not_undone.unwrap().to_string());
        assert_eq!(warning.text, "a setting was not undone: sut: another tune runs");
        // Alone it ends the run.
        let (outcome, not_undone) = first_error(Ok(()), Err(refused()));
        assert!(matches!(outcome, Err(LabError::OnHost { .. })) && not_undone.is_none());
        let (outcome, not_undone) = first_error(Err(LabError::Interrupted), Ok(()));
        assert!(matches!(outcome, Err(LabError::Interrupted)) && not_undone.is_none());
        let (outcome, not_undone) = first_error(Ok(()), Ok(()));
        assert!(outcome.is_ok() && not_undone.is_none());
    }

    #[test]
    fn a_finished_run_tells_what_was_not_undone() {
        let mut ended =
            FinishedRun { directory: "runs".into(), manifest: Manifest::default(), error: None };
        assert_eq!(ended.not_undone(), None);
        let warning = not_undone_warning("sut: another tune runs");
        ended.manifest.warnings.push(warning.clone());
        assert_eq!(ended.not_undone(), Some(&warning));
    }
}
