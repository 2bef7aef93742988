//! Undoing: the old values, last change first, each read back.

use super::{Entry, Journal};
use crate::HostError;
use crate::change::{Target, stands};
use crate::fault::{self, Point};
use crate::identity::network_namespace;
use crate::setter::Setter;

use super::form::Line;

/// How the restoring of one change went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored {
    /// It reads back as the value from before.
    Yes,
    /// It had the value from before already.
    Already,
    /// What it belonged to is gone, and the setting with it.
    Gone {
        /// What was looked for.
        why: String,
    },
    /// It has not the value from before.
    No {
        /// Why, in the kernel's words where there are any.
        why: String,
    },
}

/// What undoing did, for each entry that was not undone yet, last change first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undo {
    /// The entry's number.
    pub n: u32,
    /// What was restored, under its present name.
    pub target: Target,
    /// The old value.
    pub value: String,
    /// How it went.
    pub restored: Restored,
    /// What it was when it was restored; `None` when it had the old value already or could not be restored.
    pub found: Option<String>,
    /// Somebody else had changed it since; this is what they had made it.
    pub foreign: Option<String>,
    /// Settings that the change had taken along and that could not be restored, with the reason.
    pub beside: Vec<(Target, String)>,
}

impl Undo {
    /// Whether all is as it was before the change.
    pub fn is_whole(&self) -> bool {
        matches!(self.restored, Restored::Yes | Restored::Already) && self.beside.is_empty()
    }
}

impl Journal {
    /// Restores the old values, last change first. Goes on after a failure and tells it.
    ///
    /// **Errors** `Unsupported` for a journal of an earlier boot (what it changed is gone already) and from another
    /// network namespace than that of the changes.
    pub fn undo<S: Setter>(&mut self, setter: &mut S) -> Result<Vec<Undo>, HostError> {
        let what = || format!("undo {}", self.path.display());
        if self.is_of_earlier_boot()? {
            let needs = "the boot that it was written in; the restart has undone it".into();
            return Err(HostError::Unsupported { what: what(), needs });
        }
        if network_namespace()? != self.contents.netns {
            let needs = format!(
                "the network namespace in which the changes were made (net:[{}])",
                self.contents.netns
            );
            return Err(HostError::Unsupported { what: what(), needs });
        }
        let open = |at: &usize| self.contents.entries[*at].is_open();
        let order: Vec<usize> = (0..self.contents.entries.len()).rev().filter(open).collect();
        let mut done = Vec::new();
        for at in order {
            fault::at(Point::BeforeRestore);
            let mut undo = restore(setter, &self.contents.entries[at]);
            fault::at(Point::AfterRestore);
            if undo.is_whole()
                && let Err(error) = self.mark(at)
            {
                let why = format!("it is restored, but the journal can't say so: {error}");
                undo.restored = Restored::No { why };
            }
            fault::at(Point::AfterUndone);
            done.push(undo);
        }
        Ok(done)
    }

    /// Marks an entry as undone, and later ones of the same target with it: their old values are newer than this one.
    fn mark(&mut self, at: usize) -> Result<(), HostError> {
        let target = self.contents.entries[at].target.clone();
        let superseded = |entry: &Entry| !entry.undone && entry.target == target;
        let later = (at..self.contents.entries.len()).rev();
        let all: Vec<usize> = later.filter(|at| superseded(&self.contents.entries[*at])).collect();
        for at in all {
            let n = self.contents.entries[at].n;
            self.append(&Line::Undone { n })?;
            self.contents.entries[at].undone = true;
        }
        Ok(())
    }
}

fn restore<S: Setter>(setter: &mut S, entry: &Entry) -> Undo {
    let mut undo = Undo {
        n: entry.n,
        target: entry.target.clone(),
        value: entry.before.clone(),
        restored: Restored::Already,
        found: None,
        foreign: None,
        beside: Vec::new(),
    };
    if let Some(identity) = &entry.identity {
        match setter.locate(&entry.target, identity) {
            Ok(Some(target)) => undo.target = target,
            Ok(None) => {
                let why = format!("{identity} is gone, and {} with it", entry.target);
                undo.restored = Restored::Gone { why };
                return undo;
            }
            Err(error) => {
                undo.restored = Restored::No { why: error.to_string() };
                return undo;
            }
        }
    }
    let left = entry.end.as_ref().and_then(|(after, _)| after.clone());
    undo.restored = match put_back(setter, &undo.target, &entry.before) {
        Ok(None) => Restored::Already,
        Ok(Some(found)) => {
            let foreign = left.is_some_and(|left| !stands(&undo.target, &left, &found));
            undo.foreign = foreign.then(|| found.clone());
            undo.found = Some(found);
            Restored::Yes
        }
        Err(why) => Restored::No { why },
    };
    for (target, value) in &entry.beside {
        let target = match undo.target.device() {
            Some(dev) if target.device() == entry.target.device() => target.clone().on_device(dev),
            _ => target.clone(),
        };
        if let Err(why) = put_back(setter, &target, value) {
            undo.beside.push((target, why));
        }
    }
    undo
}

/// Restores one value; what was found instead of it, when it had to be written.
fn put_back<S: Setter>(
    setter: &mut S,
    target: &Target,
    value: &str,
) -> Result<Option<String>, String> {
    let read = |setter: &mut S| {
        let now = setter.read(target).map_err(|error| error.reason())?;
        now.ok_or_else(|| "it can't be read any more".to_owned())
    };
    let found = read(setter)?;
    if stands(target, value, &found) {
        return Ok(None);
    }
    let had_carrier = setter.has_carrier(target);
    let written = setter.restore(target, value);
    if had_carrier {
        setter.await_carrier(target);
    }
    let now = read(setter)?;
    match written {
        _ if stands(target, value, &now) => Ok(Some(found)),
        Err(error) => Err(error.reason()),
        Ok(()) if stands(target, &found, &now) => {
            Err(format!("the kernel took {value} and left {now}"))
        }
        Ok(()) => Err(format!("the kernel made it {now} instead of {value}")),
    }
}
