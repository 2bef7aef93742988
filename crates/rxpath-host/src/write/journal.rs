//! The journal of changes: written before each change, so that each can be undone.
//!
//! One JSON line per step, synced before the change that it announces: `begin` with the old and the
//! asked value, then `end` with what came of it. A crash between leaves a `begin` alone: undo then
//! restores the old value, which is right whether or not the write happened.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::HostError;
use crate::read::identity::{Identity, boot_id, network_namespace};
use crate::read::process::ProcessId;
use crate::write::change::{ChangeOutcome, SettingChange, Target, same_of};
use crate::write::fault::{self, Point};
use crate::write::setter::Setter;

mod form;
mod rehearsal;
mod undo;

pub use form::parse_any;
pub use undo::{Manner, Restored, Undo};

use form::{Line, VERSION, parse};

/// One change on the journal: its line `begin`, and what later lines say of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Its number, from 0.
    pub n: u32,
    /// What was to be changed; of a group, all of it.
    pub target: Target,
    /// What the target belonged to; `None` for settings of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The value before.
    pub before: String,
    /// The value asked for.
    pub asked: String,
    /// Other settings that the change may take along, with their values before.
    // With the name in journals of earlier builds, which are undone all the same.
    #[serde(default, alias = "beside", skip_serializing_if = "Vec::is_empty")]
    pub coupled: Vec<(Target, String)>,
    /// The value read back and what that means; `None` when the writer died in between.
    #[serde(skip)]
    pub end: Option<(Option<String>, ChangeOutcome)>,
    /// Those of `coupled` that the change took along, with their values afterwards; `None` where nobody looked.
    #[serde(skip)]
    pub taken: Option<Vec<(Target, Option<String>)>>,
    /// Nothing came of it: the setting, and what it may take along, read afterwards as before.
    #[serde(skip)]
    pub unchanged: bool,
    /// It was undone.
    #[serde(skip)]
    pub undone: bool,
}

impl JournalEntry {
    /// Whether what it changed may be in force: it was not undone, and something may have come of it.
    pub fn is_open(&self) -> bool {
        !self.undone && !self.unchanged
    }
}

/// Who undoes the changes by itself, and when, unless they are confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// The process that waits.
    pub process: ProcessId,
    /// The process that makes the changes, which may hang when the time is up.
    pub applier: ProcessId,
    /// **Unit** ns of `CLOCK_BOOTTIME`, which goes on while the machine sleeps.
    pub deadline_ns: u64,
    /// The changes hold only while the applier lives: its end is as good as the deadline.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub while_alive: bool,
    /// Nothing more is changed after this order: once all is undone, nobody needs to wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_final: bool,
}

/// What a journal holds, apart from the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The boot in which it was written.
    pub boot_id: String,
    /// The network namespace: inode of its file.
    pub netns: u64,
    /// What was to be changed, with the value asked for, in this order; empty where nobody said it before.
    pub planned: Vec<(Target, String)>,
    /// How many of them were tried; `None` when the writer died before it could say so.
    pub reached: Option<usize>,
    /// All changes, in their order.
    pub entries: Vec<JournalEntry>,
    /// The last order to undo without being asked.
    pub watch: Option<Watch>,
    /// The changes were confirmed: nobody undoes them without being asked.
    pub confirmed: bool,
    /// Nothing more is to be done for it, although not everything could be restored.
    pub forgotten: bool,
}

impl Contents {
    /// A journal on which nothing stands yet: its writer died before the first whole line, and changed nothing.
    pub fn begun() -> Result<Self, HostError> {
        Ok(Self { boot_id: boot_id()?, netns: network_namespace()?, ..Self::default() })
    }

    /// Reads a journal without touching it; a last line that is not whole is left out.
    ///
    /// **Errors** `Malformed` for a journal of a newer version, or with a broken line before the last.
    pub fn read(path: &Path) -> Result<Option<Self>, HostError> {
        let bytes = fs::read(path).map_err(|e| HostError::from_io("read", path, e))?;
        parse(path, &bytes[..whole_lines(&bytes)])
    }

    /// Where else it was written, in words: in another boot or network namespace, whose settings are not those here.
    pub fn elsewhere(&self) -> Result<Option<String>, HostError> {
        if self.boot_id != boot_id()? {
            return Ok(Some("an earlier boot: the restart has undone it".into()));
        }
        let here = network_namespace()? == self.netns;
        Ok((!here).then(|| format!("another network namespace (net:[{}])", self.netns)))
    }

    /// Whether undoing it may write this setting, as its own or as one that was taken along.
    pub fn may_restore(&self, target: &Target) -> bool {
        self.entries.iter().filter(|entry| entry.is_open()).any(|entry| {
            entry.target == *target || entry.coupled.iter().any(|(coupled, _)| coupled == target)
        })
    }

