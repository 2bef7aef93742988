//! A checked plan carried out whole: each step, what is undone after a failure, and what its watchdog waits for.

use std::time::Duration;

use rxpath_host::HostError;
use rxpath_host::read::process::ProcessId;
use rxpath_host::write::journal::{Journal, Watch};
use rxpath_host::write::setter::Setter;

use crate::apply::{Applied, apply};
use crate::outcome::ShownUndo;
use crate::plan::Plan;
use crate::watch::deadline_ns;

/// What came of a plan.
#[derive(Debug)]
pub struct CarriedOut {
    /// Number of its journal.
    pub id: u32,
    /// Its steps.
    pub applied: Applied,
    /// What was undone at once.
    pub undone: Vec<ShownUndo>,
    /// Number of steps that were not tried.
    pub not_tried: usize,
    /// Whether a change may be in force.
    pub in_force: bool,
}

/// Carries out a plan that was checked, under the locks that the caller holds. `watch` undoes it after its time unless it is
/// confirmed, and also once `holder` has ended. With `undoes_failure` a plan that is not whole is undone at once.
pub fn carry_out<S: Setter>(
    plan: &Plan,
    setter: &mut S,
    (id, mut journal): (u32, Journal),
    (watch, holder): (Option<(Watch, Duration)>, Option<ProcessId>),
    undoes_failure: bool,
) -> Result<CarriedOut, HostError> {
    // Each step gets the full time: a plan of many steps must not be undone half-way.
    let mut renew = |journal: &mut Journal| match &watch {
        Some((watch, within)) => {
            journal.watch(Watch { deadline_ns: deadline_ns(*within)?, ..*watch })
        }
        None => Ok(()),
    };
    let applied = apply(&mut journal, setter, &plan.steps, &mut renew);
    if journal.contents().is_open() {
        renew(&mut journal)?;
    }
    let mut undone = Vec::new();
    if !applied.is_whole() && undoes_failure {
        undone = journal.undo(setter)?.into_iter().map(|undo| ShownUndo::new(id, undo)).collect();
    }
    // Only now: until here the process that may hang is this one.
    let watch = journal.contents().watch.filter(|_| journal.contents().is_open());
    if let Some((applier, watch)) = holder.zip(watch) {
        journal.watch(Watch { applier, while_alive: true, is_final: true, ..watch })?;
    }
    let not_tried = plan.steps.len() - applied.changes.len();
    Ok(CarriedOut { id, applied, undone, not_tried, in_force: journal.contents().is_open() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::HostMark;
    use crate::plan::tests::{FakeHost, step};

    /// A plan whose second step the kernel refuses.
    fn refused(undoes_failure: bool) -> (CarriedOut, FakeHost) {
        let mut plan = Plan::new(String::new(), HostMark::default());
        plan.steps = vec![
            step("net.core.rmem_max", "212992", "1000000"),
            step("net.core.netdev_budget", "300", "301"),
            step("eth0/threaded", "0", "1"),
        ];
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("j")).unwrap();
        let mut host = FakeHost::new();
        let done = carry_out(&plan, &mut host, (1, journal), (None, None), undoes_failure).unwrap();
        (done, host)
    }

    #[test]
    fn after_a_refusal_the_rest_is_not_tried_and_the_first_steps_stay_or_are_undone() {
        let (kept, host) = refused(false);
        assert!(kept.in_force && !kept.applied.is_whole(), "{kept:?}");
        assert_eq!((kept.applied.changes.len(), kept.not_tried, kept.undone.len()), (2, 1, 0));
        assert_eq!(host.values["net.core.rmem_max"], "1000000");
        let (undone, host) = refused(true);
        assert!(!undone.in_force, "{undone:?}");
        assert_eq!(host, FakeHost::new());
    }
}
