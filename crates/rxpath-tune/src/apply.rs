//! Carrying a plan out: all of it is checked first, then each write is journaled, made and read back.
//!
//! The question it answers: *what did the kernel really do with each step?* At the first refusal it stops: what was done
//! stays on the journal, and the caller offers to undo it.

use rxpath_host::write::change::{ChangeOutcome, SettingChange, same_of};
use rxpath_host::write::journal::Journal;
use rxpath_host::write::setter::Setter;
use rxpath_host::{HostError, Root};

use crate::effects::coupled;
use crate::limits;
use crate::plan::{PlanError, PlanStep};

/// What came of a plan.
#[derive(Debug, Default)]
pub struct Applied {
    /// The steps that were made or tried, in their order.
    pub changes: Vec<SettingChange>,
    /// Why it stopped before the end, when it did.
    pub stopped: Option<HostError>,
}

impl Applied {
    /// Whether every step reads back as asked.
    pub fn is_whole(&self) -> bool {
        let bad = |change: &SettingChange| {
            matches!(change.outcome, ChangeOutcome::Ignored | ChangeOutcome::Refused { .. })
        };
        self.stopped.is_none() && !self.changes.iter().any(bad)
    }
}

/// Whether the host is still as these steps say, and each value within what it and the device take.
///
/// A plan is written once all its steps have passed.
pub fn ready<S: Setter>(setter: &mut S, steps: &[PlanStep]) -> Result<(), PlanError> {
    for (at, step) in steps.iter().enumerate() {
        let number = at + 1;
        let set = step.set.to_string();
        let now = setter.read(&step.set).map_err(|error| PlanError::Unread {
            number,
            set: set.clone(),
            why: error.reason(),
        })?;
        let now = now.unwrap_or_default();
        limits::within(&step.set, (&now, &step.new), &setter.bounds(&step.set))
            .map_err(|why| PlanError::Step { number, set: set.clone(), why })?;
        let now = step.set.as_far_as(&now, &step.new);
        if !same_of(&step.set, &step.old, &now) {
            return Err(PlanError::Stale { number, set, old: step.old.clone(), now });
        }
    }
    Ok(())
}

/// Makes the changes of a plan.
///
/// `before_each` is called before each step; its error stops the plan there.
pub fn apply<S: Setter>(
    journal: &mut Journal,
    setter: &mut S,
    steps: &[PlanStep],
    before_each: &mut dyn FnMut(&mut Journal) -> Result<(), HostError>,
) -> Applied {
    let (mut applied, root) = (Applied::default(), Root::host());
    let planned = steps.iter().map(|step| (step.set.clone(), step.new.clone())).collect();
    if let Err(error) = journal.plan(planned) {
        applied.stopped = Some(error);
        return applied;
    }
    for step in steps {
        let change = before_each(journal).and_then(|()| {
            journal.change(setter, &step.set, &step.new, &coupled(&step.set, &root))
        });
        match change {
            Ok(change) => {
                let refused = matches!(change.outcome, ChangeOutcome::Refused { .. });
                applied.changes.push(change);
                if refused {
                    break;
                }
            }
            Err(error) => {
                applied.stopped = Some(error);
                break;
            }
        }
    }
    if let Err(error) = journal.reached(applied.changes.len()) {
        applied.stopped.get_or_insert(error);
    }
    applied
}
