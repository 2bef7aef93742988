//! Variants that cannot run here: known before the run, or once a host refuses what they set.

use std::collections::BTreeSet;

use rxpath_record::event::What;

use super::{Running, as_json};
use crate::error::{LabError, cannot};
use crate::scenario::spec::Resolved;

/// How many variants of a scenario cannot run here, and why; nothing if all can.
///
/// # Errors
/// [`LabError::CannotRun`] if too few remain to compare anything.
pub fn left_out(resolved: &Resolved) -> Result<Option<String>, LabError> {
    let reasons: BTreeSet<&str> =
        resolved.variants.iter().filter_map(|it| it.not_available.as_deref()).collect();
    if reasons.is_empty() {
        return Ok(None);
    }
    let all = resolved.variants.len();
    let missing = resolved.variants.iter().filter(|it| it.not_available.is_some()).count();
    let reasons = reasons.into_iter().collect::<Vec<_>>().join("; ");
    let text = format!("{missing} of {all} variants not available: {reasons}");
    if missing == all || resolved.compare.is_empty() {
        let hint = format!("rxpath run {} --dry-run shows what each variant needs", resolved.name);
        return Err(cannot(format!("{text}: nothing is left to compare"), hint));
    }
    Ok(Some(text))
}

impl Running<'_> {
    /// Leaves a variant out from now on, and its comparisons; its trial has begun and is void.
    ///
    /// # Errors
    /// As [`left_out`].
    pub(super) fn leave_out(&mut self, name: &str, why: String) -> Result<(), LabError> {
        let trial = self.next_trial.saturating_sub(1);
        self.tell(What::TrialEnded { trial, void: Some(why.clone()) })?;
        self.progress.found(&format!("{name} is not available: {why}"));
        self.resolved.leave_out(name, &why);
        self.manifest.resolved = as_json("scenario", &self.resolved)?;
        left_out(&self.resolved).map(drop)
    }

    /// Why a variant is not available, as a run directory keeps it: a probe names addresses. Another error as it is.
    pub(super) fn without_addresses(&mut self, error: LabError) -> LabError {
        match (error, &mut self.scrubber) {
            (LabError::NotAvailable { why }, Some(scrubber)) => {
                LabError::NotAvailable { why: scrubber.name(&why) }
            }
            (other, _) => other,
        }
    }

    /// Leaves out the variant whose capacity was searched, and searches that of the next one.
    ///
    /// # Errors
    /// As [`left_out`], and those of the search.
    pub(super) fn find_without(&mut self, name: &str, why: String) -> Result<(), LabError> {
        self.manifest.capacity = None;
        self.leave_out(name, why)?;
        self.find_capacity()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use rxpath_host::lab::capture::scrub::Scrubber;
    use rxpath_record::manifest::Manifest;
    use rxpath_record::run::RunWriter;

    use super::super::Options;
    use super::super::progress::Progress;
    use super::super::times::Times;
    use super::*;
    use crate::scenario::{HostShape, parse, resolve};

    /// Shows nothing.
    struct Silent;

    impl Progress for Silent {}

    #[test]
    fn a_search_too_gets_the_reason_of_a_variant_without_the_address_of_a_host() {
        let (base, stop, exe) =
            (tempfile::tempdir().unwrap(), AtomicBool::new(false), Path::new("x"));
        let options = Options {
            base: base.path(),
            exe,
            command: Vec::new(),
            version: "0",
            keep_noisy: false,
            witness: false,
            patience: Duration::ZERO,
            without_root: None,
            stop: &stop,
            hosts: None,
            calibration: None,
        };
        let file = parse("question = \"?\"\n", "t", "t").unwrap();
        let addresses = BTreeMap::from([("10.78.3.2".parse().unwrap(), "sut".to_owned())]);
        let mut running = Running {
            resolved: resolve(&file, &[], &HostShape::flat(2)).unwrap(),
            options: &options,
            owner: None,
            writer: RunWriter::create(base.path(), "run").unwrap(),
            manifest: Manifest::default(),
            progress: &mut Silent,
            deadline_ns: 0,
            next_trial: 1,
            calibration: None,
            times: Times::default(),
            scrubber: Some(Scrubber::of_known(BTreeMap::new(), addresses)),
            early: None,
        };
        let probed = "with its settings, probes arrive by eno1; 10.78.3.2 is on ens1: give another";
        // What `run` and the searches record alike.
        let error = running.lost(LabError::NotAvailable { why: probed.into() }, "set-up", 0);
        let kept = "with its settings, probes arrive by eno1; sut is on ens1: give another";
        assert_eq!(error.to_string(), kept);
        let other = running.lost(LabError::Interrupted, "set-up", 0);
        assert!(matches!(other, LabError::Interrupted), "{other}");
    }

    #[test]
    fn a_variant_that_is_left_out_is_in_no_comparison_and_the_others_go_on() {
        let text = "question = \"?\"\n[[variant]]\nname = \"base\"\nload.rate = \"1k\"\n\
                    [[variant]]\nname = \"one\"\nload.rate = \"2k\"\n\
                    [[variant]]\nname = \"two\"\nload.rate = \"3k\"\n";
        let mut all = resolve(&parse(text, "t", "t").unwrap(), &[], &HostShape::flat(2)).unwrap();
        assert_eq!(left_out(&all).unwrap(), None);
        all.leave_out("one", "cannot be set on sut: x=1: no");
        let said = left_out(&all).unwrap().unwrap();
        assert_eq!(said, "1 of 3 variants not available: cannot be set on sut: x=1: no");
        assert!(all.compare.iter().all(|pair| pair.variant == "two"), "{:?}", all.compare);
        all.leave_out("two", "cannot be set on sut: x=1: no");
        let error = left_out(&all).unwrap_err().to_string();
        assert!(error.starts_with("2 of 3 variants not available: "), "{error}");
        assert!(error.ends_with(": nothing is left to compare"), "{error}");
    }
}
