//! Whether a change can be tried in a variant of a scenario: its settings are made once without load, in the lab or on the
//! hosts.

use rxpath_host::pairs::Pairs;
use rxpath_host::write::change::ChangeOutcome;
use rxpath_tune::plan::NoStep;

use super::candidates::{Available, tuned_name};
use super::catalogue::Entry;
use super::ground::Ground;
use crate::error::LabError;
use crate::scenario::spec::Variant;

/// A variant, and where it runs.
pub struct InVariant<'a> {
    /// The variant as it is.
    pub variant: &'a Variant,
    /// Where it is tried.
    pub ground: &'a dyn Ground,
    /// Makes the variant with these keys set.
    pub with: &'a dyn Fn(&[String]) -> Result<Variant, String>,
}

impl InVariant<'_> {
    /// The settings with the values that this kernel gives them, or why it can't be tried.
    ///
    /// # Errors
    /// Where the lab can't be made or read.
    pub fn available(&self, entry: &Entry) -> Result<Available, LabError> {
        let settings: Vec<_> = entry.sets.iter().filter_map(|set| tuned_name(set)).collect();
        let mut tried = self.ground.attempt(&settings)?.into_iter();
        let mut sets = Vec::new();
        let mut changes = false;
        let mut risk = entry.risk;
        for set in &entry.sets {
            let Some((_, name, value)) = tuned_name(set) else {
                (changes, sets) = (true, [sets, vec![set.clone()]].concat());
                continue;
            };
            let change = match tried.next() {
                Some(Ok(Some(change))) => change,
                Some(Err(why)) => return Ok(Err(why.into())),
                Some(Ok(None)) | None => continue,
            };
            let after = change.after.clone().unwrap_or_default();
            match change.outcome {
                // One of several that has this value already contradicts no other candidate.
                ChangeOutcome::Applied if change.before == change.after => {}
                ChangeOutcome::Applied | ChangeOutcome::Pending { .. } => sets.push(set.clone()),
                ChangeOutcome::Rounded => {
                    let key = set.split_once('=').map_or(set.as_str(), |(key, _)| key);
                    sets.push(format!("{key}={}", value_of(&after)));
                }
                ChangeOutcome::Ignored => {
                    let why = format!("the kernel accepts {name}={value} and leaves {after}");
                    return Ok(Err(why.into()));
                }
                ChangeOutcome::Refused { why } => {
                    return Ok(Err(format!("{name}={value} is refused: {why}").into()));
                }
            }
            match self.ground.risk(&change) {
                Some(own) => risk = risk.max(own),
                None => return Ok(Err("it weakens a protection".into())),
            }
            changes |= change.before != change.after;
        }
        if !changes {
            return Ok(Err(NoStep::Already));
        }
        Ok(match (self.with)(&sets) {
            Ok(variant) => match &variant.not_available {
                Some(why) => Err(why.clone().into()),
                None if variant == *self.variant => Err(NoStep::Already),
                None => Ok((sets, risk)),
            },
            Err(why) => Err(why.into()),
        })
    }
}

/// The value in `name=value` of a group, or all of it.
fn value_of(after: &str) -> String {
    let pairs = after.parse::<Pairs>().ok();
    let only = pairs.as_ref().and_then(|pairs| pairs.iter().next());
    only.map_or_else(|| after.to_owned(), |(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_group_the_value_alone_is_taken() {
        assert_eq!((value_of("rx=512"), value_of("50000")), ("512".into(), "50000".into()));
    }
}
