//! The journal's lines, and how they are read back.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Contents, JournalEntry, Watch};
use crate::HostError;
use crate::write::change::{ChangeOutcome, Target};
use crate::write::fault::Point;

/// Version of the form; 1 had neither what was planned nor what came of nothing, and is read as well.
pub(super) const VERSION: u32 = 2;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub(super) enum Line {
    Head {
        v: u32,
        boot_id: String,
        netns: u64,
    },
    Planned {
        steps: Vec<(Target, String)>,
    },
    Reached {
        count: usize,
    },
    Begin(JournalEntry),
    End {
        n: u32,
        after: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unchanged: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken: Option<Vec<(Target, Option<String>)>>,
        #[serde(flatten)]
        outcome: ChangeOutcome,
    },
    Undone {
        n: u32,
    },
    Watch(Watch),
    Confirmed,
    Forgotten,
}

impl Line {
    /// The moment at which half of this line is on disk.
    pub(super) fn tear(&self) -> Point {
        match self {
            Self::Head { .. } => Point::TornHead,
            Self::Planned { .. } => Point::TornPlanned,
            Self::Reached { .. } => Point::TornReached,
            Self::Begin(_) => Point::TornBegin,
            Self::End { .. } => Point::TornEnd,
            Self::Undone { .. } => Point::TornUndone,
            Self::Watch(_) => Point::TornWatch,
            Self::Confirmed => Point::TornConfirmed,
            Self::Forgotten => Point::TornForgotten,
        }
    }
}

/// Reads whole lines; `None` for an empty journal.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Option<Contents>, HostError> {
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
    let Ok(Line::Head { boot_id, netns, .. }) = serde_json::from_value(head) else {
        return Err(bad(1, "not a journal: no head".into()));
    };
    let mut contents = Contents { boot_id, netns, ..Contents::default() };
    for (at, line) in lines {
        let line: Line = serde_json::from_str(line).map_err(|e| bad(at + 1, e.to_string()))?;
        contents.take(line).map_err(|why| bad(at + 1, why))?;
    }
    Ok(Some(contents))
}

impl Contents {
    pub(super) fn take(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Head { .. } => return Err("a second head".into()),
            Line::Watch(watch) => self.watch = Some(watch),
            Line::Confirmed => self.confirmed = true,
            Line::Forgotten => self.forgotten = true,
            Line::Begin(entry) => self.entries.push(entry),
            Line::Planned { steps } => self.planned = steps,
            Line::Reached { count } => self.reached = Some(count),
            Line::End { n, after, unchanged, taken, outcome } => {
                let entry = self.begun_entry(n)?;
                entry.end = Some((after, outcome));
                entry.taken = taken;
                entry.unchanged = unchanged;
            }
            Line::Undone { n } => self.begun_entry(n)?.undone = true,
        }
        Ok(())
    }

    fn begun_entry(&mut self, n: u32) -> Result<&mut JournalEntry, String> {
        let entry = self.entries.iter_mut().rfind(|entry| entry.n == n);
        entry.ok_or_else(|| format!("change {n} was never begun"))
    }
}

/// Reads a journal's bytes; for tests of any bytes.
pub fn parse_any(bytes: &[u8]) -> Result<Option<Contents>, HostError> {
    parse(Path::new("journal"), bytes)
}

#[cfg(test)]
mod tests {
    use super::parse_any;

    #[test]
    fn a_journal_of_an_earlier_build_is_read() {
        let now = include_str!("../../../../../fuzz/corpus/journal/good");
        let then = now.replace("coupled", "beside");
        let coupled = [now, &then]
            .map(|text| parse_any(text.as_bytes()).unwrap().unwrap().entries[0].coupled.clone());
        assert_eq!(coupled[0].len(), 1);
        assert_eq!(coupled[0], coupled[1]);
    }
}
