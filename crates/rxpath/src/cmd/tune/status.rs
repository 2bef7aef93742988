//! `rxpath tune status`.

use rxpath_host::write::journal::Contents;
use rxpath_tune::status::{JournalSetting, JournalStanding, JournalStatus, NoOutcome, OpenStep};

use super::StateArgs;
use super::shown::{change_line, short};
use crate::cmd::prelude::*;

/// Options of `rxpath tune status`.
#[derive(Debug, Args)]
pub struct StatusCommand {
    /// List finished journals too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    format: FormatArgs,
}

impl StatusCommand {
    /// Lists.
    pub fn run(self) -> Outcome {
        let mut shown = Vec::new();
        let store = self.state.store();
        // Checked before reading: a writer that ends in between has recorded its progress.
        let is_held = store.is_held();
        for mut one in store.list()?.into_iter().filter(|one| self.all || one.is_open()) {
            if is_held {
                one.contents = one.contents.map(Contents::being_written);
            }
            shown.push(JournalStatus::of(&one, self.all)?);
        }
        let is_readable =
            |one: &JournalStatus| !matches!(one.standing, JournalStanding::Unreadable { .. });
        let exit = if shown.iter().all(is_readable) { Exit::Done } else { Exit::Cannot };
        let state_dir = self.state.state_dir.display().to_string();
        let settings = json!({ "all": self.all, "state_dir": state_dir });
        let answer = Envelope::new("tune-status", settings, shown, Vec::new());
        output::answer(self.format.is_json(), &answer, |shown| text(shown))?;
        Ok(exit)
    }
}

fn text(shown: &[JournalStatus]) -> String {
    if shown.is_empty() {
        return "nothing is changed\n".into();
    }
    let mut text = String::new();
    for one in shown {
        text += &format!("journal {}: {}\n", one.journal, words(&one.standing));
        text.extend(one.settings.iter().map(|setting| format!("  {}\n", setting_line(setting))));
    }
    text
}

fn setting_line(setting: &JournalSetting) -> String {
    let OpenStep { set, before, asked, outcome } = match setting {
        JournalSetting::Known(change) => return change_line(change),
        JournalSetting::Unknown(step) => step,
    };
    let (before, asked) = (short(before.as_deref().unwrap_or("unreadable")), short(asked));
    match outcome {
        NoOutcome::NotKnown => {
            format!("{set}: {before} -> {asked} was begun; its outcome is not known")
        }
        NoOutcome::NeverReached => format!("{set}: never reached: {asked} was not tried"),
        NoOutcome::Undone => format!("{set}: {before} again, {asked} is undone"),
    }
}

fn words(standing: &JournalStanding) -> String {
    match standing {
        JournalStanding::InForce => "in force".into(),
        JournalStanding::Waits { left_s } => {
            format!("in force, undone in {left_s} s unless confirmed")
        }
        JournalStanding::Searched { pid, left_s } => {
            format!("in force while process {pid} runs, undone in {left_s} s at the latest")
        }
        JournalStanding::Orphaned { pid, being_undone } => {
            let next = if *being_undone { "being undone" } else { "undo it by hand" };
            format!("in force after the end of process {pid}, which needed it: {next}")
        }
        JournalStanding::Unwatched => {
            "in force, not confirmed; the process that would undo it is dead: undo it by hand"
                .into()
        }
        JournalStanding::Elsewhere { place } => format!("of {place}"),
        JournalStanding::Finished => "finished".into(),
        JournalStanding::Unreadable { why } => format!("can't be read: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_a_killed_process_are_undone_by_hand_only_without_a_watchdog() {
        let of = |being_undone| words(&JournalStanding::Orphaned { pid: 7, being_undone });
        assert!(of(true).ends_with("which needed it: being undone"), "{}", of(true));
        assert!(of(false).ends_with("which needed it: undo it by hand"), "{}", of(false));
    }
}
