//! `rxpath tune undo`.

use rxpath_host::HostError;
use rxpath_host::write::journal::{Journal, Manner};
use rxpath_host::write::setter::HostSetter;
use rxpath_tune::outcome::ShownUndo;
use rxpath_tune::store::Store;

use super::shown::undo_lines;
use super::{PATIENCE, StateArgs, no_journal, unreadable};
use crate::cmd::prelude::*;

/// Options of `rxpath tune undo`.
#[derive(Debug, Args)]
pub struct UndoCommand {
    /// Number of the journal; without it, the last open journal
    id: Option<u32>,
    /// Undo every open journal, last one first
    #[arg(long, conflicts_with = "id")]
    all: bool,
    /// Give up settings that cannot be restored: the journal is closed, or set aside if it cannot be read
    #[arg(long)]
    forget: bool,
    /// Show what would be undone; write nothing
    #[arg(long, conflicts_with = "forget")]
    dry_run: bool,
    /// Keep values that other programs have set since; without it, the old values are restored in any case
    #[arg(long)]
    keep_foreign: bool,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    format: FormatArgs,
}

impl UndoCommand {
    /// Undoes and reports.
    pub fn run(self) -> Outcome {
        if !self.state.is_there() {
            if let Some(id) = self.id {
                return Err(no_journal(id));
            }
            return self.print(&[], &[]).map(|()| Exit::Done).map_err(Failure::from);
        }
        let (store, _lock) = self.state.locked()?;
        let ids = self.ids(&store)?;
        let (mut undone, mut failed) = (Vec::new(), Vec::new());
        for id in ids {
            match self.undo_one(&store, id) {
                Ok(done) => undone.extend(done),
                Err(error) => failed.push((id, error)),
            }
        }
        let is_denied = |(_, error): &(u32, HostError)| matches!(error, HostError::Denied { .. });
        if undone.is_empty() && !failed.is_empty() && failed.iter().all(is_denied) {
            let (_, error) = failed.swap_remove(0);
            return Err(Failure::new(Exit::Cannot, error).hint("only root can undo changes"));
        }
        let is_readable = self.forget
            || !failed.iter().any(|(_, error)| matches!(error, HostError::Malformed { .. }));
        let words = |(id, error): &(u32, HostError)| match error {
            HostError::Malformed { .. } => unreadable(*id, error),
            _ => format!("journal {id}: {error}"),
        };
        let failed: Vec<String> = failed.iter().map(words).collect();
        self.print(&undone, &failed)?;
        let whole = undone.iter().all(|shown| shown.undo.is_whole());
        if !is_readable {
            crate::note!(
                "hint: undo it with the rxpath that wrote it, or set it aside with --forget"
            );
        } else if !whole && !self.forget {
            crate::note!("hint: try again later, or close the journal as it is with --forget");
        }
        Ok(match (is_readable, whole && failed.is_empty()) {
            (false, _) => Exit::Cannot,
            (true, true) => Exit::Done,
            (true, false) => Exit::Partial,
        })
    }

    /// The journals to undo, last first.
    fn ids(&self, store: &Store) -> Result<Vec<u32>, Failure> {
        let listed = store.list()?;
        if let Some(id) = self.id {
            let Some(one) = listed.iter().find(|one| one.id == id) else {
                return Err(no_journal(id));
            };
            if let Ok(contents) = &one.contents
                && let Some(later) = store.later_on_same(id, contents)?
            {
                return Err(Failure::usage(format!(
                    "journal {later} is newer than journal {id} and changed the same settings"
                ))
                .hint(format!("undo journal {later} first, or all with --all")));
            }
            return Ok(vec![id]);
        }
        let open = listed.iter().rev().filter(|one| one.is_open()).map(|one| one.id);
        Ok(if self.all { open.collect() } else { open.take(1).collect() })
    }

    fn undo_one(&self, store: &Store, id: u32) -> Result<Vec<ShownUndo>, HostError> {
        let mut journal = match Journal::open(&store.path(id)) {
            Err(error @ HostError::Malformed { .. }) if self.forget => {
                crate::note!("journal {id} is set aside as {}", store.set_aside(id)?.display());
                return Err(error);
            }
            opened => opened?,
        };
        let _shared = store.lock_shared(journal.contents().open_targets(), PATIENCE)?;
        let manner = Manner { keeps_foreign: self.keep_foreign, is_rehearsal: self.dry_run };
        let undone = match journal.undo_as(&mut HostSetter::default(), manner) {
            Ok(undone) => undone,
            // The reboot has undone it: the journal has no reason to stay open.
            Err(_) if journal.is_of_earlier_boot()? => {
                if !self.dry_run {
                    journal.forget()?;
                }
                crate::note!("journal {id} is of an earlier boot: the reboot has undone it");
                return Ok(Vec::new());
            }
            Err(error) => {
                if self.forget {
                    journal.forget()?;
                }
                return Err(error);
            }
        };
        if self.forget && journal.contents().is_open() {
            journal.forget()?;
        }
        Ok(undone.into_iter().map(|undo| ShownUndo::new(id, undo)).collect())
    }

    fn print(&self, undone: &[ShownUndo], failed: &[String]) -> anyhow::Result<()> {
        if self.format.is_json() {
            let warning = |text: &String| rxpath_core::Warning::new("not-undone", text.clone());
            let settings = json!({ "id": self.id, "all": self.all, "dry_run": self.dry_run, "keep_foreign": self.keep_foreign });
            let warnings = failed.iter().map(warning).collect();
            return output::json(&Envelope::new("tune-undo", settings, undone, warnings));
        }
        for line in undone.iter().flat_map(|undo| undo_lines(undo, self.dry_run)) {
            output::line(&line)?;
        }
        for text in failed {
            crate::note!("rxpath: {text}");
        }
        if self.dry_run && !undone.is_empty() {
            output::line("nothing was written; to undo, leave out --dry-run")?;
        }
        if undone.is_empty() && failed.is_empty() {
            output::line("nothing to undo")?;
        }
        Ok(())
    }
}
