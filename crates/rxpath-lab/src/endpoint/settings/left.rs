//! Settings that are in force on this host when an experiment begins: a killed run's are undone, and others that may change
//! meanwhile are a reason not to begin.

use std::path::Path;

use rxpath_core::number::counted;
use rxpath_tune::status::{JournalStanding, JournalStatus};
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
    pub fn among(all: &[JournalStatus]) -> Option<Self> {
        let unread = || all.iter().filter_map(JournalStatus::unreadable);
        let why = unread().next()?.to_owned();
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

/// Why no experiment may begin, and what to do, with the program of that host. Changes that stay are the user's own.
fn refused(open: &JournalStatus, exe: &Path) -> Option<[String; 2]> {
    let (journal, tune) = (open.journal, format!("{} tune", exe.display()));
    let (what, hint) = match &open.standing {
        JournalStanding::Orphaned { .. } => (
            format!("open journal {journal} of a killed run"),
            format!("rxpath hosts cleanup FILE, or there: {tune} undo {journal}"),
        ),
        JournalStanding::Waits { left_s } => (
            format!("journal {journal} is not confirmed, its changes are undone in {left_s} s"),
            format!("there: {tune} confirm {journal}, or {tune} undo {journal}"),
        ),
        JournalStanding::Unwatched => (
            format!("journal {journal} is not confirmed, and nothing would undo its changes"),
            format!("there: {tune} undo {journal}"),
        ),
        JournalStanding::Searched { pid, .. } => (
            format!("process {pid} changes settings there (journal {journal})"),
            "let it end, and run this again".into(),
        ),
        _ => return None,
    };
    Some([what, hint])
}

impl HostSettings {
    /// Undoes what killed runs left, and says whether an experiment may begin.
    ///
    /// Nobody but root can read the journals: then nothing is known of them, which is said, and nothing of it is refused.
    pub fn settle(&self) -> LeftSettings {
        let undone = self.undo_left();
        let open = self.open().unwrap_or_default();
        let refused = open.iter().find_map(|open| refused(open, &self.exe));
        LeftSettings { undone, refused, unread: UnreadJournals::among(&open) }
    }

    /// Undoes what killed runs left, last first: the journals that are not open any more.
    pub fn undo_left(&self) -> Vec<u64> {
        let orphaned = || -> Result<Vec<u64>, LabError> {
            let open = self.open()?.into_iter().filter(JournalStatus::is_orphaned);
            Ok(open.map(|open| open.journal.into()).collect())
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
    pub fn open(&self) -> Result<Vec<JournalStatus>, LabError> {
        let done = self.tune(&["status", "--json"], "")?;
        let printed: Printed<Vec<JournalStatus>> =
            serde_json::from_slice(&done.stdout).map_err(|_| failed(&done))?;
        let here =
            |open: &JournalStatus| !matches!(open.standing, JournalStanding::Elsewhere { .. });
        Ok(printed.result.into_iter().filter(here).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_may_go_meanwhile_are_refused_and_those_that_stay_are_not() {
        let of = |state: &str| {
            let text = format!(
                r#"{{"journal":12,"state":"{state}","pid":7,"left_s":40,"being_undone":false,"why":"x","settings":[]}}"#
            );
            refused(&serde_json::from_str(&text).unwrap(), Path::new("/c/rxpath"))
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

    /// A list that cannot be read as a whole would refuse each experiment on that host.
    #[test]
    fn a_list_is_read_with_settings_of_every_outcome() {
        let text = r#"{"schema":"rxpath/tune-status/1.0","settings":{"all":true},"warnings":[],"result":[
            {"journal":3,"state":"orphaned","pid":7,"being_undone":false,"settings":[
                {"set":"eth0/rings","before":"rx=256","asked":"rx=1001","after":"rx=1008","outcome":"rounded"},
                {"set":"irq/24","before":null,"asked":"0-1","after":null,"outcome":"refused","why":"no"},
                {"set":"/proc/sys/net/ipv4/conf/eth0.1/rp_filter","before":"1","asked":"2","after":"2",
                    "outcome":"pending","until":"later"},
                {"set":"net.core.rmem_max","before":"1","asked":"2","outcome":"not-known"},
                {"set":"net.core.rmem_max","before":null,"asked":"2","outcome":"never-reached"},
                {"set":"net.core.rmem_max","before":"1","asked":"2","outcome":"undone"}]},
            {"journal":4,"state":"elsewhere","place":"an earlier boot","settings":[]},
            {"journal":5,"state":"finished","settings":[]}]}"#;
        let read: Printed<Vec<JournalStatus>> = serde_json::from_str(text).unwrap();
        let [orphaned, elsewhere, finished] = &read.result[..] else { panic!("{read:?}") };
        assert!(orphaned.is_orphaned() && !elsewhere.is_orphaned() && !finished.is_orphaned());
        assert_eq!(orphaned.settings.len(), 6);
    }

    #[test]
    fn journals_that_only_root_reads_are_counted_and_not_taken_for_changes() {
        let of = |journal, standing| JournalStatus { journal, standing, settings: Vec::new() };
        let in_force = |journal| of(journal, JournalStanding::InForce);
        let unread = |journal| {
            let why = "open /var/lib/rxpath/tune: permission denied".to_owned();
            of(journal, JournalStanding::Unreadable { why })
        };
        assert_eq!(UnreadJournals::among(&[in_force(1)]), None);
        let all = [unread(1), in_force(2), unread(3)];
        let text = UnreadJournals::among(&all).unwrap().text();
        let begin = "2 journals of `rxpath tune` cannot be read, and it is not known";
        assert!(text.starts_with(begin) && text.ends_with("permission denied)"), "{text}");
    }
}
