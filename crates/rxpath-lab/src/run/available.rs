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
        // A probe names addresses.
        let why = self.scrubber.as_mut().map_or(why.clone(), |scrubber| scrubber.name(&why));
        let trial = self.next_trial.saturating_sub(1);
        self.tell(What::TrialEnded { trial, void: Some(why.clone()) })?;
        self.progress.found(&format!("{name} is not available: {why}"));
        self.resolved.leave_out(name, &why);
        self.manifest.resolved = as_json("scenario", &self.resolved)?;
        left_out(&self.resolved).map(drop)
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
    use super::*;
    use crate::scenario::{HostShape, parse, resolve};

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
