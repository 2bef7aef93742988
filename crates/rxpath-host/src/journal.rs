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
use crate::change::{Change, Outcome, Target};
use crate::owner::boot_id;

/// Version of the form.
const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
enum Line {
    Head { v: u32, boot_id: String },
    Begin { n: u32, target: Target, before: Option<String>, asked: String },
    End { n: u32, after: Option<String>, outcome: Outcome },
    Undone { n: u32 },
}

/// One change on the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number, from 0.
    pub n: u32,
    /// What was to be changed.
    pub target: Target,
    /// The value before; `None` when it could not be read.
    pub before: Option<String>,
    /// The value asked for.
    pub asked: String,
    /// The value read back and what that means; `None` when the writer died in between.
    pub end: Option<(Option<String>, Outcome)>,
    /// It was undone.
    pub undone: bool,
}

/// What undoing did, for each entry that was not undone yet, last change first.
#[derive(Debug)]
pub struct Undo {
    /// The entry's number.
    pub n: u32,
    /// What was restored.
    pub target: Target,
    /// How the restoring went.
    pub result: Result<Change, HostError>,
}

/// Reads and writes the settings that a journal is about; the host, or a namespace.
pub trait Setter {
    /// The value now; `None` for what can't be read.
    fn read(&mut self, target: &Target) -> Result<Option<String>, HostError>;
    /// Writes a value and reads it back.
    fn write(&mut self, target: &Target, value: &str) -> Result<Change, HostError>;
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    boot_id: String,
    entries: Vec<Entry>,
}

impl Journal {
    /// Opens a journal or begins one; what is on it is read and kept.
    ///
    /// A last line that was cut off by a crash is taken away.
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
            .map_err(io("open"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io("read"))?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let parsed = parse(path, &bytes[..whole])?;
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(io("shorten"))?;
        }
        let (boot, entries) = match parsed {
            Some((boot, entries)) => (boot, entries),
            None => (boot_id()?, Vec::new()),
        };
        let mut journal = Self { path: path.into(), file, boot_id: boot.clone(), entries };
        if whole == 0 {
            journal.append(&Line::Head { v: VERSION, boot_id: boot })?;
            if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
                File::open(dir).and_then(|dir| dir.sync_all()).map_err(io("sync the folder of"))?;
            }
        }
        Ok(journal)
    }

    /// All changes, in their order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether the machine was started anew since: sysctls and attributes then are not what it says.
    pub fn is_of_earlier_boot(&self) -> Result<bool, HostError> {
        Ok(boot_id()? != self.boot_id)
    }

    /// Makes a change: old value and wish on disk first, then the write, then what came of it.
    pub fn change<S: Setter>(
        &mut self,
        setter: &mut S,
        target: &Target,
        value: &str,
    ) -> Result<Change, HostError> {
        let before = setter.read(target)?;
        let n = self.entries.last().map_or(0, |entry| entry.n + 1);
        let asked = value.trim().to_owned();
        self.append(&Line::Begin {
            n,
            target: target.clone(),
            before: before.clone(),
            asked: asked.clone(),
        })?;
        let entry = Entry { n, target: target.clone(), before, asked, end: None, undone: false };
        self.entries.push(entry);
        let change = setter.write(target, value)?;
        let end = (change.after.clone(), change.outcome.clone());
        self.append(&Line::End { n, after: end.0.clone(), outcome: end.1.clone() })?;
        if let Some(entry) = self.entries.last_mut() {
            entry.end = Some(end);
        }
        Ok(change)
    }

    /// Restores the old values, last change first. Goes on after a failure and tells it.
    ///
    /// **Errors** `Unsupported` for a journal of an earlier boot: what it changed is gone already.
    pub fn undo<S: Setter>(&mut self, setter: &mut S) -> Result<Vec<Undo>, HostError> {
        if self.is_of_earlier_boot()? {
            return Err(HostError::Unsupported {
                what: format!("undo {}", self.path.display()),
                needs: "the boot that it was written in; the restart has undone it".into(),
            });
        }
        let mut done = Vec::new();
        for at in
            (0..self.entries.len()).rev().filter(|at| !self.entries[*at].undone).collect::<Vec<_>>()
        {
            let entry = &self.entries[at];
            let (n, target) = (entry.n, entry.target.clone());
            let result = match &entry.before {
                Some(before) => setter.write(&target, before).and_then(Change::applied),
                None => Err(HostError::Unsupported {
                    what: format!("undo the change of {target}"),
                    needs: "its old value, which could not be read".into(),
                }),
            };
            if result.is_ok() {
                self.append(&Line::Undone { n })?;
                self.entries[at].undone = true;
            }
            done.push(Undo { n, target, result });
        }
        Ok(done)
    }

    /// Takes the journal away, once nothing on it is in force any more.
    pub fn remove(self) -> Result<(), HostError> {
        fs::remove_file(&self.path).map_err(|e| HostError::from_io("remove", &self.path, e))
    }

    fn append(&mut self, line: &Line) -> Result<(), HostError> {
        let mut text = serde_json::to_string(line)
            .map_err(|e| HostError::malformed(&self.path, 0, format!("no JSON: {e}")))?;
        text.push('\n');
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(|e| HostError::from_io("write", &self.path, e))
    }
}

type Parsed = Option<(String, Vec<Entry>)>;

/// Reads whole lines; `None` for an empty journal.
fn parse(path: &Path, bytes: &[u8]) -> Result<Parsed, HostError> {
    let text = String::from_utf8_lossy(bytes);
    let bad = |line: usize, why: String| HostError::malformed(path, line, why);
    let mut lines = text.lines().enumerate();
    let Some((_, first)) = lines.next() else { return Ok(None) };
    let head: serde_json::Value =
        serde_json::from_str(first).map_err(|e| bad(1, format!("not a journal: {e}")))?;
    match head.get("v").and_then(serde_json::Value::as_u64) {
        Some(v) if v > u64::from(VERSION) => {
            let why = format!("written by a newer rxpath (form {v}, this one knows {VERSION})");
            return Err(bad(1, why));
        }
        Some(_) => {}
        None => return Err(bad(1, "not a journal: no version".into())),
    }
    let Ok(Line::Head { boot_id, .. }) = serde_json::from_value(head) else {
        return Err(bad(1, "not a journal: no head".into()));
    };
    let mut entries: Vec<Entry> = Vec::new();
    for (at, line) in lines {
        let line: Line = serde_json::from_str(line).map_err(|e| bad(at + 1, e.to_string()))?;
        let number = match &line {
            Line::Head { .. } => return Err(bad(at + 1, "a second head".into())),
            Line::Begin { n, .. } | Line::End { n, .. } | Line::Undone { n } => *n,
        };
        if let Line::Begin { n, target, before, asked } = line {
            entries.push(Entry { n, target, before, asked, end: None, undone: false });
            continue;
        }
        let entry = entries
            .iter_mut()
            .rfind(|entry| entry.n == number)
            .ok_or_else(|| bad(at + 1, format!("change {number} was never begun")))?;
        match line {
            Line::End { after, outcome, .. } => entry.end = Some((after, outcome)),
            _ => entry.undone = true,
        }
    }
    Ok(Some((boot_id, entries)))
}

#[cfg(test)]
mod tests;
