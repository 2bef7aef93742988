//! Settings that are in force on this host when an experiment begins: a killed run's are undone, and others that may change
//! meanwhile are a reason not to begin.

use serde::{Deserialize, Serialize};

use super::{HostSettings, Printed, failed};
use crate::error::LabError;

/// What earlier runs left in force, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftSettings {
    /// Journals of killed runs that were undone, by their numbers.
    pub undone: Vec<u64>,
    /// Why no experiment may begin, and what to do.
    pub refused: Option<[String; 2]>,
}

/// An open journal as `rxpath tune status` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct OpenJournal {
    /// Its number.
    pub journal: u64,
    /// What becomes of its changes: a word of `rxpath tune status`.
    state: String,
    /// The process that needs them, where one does.
    #[serde(default)]
    pid: i32,
    /// Until they are undone. **Unit** s.
    #[serde(default)]
    left_s: u64,
}

impl OpenJournal {
    /// Whether the process that needed its changes was killed: the endpoint of an experiment.
    pub fn is_orphaned(&self) -> bool {
        self.state == "orphaned"
    }

    /// Why no experiment may begin, and what to do. Changes that stay are the user's own.
    fn refused(&self) -> Option<[String; 2]> {
        let Self { journal, state, pid, left_s } = self;
        let (what, hint) = match state.as_str() {
            "orphaned" => (
                format!("open journal {journal} of a killed run"),
                format!("rxpath hosts cleanup FILE, or there: rxpath tune undo {journal}"),
            ),
            "waits" => (
                format!("journal {journal} is not confirmed, its changes are undone in {left_s} s"),
                format!("there: rxpath tune confirm {journal}, or rxpath tune undo {journal}"),
            ),
            "unwatched" => (
                format!("journal {journal} is not confirmed, and nothing would undo its changes"),
                format!("there: rxpath tune undo {journal}"),
            ),
            "searched" => (
                format!("process {pid} changes settings there (journal {journal})"),
                "let it end, and run this again".into(),
            ),
            _ => return None,
        };
        Some([what, hint])
    }
}

impl HostSettings {
    /// Undoes what killed runs left, and says whether an experiment may begin.
    ///
    /// Nobody but root can read the journals: then nothing is known of them, and nothing of it is refused.
    pub fn settle(&self) -> LeftSettings {
        let undone = self.undo_left();
        let open = self.open().unwrap_or_default();
        LeftSettings { undone, refused: open.iter().find_map(OpenJournal::refused) }
    }

    /// Undoes what killed runs left, last first: the journals that are not open any more.
    pub fn undo_left(&self) -> Vec<u64> {
        let orphaned = || -> Result<Vec<u64>, LabError> {
            let open = self.open()?.into_iter().filter(OpenJournal::is_orphaned);
            Ok(open.map(|open| open.journal).collect())
        };
        let mut left = orphaned().unwrap_or_default();
        if left.is_empty() {
            return left;
        }
        for journal in left.iter().rev() {
            // Its watchdog may be at it: both hold the same lock meanwhile, and the list below shows what came of it.
            let _ = self.tune(&["undo".into(), journal.to_string(), "--json".into()], "");
        }
        let Ok(open) = orphaned() else { return Vec::new() };
        left.retain(|journal| !open.contains(journal));
        left
    }

    /// Journals whose changes may be in force here: not those of an earlier boot or of another network namespace.
    ///
    /// # Errors
    /// If `rxpath tune status` cannot list them.
    pub fn open(&self) -> Result<Vec<OpenJournal>, LabError> {
        let done = self.tune(&["status".into(), "--json".into()], "")?;
        let printed: Printed<Vec<OpenJournal>> =
            serde_json::from_str(&done.stdout).map_err(|_| failed(&done))?;
        let here = |open: &OpenJournal| open.state != "elsewhere";
        Ok(printed.result.into_iter().filter(here).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_may_go_meanwhile_are_refused_and_those_that_stay_are_not() {
        let of = |state: &str| {
            let text =
                format!(r#"{{"journal":12,"state":"{state}","pid":7,"left_s":40,"settings":[]}}"#);
            serde_json::from_str::<OpenJournal>(&text).unwrap().refused()
        };
        let [what, hint] = of("orphaned").unwrap();
        assert_eq!(what, "open journal 12 of a killed run");
        assert!(hint.starts_with("rxpath hosts cleanup"), "{hint}");
        assert!(of("waits").unwrap()[0].contains("undone in 40 s"));
        assert!(of("unwatched").unwrap()[1].contains("rxpath tune undo 12"));
        assert!(of("searched").unwrap()[0].starts_with("process 7 changes settings"));
        // Confirmed, or made without a watchdog; one that only root can read.
        assert_eq!((of("in-force"), of("unreadable")), (None, None));
    }
}
