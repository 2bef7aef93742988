//! Settings that are in force on this host when an experiment begins: a killed run's are undone, and others that may change
//! meanwhile are a reason not to begin.

use std::path::Path;

use rxpath_core::number::counted;
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
    /// Journals of which nothing is known.
    #[serde(default)]
    pub unread: Option<UnreadJournals>,
}

/// Journals that the endpoint cannot read: their changes may be in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadJournals {
    /// How many.
    pub count: u64,
    /// Why the first of them cannot be read.
    pub why: String,
}

impl UnreadJournals {
    /// Those of a list, if there are any.
    pub fn among(all: &[OpenJournal]) -> Option<Self> {
        let unread = || all.iter().filter(|open| open.is_unread());
        let why = unread().next()?.why.clone();
        Some(Self { count: unread().count() as u64, why })
    }

    /// For people.
    pub fn text(&self) -> String {
        let journals = counted(self.count, "journal");
        format!(
            "{journals} of `rxpath tune` cannot be read, and it is not known whether changes are in force ({})",
            self.why
        )
    }
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
    /// Why it cannot be read, if it cannot.
    #[serde(default)]
    why: String,
}

impl OpenJournal {
    /// Whether the process that needed its changes was killed: the endpoint of an experiment.
    pub fn is_orphaned(&self) -> bool {
        self.state == "orphaned"
    }

    /// Whether nothing is known of its changes: only root reads journals.
    pub fn is_unread(&self) -> bool {
        self.state == "unreadable"
    }

    /// Why no experiment may begin, and what to do, with the program of that host. Changes that stay are the user's own.
    fn refused(&self, exe: &Path) -> Option<[String; 2]> {
        let Self { journal, state, pid, left_s, .. } = self;
        let tune = format!("{} tune", exe.display());
        let (what, hint) = match state.as_str() {
            "orphaned" => (
                format!("open journal {journal} of a killed run"),
                format!("rxpath hosts cleanup FILE, or there: {tune} undo {journal}"),
            ),
            "waits" => (
                format!("journal {journal} is not confirmed, its changes are undone in {left_s} s"),
                format!("there: {tune} confirm {journal}, or {tune} undo {journal}"),
            ),
            "unwatched" => (
                format!("journal {journal} is not confirmed, and nothing would undo its changes"),
                format!("there: {tune} undo {journal}"),
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
    /// Nobody but root can read the journals: then nothing is known of them, which is said, and nothing of it is refused.
    pub fn settle(&self) -> LeftSettings {
        let undone = self.undo_left();
        let open = self.open().unwrap_or_default();
        let refused = open.iter().find_map(|open| open.refused(&self.exe));
        LeftSettings { undone, refused, unread: UnreadJournals::among(&open) }
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
            let _ = self.tune(&["undo", &journal.to_string(), "--json"], "");
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
        let done = self.tune(&["status", "--json"], "")?;
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
            serde_json::from_str::<OpenJournal>(&text).unwrap().refused(Path::new("/c/rxpath"))
        };
        let [what, hint] = of("orphaned").unwrap();
        assert_eq!(what, "open journal 12 of a killed run");
        assert!(hint.starts_with("rxpath hosts cleanup"), "{hint}");
        assert!(of("waits").unwrap()[0].contains("undone in 40 s"));
        assert_eq!(of("unwatched").unwrap()[1], "there: /c/rxpath tune undo 12");
        assert!(of("searched").unwrap()[0].starts_with("process 7 changes settings"));
        // Confirmed, or made without a watchdog; one that only root can read.
        assert_eq!((of("in-force"), of("unreadable")), (None, None));
    }

    #[test]
    fn journals_that_only_root_reads_are_counted_and_not_taken_for_changes() {
        let of = |journal: u64, state: &str| {
            let why = "open /var/lib/rxpath/tune: permission denied".to_owned();
            OpenJournal { journal, state: state.into(), why, ..OpenJournal::default() }
        };
        assert_eq!(UnreadJournals::among(&[of(1, "in-force")]), None);
        let all = [of(1, "unreadable"), of(2, "in-force"), of(3, "unreadable")];
        let text = UnreadJournals::among(&all).unwrap().text();
        let begin = "2 journals of `rxpath tune` cannot be read, and it is not known";
        assert!(text.starts_with(begin) && text.ends_with("permission denied)"), "{text}");
    }
}
