//! What the journals of changes say now: which changes are in force, until when, and what became of each step.

use rxpath_host::read::clock::boottime_ns;
use rxpath_host::write::change::SettingChange;
use rxpath_host::write::journal::{Contents, JournalEntry};
use rxpath_host::{HostError, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::store::StoredJournal;

/// One journal.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct JournalStatus {
    /// Its number.
    pub journal: u32,
    /// How it stands.
    #[serde(flatten)]
    pub standing: JournalStanding,
    /// Its changes and attempts that are not undone, and steps that were never reached.
    pub settings: Vec<JournalSetting>,
}

/// The state of a journal.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum JournalStanding {
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
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum JournalSetting {
    /// The value as the kernel left it.
    Known(SettingChange),
    /// A setting whose outcome is only known from the journal.
    Unknown(OpenStep),
}

/// A step without an outcome.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct OpenStep {
    /// The setting.
    pub set: String,
    /// The value before, if the change asked for it; none for steps that were never tried.
    pub before: Option<String>,
    /// The value asked for.
    pub asked: String,
    /// Why it has none.
    #[serde(flatten)]
    pub outcome: NoOutcome,
}

/// Why a step has no outcome.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum NoOutcome {
    /// The program died between the change and its report.
    NotKnown,
    /// An earlier step was rejected, or the program died.
    NeverReached,
    /// It was undone.
    Undone,
}

impl JournalSetting {
    fn of(entry: &JournalEntry) -> Self {
        let as_asked = |value: &String| entry.target.as_far_as(value, &entry.asked);
        let before = Some(as_asked(&entry.before));
        let open = |outcome| {
            let (set, asked) = (entry.target.to_string(), entry.asked.clone());
            Self::Unknown(OpenStep { set, before: before.clone(), asked, outcome })
        };
        match &entry.end {
            _ if entry.undone => open(NoOutcome::Undone),
            None => open(NoOutcome::NotKnown),
            Some((after, outcome)) => Self::Known(SettingChange {
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
        Self::Unknown(OpenStep { set, before: None, asked, outcome: NoOutcome::NeverReached })
    }
}

impl JournalStatus {
    /// The state of a journal, with its undone changes too if `all`.
    pub fn of(one: &StoredJournal, all: bool) -> Result<Self, HostError> {
        let (standing, settings) = match &one.contents {
            Err(error) => (JournalStanding::Unreadable { why: error.to_string() }, Vec::new()),
            Ok(contents) => {
                let shown = contents.entries.iter().filter(|entry| all || !entry.undone);
                let never = contents.never_reached();
                let never = never.iter().map(JournalSetting::never_reached);
                (standing(contents)?, shown.map(JournalSetting::of).chain(never).collect())
            }
        };
        Ok(Self { journal: one.id, standing, settings })
    }

    /// Whether the process that needed its changes was killed: the endpoint of an experiment.
    pub fn is_orphaned(&self) -> bool {
        matches!(self.standing, JournalStanding::Orphaned { .. })
    }

    /// Why nothing is known of its changes, if it can't be read: only root reads journals.
    pub fn unreadable(&self) -> Option<&str> {
        match &self.standing {
            JournalStanding::Unreadable { why } => Some(why),
            _ => None,
        }
    }
}

fn standing(contents: &Contents) -> Result<JournalStanding, HostError> {
    if !contents.is_open() {
        return Ok(JournalStanding::Finished);
    }
    if let Some(place) = contents.elsewhere()? {
        return Ok(JournalStanding::Elsewhere { place });
    }
    let Some(watch) = contents.watch.filter(|_| !contents.confirmed) else {
        return Ok(JournalStanding::InForce);
    };
    if watch.while_alive && !watch.applier.is_alive() {
        let being_undone = watch.process.is_alive();
        return Ok(JournalStanding::Orphaned { pid: watch.applier.pid, being_undone });
    }
    let left_s = watch.deadline_ns.saturating_sub(boottime_ns()?) / 1_000_000_000;
    Ok(match watch.process.is_alive() {
        true if watch.while_alive => JournalStanding::Searched { pid: watch.applier.pid, left_s },
        true => JournalStanding::Waits { left_s },
        false => JournalStanding::Unwatched,
    })
}
