//! `rxpath tune status`.

use rxpath_host::Target;
use rxpath_host::read::clock::boottime_ns;
use rxpath_host::write::change::SettingChange;
use rxpath_host::write::journal::{Contents, JournalEntry};
use rxpath_tune::store::StoredJournal;

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

/// One journal.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JournalStatus {
    /// Its number.
    journal: u32,
    #[serde(flatten)]
    standing: Standing,
    /// Its changes and attempts that are not undone, and steps that were never reached.
    settings: Vec<Setting>,
}

/// The state of a journal.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
enum Standing {
    /// Its changes stay until a user undoes them.
    InForce,
    /// Its changes are undone after this time unless confirmed.
    Waits {
        /// **Unit** s.
        left_s: u64,
    },
    /// Its changes hold while the process that needs them runs (a search on real traffic, the endpoint of an experiment), and
    /// are undone with its end or after this time.
    Searched {
        /// That process.
        pid: i32,
        /// **Unit** s.
        left_s: u64,
    },
    /// The process that needed its changes was killed: they are to be undone.
    Orphaned {
        /// That process.
        pid: i32,
        /// The process that waited for that undoes them.
        being_undone: bool,
    },
    /// Its changes were not confirmed, and the process that would undo them is dead.
    Unwatched,
    /// From elsewhere: from another network namespace, or from before a reboot, which has undone it.
    Elsewhere {
        /// Where.
        place: String,
    },
    /// All is undone or given up.
    Finished,
    /// It can't be read.
    Unreadable {
        /// Why.
        why: String,
    },
}

/// One setting of a journal.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum Setting {
    /// The value as the kernel left it.
    Told(SettingChange),
    /// A setting whose outcome is only known from the journal.
    Untold(Untold),
}

/// A step without an outcome.
#[derive(Debug, Serialize, JsonSchema)]
struct Untold {
    /// The setting.
    set: String,
    /// The value before, if the change asked for it; none for steps that were never tried.
    before: Option<String>,
    /// The value asked for.
    asked: String,
    #[serde(flatten)]
    outcome: NoOutcome,
}

/// Why a step has no outcome.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
enum NoOutcome {
    /// The program died between the change and its report.
    NotKnown,
    /// An earlier step was rejected, or the program died.
    NeverReached,
    /// It was undone.
    Undone,
}

impl Setting {
    fn of(entry: &JournalEntry) -> Self {
        let as_asked = |value: &String| entry.target.as_far_as(value, &entry.asked);
        let before = Some(as_asked(&entry.before));
        let untold = |outcome| {
            let (set, asked) = (entry.target.to_string(), entry.asked.clone());
            Self::Untold(Untold { set, before: before.clone(), asked, outcome })
        };
        match &entry.end {
            _ if entry.undone => untold(NoOutcome::Undone),
            None => untold(NoOutcome::NotKnown),
            Some((after, outcome)) => Self::Told(SettingChange {
                target: entry.target.clone(),
                before,
                asked: entry.asked.clone(),
                after: after.as_ref().map(as_asked),
                also: String::new(),
                link: None,
                outcome: outcome.clone(),
            }),
        }
    }

    fn never_reached((target, asked): &(Target, String)) -> Self {
        let (set, asked) = (target.to_string(), asked.clone());
        Self::Untold(Untold { set, before: None, asked, outcome: NoOutcome::NeverReached })
    }

    fn line(&self) -> String {
        let Untold { set, before, asked, outcome } = match self {
            Self::Told(change) => return change_line(change),
            Self::Untold(untold) => untold,
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
            shown.push(self.show(&one)?);
        }
        let is_readable =
            |one: &JournalStatus| !matches!(one.standing, Standing::Unreadable { .. });
        let exit = if shown.iter().all(is_readable) { Exit::Done } else { Exit::Cannot };
        if self.format.is_json() {
            let settings = json!({ "all": self.all, "state_dir": self.state.state_dir });
            output::json(&Envelope::new("tune-status", settings, &shown, Vec::new()))?;
            return Ok(exit);
        }
        for one in &shown {
            output::line(&format!("journal {}: {}", one.journal, words(&one.standing)))?;
            for setting in &one.settings {
                output::line(&format!("  {}", setting.line()))?;
            }
        }
        if shown.is_empty() {
            output::line("nothing is changed")?;
        }
        Ok(exit)
    }

    fn show(&self, one: &StoredJournal) -> anyhow::Result<JournalStatus> {
        let (standing, settings) = match &one.contents {
            Err(error) => (Standing::Unreadable { why: error.to_string() }, Vec::new()),
            Ok(contents) => (standing(contents)?, self.settings(contents)),
        };
        Ok(JournalStatus { journal: one.id, standing, settings })
    }

    fn settings(&self, contents: &Contents) -> Vec<Setting> {
        let shown = contents.entries.iter().filter(|entry| self.all || !entry.undone);
        shown
            .map(Setting::of)
            .chain(contents.never_reached().iter().map(Setting::never_reached))
            .collect()
    }
}

fn standing(contents: &Contents) -> anyhow::Result<Standing> {
    if !contents.is_open() {
        return Ok(Standing::Finished);
    }
    if let Some(place) = contents.elsewhere()? {
        return Ok(Standing::Elsewhere { place });
    }
    let Some(watch) = contents.watch.filter(|_| !contents.confirmed) else {
        return Ok(Standing::InForce);
    };
    if watch.while_alive && !watch.applier.is_alive() {
        let being_undone = watch.process.is_alive();
        return Ok(Standing::Orphaned { pid: watch.applier.pid, being_undone });
    }
    let left_s = watch.deadline_ns.saturating_sub(boottime_ns()?) / 1_000_000_000;
    Ok(match watch.process.is_alive() {
        true if watch.while_alive => Standing::Searched { pid: watch.applier.pid, left_s },
        true => Standing::Waits { left_s },
        false => Standing::Unwatched,
    })
}

fn words(standing: &Standing) -> String {
    match standing {
        Standing::InForce => "in force".into(),
        Standing::Waits { left_s } => format!("in force, undone in {left_s} s unless confirmed"),
        Standing::Searched { pid, left_s } => {
            format!("in force while process {pid} runs, undone in {left_s} s at the latest")
        }
        Standing::Orphaned { pid, being_undone } => {
            let next = if *being_undone { "being undone" } else { "undo it by hand" };
            format!("in force after the end of process {pid}, which needed it: {next}")
        }
        Standing::Unwatched => {
            "in force, not confirmed; the process that would undo it is dead: undo it by hand"
                .into()
        }
        Standing::Elsewhere { place } => format!("of {place}"),
        Standing::Finished => "finished".into(),
        Standing::Unreadable { why } => format!("can't be read: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_a_killed_process_are_undone_by_hand_only_without_a_watchdog() {
        let of = |being_undone| words(&Standing::Orphaned { pid: 7, being_undone });
        assert!(of(true).ends_with("which needed it: being undone"), "{}", of(true));
        assert!(of(false).ends_with("which needed it: undo it by hand"), "{}", of(false));
    }
}
