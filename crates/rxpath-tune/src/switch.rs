//! Settings that are switched on and off in turn, and that hold only while the program that does it lives.
//!
//! The question it answers: *does the host have its base values, and beyond them exactly these steps?* Each switch goes
//! through the base: everything is undone and read back first. A watchdog undoes what is on if the program ends or hangs.

use std::time::Duration;

use rxpath_host::HostError;
use rxpath_host::write::change::{ChangeOutcome, SettingChange};
use rxpath_host::write::journal::{Journal, Manner, Watch};
use rxpath_host::write::setter::Setter;
use thiserror::Error;

use crate::apply::{apply, ready};
use crate::plan::{PlanError, PlanStep};
use crate::watch::deadline_ns;

/// Why the host is not as it was asked for, through no fault of a step.
#[derive(Debug, Error)]
pub enum SwitchError {
    /// Another program changed a setting that this one switches. It stays as that one made it.
    #[error("another program set {set} to {value} meanwhile")]
    Foreign {
        /// The setting.
        set: String,
        /// What it is now.
        value: String,
    },
    /// A base value could not be restored.
    #[error("{set} could not be set back to {value}: {why}")]
    NotRestored {
        /// The setting.
        set: String,
        /// Its base value.
        value: String,
        /// The kernel's reason.
        why: String,
    },
    /// The journal can't be written.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Switches settings of one journal.
#[derive(Debug)]
pub struct SettingsSwitch<S: Setter> {
    journal: Journal,
    setter: S,
    watch: Watch,
}

impl<S: Setter> SettingsSwitch<S> {
    /// Over a journal whose watchdog waits already, with an order that holds while this process lives.
    pub fn new(journal: Journal, setter: S, watch: Watch) -> Self {
        debug_assert!(watch.while_alive);
        Self { journal, setter, watch }
    }

    /// Back to the base, then these steps, which the watchdog undoes after `hold`. Returns the changes that the kernel or the
    /// driver rounded, or in words why a step can't be made; the base is restored then.
    ///
    /// # Errors
    /// As [`SwitchError`] says.
    pub fn to(
        &mut self,
        steps: &[PlanStep],
        hold: Duration,
    ) -> Result<Result<Vec<SettingChange>, String>, SwitchError> {
        self.base()?;
        self.journal.restart()?;
        match ready(&mut self.setter, steps) {
            Ok(()) => {}
            Err(PlanError::Stale { set, now, .. }) => {
                return Err(SwitchError::Foreign { set, value: now });
            }
            Err(error) => return Ok(Err(error.to_string())),
        }
        self.watch.deadline_ns = deadline_ns(hold)?;
        self.journal.watch(self.watch)?;
        let applied = apply(&mut self.journal, &mut self.setter, steps, &mut |_| Ok(()));
        if let Some(error) = applied.stopped {
            return Err(error.into());
        }
        let failed = applied.changes.iter().find_map(|change| match &change.outcome {
            ChangeOutcome::Refused { why } => Some(format!("{} is refused: {why}", change.target)),
            ChangeOutcome::Ignored => {
                Some(format!("the kernel accepts {} and leaves it", change.target))
            }
            ChangeOutcome::Applied | ChangeOutcome::Pending { .. } | ChangeOutcome::Rounded => None,
        });
        if let Some(why) = failed {
            self.base()?;
            return Ok(Err(why));
        }
        let mut rounded = applied.changes;
        rounded.retain(|change| change.outcome == ChangeOutcome::Rounded);
        Ok(Ok(rounded))
    }