    /// The settings that it changed and did not undo.
    pub fn open_targets(&self) -> impl Iterator<Item = &Target> {
        self.entries.iter().filter(|entry| entry.is_open()).map(|entry| &entry.target)
    }

    /// Whether it changed this setting itself and did not undo it.
    pub fn changes(&self, target: &Target) -> bool {
        self.open_targets().any(|open| open == target)
    }

    /// Whether anything that it changed may still be in force.
    pub fn is_open(&self) -> bool {
        !self.forgotten && self.entries.iter().any(JournalEntry::is_open)
    }

    /// The same while its writer is at work: no step counts as never reached.
    #[must_use]
    pub fn being_written(mut self) -> Self {
        if self.reached.is_none() {
            self.planned.clear();
        }
        self
    }

    /// What was planned and never tried, because a step before it was refused or the writer died.
    pub fn never_reached(&self) -> &[(Target, String)] {
        let last = self.entries.last().map(|entry| &entry.target);
        let begun = || self.planned.iter().rposition(|(target, _)| Some(target) == last);
        let reached = self.reached.unwrap_or_else(|| begun().map_or(0, |at| at + 1));
        self.planned.get(reached..).unwrap_or_default()
    }
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
    contents: Contents,
}

impl Journal {
    /// Opens a journal or begins one; what is on it is read and kept.
    ///
    /// A last line that was cut off by a crash is taken away: only the one who writes may open it so.
    ///
    /// **Errors** `Malformed` for a journal of a newer version, or with a broken line before the last.
    pub fn open(path: &Path) -> Result<Self, HostError> {
        let io = |op| move |e| HostError::from_io(op, path, e);
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
            .map_err(io("open for writing"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io("read"))?;
        let whole = whole_lines(&bytes);
        let parsed = parse(path, &bytes[..whole])?;
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(io("shorten"))?;
        }
        let contents = parsed.map_or_else(Contents::begun, Ok)?;
        let mut journal = Self { path: path.into(), file, length: whole as u64, contents };
        if whole == 0 {
            let (boot_id, netns) = (journal.contents.boot_id.clone(), journal.contents.netns);
            journal.append(&Line::Head { v: VERSION, boot_id, netns })?;
            if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
                File::open(dir).and_then(|dir| dir.sync_all()).map_err(io("sync the folder of"))?;
            }
        }
        Ok(journal)
    }

    /// What is on it.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// All changes, in their order.
    pub fn entries(&self) -> &[JournalEntry] {
        &self.contents.entries
    }

    /// Whether the machine was rebooted since: sysctls and attributes then differ from the journal.
    pub fn is_of_earlier_boot(&self) -> Result<bool, HostError> {
        Ok(boot_id()? != self.contents.boot_id)
    }

    /// Makes a change: first the old and the requested value go to disk, then the write, then its outcome.
    ///
    /// `coupled` are settings that the change may take along; they are restored with it. What has the
    /// value already is neither written nor journaled.
    ///
    /// **Errors** when the old value can't be read or the journal can't be written: nothing was changed then,
    /// except after a failed last line, when undo still knows all. A refusal of the kernel is an outcome.
    pub fn change<S: Setter>(
        &mut self,
        setter: &mut S,
        target: &Target,
        value: &str,
        coupled: &[Target],
    ) -> Result<SettingChange, HostError> {
        let asked = setter.spell_out(target, value)?;
        let before = setter.read(target)?.ok_or_else(|| HostError::Unsupported {
            what: format!("change {target}"),
            needs: "a value that can be read: it could not be undone".into(),
        })?;
        let already = SettingChange::judge(
            target.clone(),
            Some(before.clone()),
            &asked,
            Some(before.clone()),
        );
        if already.outcome == ChangeOutcome::Applied {
            return Ok(already);
        }
        fault::at(Point::BeforeBegin);
        let n = self.begin(setter, target, (&before, &asked), coupled)?;
        fault::at(Point::AfterBegin);
        let had_carrier = setter.has_carrier(target);
        let written = setter.write(target, value);
        fault::at(Point::AfterWrite);
        // Drivers set values again while the link comes back, and the next step may need the link.
        let away = if had_carrier { setter.await_carrier(target) } else { None };
        let after = setter.read(target).ok().flatten();
        let mut change = match written {
            Ok(()) => {
                let mut change =
                    SettingChange::judge(target.clone(), Some(before), &asked, after.clone());
                if change.outcome == ChangeOutcome::Applied
                    && let Some(until) = setter.pending(target, &asked)
                {
                    change.outcome = ChangeOutcome::Pending { until };
                }
                change
            }
            Err(error) => {
                let why = (after.clone(), error.reason());
                SettingChange::refused(target.clone(), Some(before), &asked, why)
            }
        };
        change.link = away.map(|away| away.to_string());
        let taken = self.taken_along(setter);
        let unchanged =
            matches!(change.outcome, ChangeOutcome::Refused { .. } | ChangeOutcome::Ignored)
                && taken.is_empty()
                && after.as_ref().is_some_and(|after| self.is_as_before(after));
        fault::at(Point::BeforeEnd);
        let outcome = change.outcome.clone();
        self.note(Line::End { n, after, unchanged, taken: Some(taken), outcome })?;
        fault::at(Point::AfterEnd);
        Ok(change)
    }

    /// Whether the last setting reads as before.
    fn is_as_before(&self, after: &str) -> bool {
        self.entries().last().is_some_and(|entry| same_of(&entry.target, &entry.before, after))
    }

    /// What the last change took along, with the values that it left.
    fn taken_along<S: Setter>(&self, setter: &mut S) -> Vec<(Target, Option<String>)> {
        let coupled = self.entries().last().map_or(&[][..], |entry| &entry.coupled);
        let mut taken = Vec::new();
        for (target, was) in coupled {
            let now = setter.read(target).ok().flatten();
            if !now.as_ref().is_some_and(|now| same_of(target, was, now)) {
                taken.push((target.clone(), now));
            }
        }
        taken
    }

    /// Records the planned changes before the first one, so that unreached changes can be reported afterwards.
    pub fn plan(&mut self, steps: Vec<(Target, String)>) -> Result<(), HostError> {
        self.note(Line::Planned { steps })
    }

    /// Says how many of the planned changes were tried: the writer is done.
    pub fn reached(&mut self, count: usize) -> Result<(), HostError> {
        self.note(Line::Reached { count })
    }

    fn begin<S: Setter>(
        &mut self,
        setter: &mut S,
        target: &Target,
        (before, asked): (&str, &str),
        coupled: &[Target],
    ) -> Result<u32, HostError> {
        let n = self.entries().last().map_or(0, |entry| entry.n + 1);
        let mut also = Vec::new();
        for target in coupled {
            match setter.read(target) {
                Ok(Some(value)) => also.push((target.clone(), value)),
                Ok(None) => {}
                // A setting that is there and cannot be read now could not be undone.
                Err(error) if error.is_passing() => return Err(error),
                // What this device lacks can't be taken along.
                Err(_) => {}
            }
        }
        self.note(Line::Begin(JournalEntry {
            n,
            target: target.clone(),
            identity: setter.identify(target)?,
            before: before.into(),
            asked: asked.into(),
            coupled: also,
            end: None,
            taken: None,
            unchanged: false,
            undone: false,
        }))?;
        Ok(n)
    }

    /// Orders that the changes are undone at a moment unless they are confirmed before; a later order replaces it.
    pub fn watch(&mut self, watch: Watch) -> Result<(), HostError> {
        self.note(Line::Watch(watch))
    }

    /// Confirms the changes: they stay until somebody asks to undo them.
    pub fn confirm(&mut self) -> Result<(), HostError> {
        self.note(Line::Confirmed)
    }

    /// Gives up what could not be restored: the journal is not open any more.
    pub fn forget(&mut self) -> Result<(), HostError> {
        self.note(Line::Forgotten)
    }

    /// Begins again, once nothing on it is in force any more: what was changed and undone is forgotten. The order to undo
    /// holds on.
    pub fn restart(&mut self) -> Result<(), HostError> {
        debug_assert!(!self.contents.is_open());
        let io = |e| HostError::from_io("shorten", &self.path, e);
        self.file.set_len(0).map_err(io)?;
        self.length = 0;
        let Contents { boot_id, netns, watch, .. } = std::mem::take(&mut self.contents);
        self.contents = Contents { boot_id: boot_id.clone(), netns, ..Contents::default() };
        self.append(&Line::Head { v: VERSION, boot_id, netns })?;
        watch.map_or(Ok(()), |watch| self.watch(watch))
    }

    /// Takes the journal away, once nothing on it is in force any more.
    pub fn remove(self) -> Result<(), HostError> {
        fs::remove_file(&self.path).map_err(|e| HostError::from_io("remove", &self.path, e))
    }

    /// Writes a line, and takes it as one who reads the journal later does.
    fn note(&mut self, line: Line) -> Result<(), HostError> {
        self.append(&line)?;
        self.contents.take(line).map_err(|why| HostError::malformed(&self.path, 0, why))
    }

    fn append(&mut self, line: &Line) -> Result<(), HostError> {
        let mut text = serde_json::to_string(line)
            .map_err(|e| HostError::malformed(&self.path, 0, format!("no JSON: {e}")))?;
        text.push('\n');
        if fault::torn(line.tear()) {
            let _ = self.file.write_all(&text.as_bytes()[..text.len() / 2]);
            fault::end();
        }
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Half a line must not stand before the next one. Should this fail too, the half line stays the
            // last one: nothing is appended any more, because every caller stops at this error.
            let _ = self.file.set_len(self.length);
            return Err(HostError::from_io("write", &self.path, error));
        }
        self.length += text.len() as u64;
        Ok(())
    }
}

fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests;