    /// Restores everything that is on, and reads it back.
    ///
    /// # Errors
    /// The first setting that is not at its base afterwards; all are tried.
    pub fn base(&mut self) -> Result<(), SwitchError> {
        if !self.journal.contents().is_open() {
            return Ok(());
        }
        let manner = Manner { keeps_foreign: true, is_rehearsal: false };
        for undo in self.journal.undo_as(&mut self.setter, manner)? {
            let set = undo.target.to_string();
            if let Some(value) = undo.foreign {
                return Err(SwitchError::Foreign { set, value });
            }
            if let Some(why) = undo.restored.why() {
                return Err(SwitchError::NotRestored { set, value: undo.value, why: why.into() });
            }
            if let Some((coupled, why)) = undo.coupled.into_iter().next() {
                let set = coupled.to_string();
                return Err(SwitchError::NotRestored { set, value: "its old value".into(), why });
            }
        }
        Ok(())
    }
}

impl<S: Setter> Drop for SettingsSwitch<S> {
    /// What is on must not outlive it. The watchdog undoes what can't be undone here.
    fn drop(&mut self) {
        let _ = self.base();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::{FakeHost, step};
    use rxpath_host::read::process::ProcessId;

    const HOLD: Duration = Duration::from_secs(60);

    fn switch(dir: &std::path::Path) -> SettingsSwitch<FakeHost> {
        let process = ProcessId::own().unwrap();
        let watch =
            Watch { process, applier: process, deadline_ns: 0, while_alive: true, is_final: false };
        let journal = Journal::open(&dir.join("journal")).unwrap();
        SettingsSwitch::new(journal, FakeHost::new(), watch)
    }

    fn budget(old: &str, new: &str) -> Vec<PlanStep> {
        vec![step("net.core.netdev_budget", old, new)]
    }

    #[test]
    fn exactly_the_steps_of_the_last_switch_are_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut switch = switch(dir.path());
        let base = FakeHost::new().values;
        switch.to(&budget("300", "600"), HOLD).unwrap().unwrap();
        assert_eq!(switch.setter.values["net.core.netdev_budget"], "600");
        let gro = step("eth0/features", "rx-gro=on", "rx-gro=off");
        switch.to(&[gro], HOLD).unwrap().unwrap();
        assert_eq!(switch.setter.values["net.core.netdev_budget"], "300");
        assert!(switch.setter.values["eth0/features"].contains("rx-gro=off"));
        assert_eq!(switch.journal.entries().len(), 1, "the journal does not grow");
        switch.base().unwrap();
        assert_eq!(switch.setter.values, base);
    }

    #[test]
    fn rounded_values_are_returned() {
        let dir = tempfile::tempdir().unwrap();
        let mut switch = switch(dir.path());
        let ring = step("eth0/rings", "rx=256", "rx=1001");
        let rounded = switch.to(&[ring], HOLD).unwrap().unwrap();
        assert_eq!(rounded.len(), 1);
        assert_eq!(rounded[0].asked, "rx=1001");
        assert_eq!(rounded[0].after.as_deref(), Some("rx=1008"));
        assert!(switch.to(&budget("300", "600"), HOLD).unwrap().unwrap().is_empty());
    }

    #[test]
    fn a_step_that_is_refused_or_ignored_leaves_the_base() {
        let dir = tempfile::tempdir().unwrap();
        let mut switch = switch(dir.path());
        let mut steps = budget("300", "301");
        steps.insert(0, step("net.core.rmem_max", "212992", "1000000"));
        let why = switch.to(&steps, HOLD).unwrap().unwrap_err();
        assert!(why.contains("net.core.netdev_budget is refused") && why.contains("odd"), "{why}");
        let pause = step("eth0/pause", "rx=on", "rx=off");
        let why = switch.to(&[pause], HOLD).unwrap().unwrap_err();
        assert!(why.contains("eth0/pause"), "{why}");
        assert_eq!(switch.setter.values, FakeHost::new().values);
    }

    #[test]
    fn what_another_program_set_meanwhile_stays_and_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut on = switch(dir.path());
        on.to(&budget("300", "600"), HOLD).unwrap().unwrap();
        on.setter.values.insert("net.core.netdev_budget".into(), "999".into());
        let error = on.base().unwrap_err().to_string();
        assert_eq!(error, "another program set net.core.netdev_budget to 999 meanwhile");
        assert_eq!(on.setter.values["net.core.netdev_budget"], "999");
        // While it was off.
        let dir = tempfile::tempdir().unwrap();
        let mut off = switch(dir.path());
        off.setter.values.insert("net.core.netdev_budget".into(), "999".into());
        let error = off.to(&budget("300", "600"), HOLD).unwrap_err();
        assert!(matches!(error, SwitchError::Foreign { .. }), "{error}");
    }
}
